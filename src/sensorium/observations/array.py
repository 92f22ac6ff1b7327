"""Arrays of any type and shape, depth pictures, and an agent's own body."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import encodable
from sensorium.observations.profile import float_of, safe_repr, safe_str
from sensorium.observations.values import ArrayValue, ProblemValue, ProprioValue, TextValue

MAX_KEPT_BYTES = 16 * 1024 * 1024
"""Bytes of one array that are kept; of a larger one only the statistics."""
_MAX_MEASURED = 20_000_000
"""Elements that statistics are computed from; of more, evenly spaced ones."""
_MAX_PROPRIO = 10_000
_DEPTH_SCALE = {"m": 1.0, "cm": 0.01, "mm": 0.001}


def read_array(
    raw: Any,
    *,
    part_id: str = "array",
    config: ReadConfig = ReadConfig(),
    unit: str | None = None,
    modality: Modality = Modality.TABLE,
) -> list[Part]:
    """Read an array.

    Args:
        raw: A NumPy array of any type and shape (masked ones, too), a tensor of torch or anything else that
            NumPy understands. Records and texts become a table; 16-bit integers given as depth are taken for
            millimetres.
        part_id: Id of the part.
        config: Limits; ``keep_rows`` and ``max_rows`` hold for arrays that become tables.
        unit: Unit of its elements. For depth ``m`` (the default), ``cm`` or ``mm``, which become metres.
        modality: `Modality.DEPTH` for a depth picture (H, W).
    """
    value: ArrayValue | ProblemValue
    try:
        array, notes = as_array(raw)
        if array.dtype.names or array.dtype.kind in "OSUMm":
            return _not_numeric(array, notes, part_id, config)
        if modality is Modality.DEPTH:
            array, unit, note = _metres(array, unit)
            notes += note
        value, more = _value(array, unit)
        notes += more
    except Exception as error:  # foreign objects may raise anything
        what = f"the array cannot be read: {type(error).__name__}: {encodable(safe_str(error))[:500]}"
        value, notes = ProblemValue(what=what, where=part_id), ()
    return [Part(id=part_id, modality=modality, value=value, notes=notes)]


def read_proprio(
    raw: Mapping[str, Any],
    *,
    part_id: str = "proprio",
    units: Mapping[str, str] | None = None,
) -> list[Part]:
    """Read the state of an agent's own body.

    Args:
        raw: Name -> number, or a short vector, whose elements become ``name[0]``, ``name[1]``, ...
        part_id: Id of the part.
        units: Name -> unit.
    """
    given = units or {}
    names: list[str] = []
    values: list[float] = []
    found_units: list[str] = []
    refused: list[str] = []
    for key, entry in raw.items():
        name = encodable(safe_str(key))
        numbers = _numbers(entry)
        if numbers is None:
            refused.append(name)
            continue
        for index, number in enumerate(numbers[:_MAX_PROPRIO]):
            names.append(name if _is_scalar(entry) else f"{name}[{index}]")
            values.append(number)
            found_units.append(given.get(name, ""))
    notes = (f"not numbers, left out: {', '.join(refused[:20])}",) if refused else ()
    value = ProprioValue(
        names=tuple(names), values=tuple(values), units=tuple(found_units) if any(found_units) else ()
    )
    return [Part(id=part_id, modality=Modality.PROPRIO, value=value, notes=notes)]


def array_of(value: ArrayValue) -> NDArray[Any] | None:
    """The array that a value holds, read-only, in its shape; None when its elements were not kept."""
    if value.data is None:
        return None
    dtype = np.dtype(value.dtype).newbyteorder("<")
    return np.frombuffer(value.data, dtype=dtype).reshape(value.shape)


def as_array(raw: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
    """A NumPy array of what NumPy understands, of a tensor on any device, of a masked array; and notes."""
    notes: tuple[str, ...] = ()
    array: Any
    if hasattr(raw, "detach") and hasattr(raw, "cpu"):  # torch
        tensor = raw.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            tensor, notes = tensor.float(), ("bfloat16, kept as float32",)
        raw = tensor.numpy()
    if isinstance(raw, np.ma.MaskedArray):
        masked = int(np.count_nonzero(np.ma.getmaskarray(raw)))
        is_number = masked and raw.dtype.kind in "biufc"
        notes += (f"{masked:,} masked elements" + (", kept as NaN" if is_number else ""),) if masked else ()
        array = raw.astype(np.result_type(raw.dtype, np.float32)) if is_number else raw
        raw = array.filled(np.nan) if is_number else array.filled()
    return np.asarray(raw), notes


def _metres(array: NDArray[Any], unit: str | None) -> tuple[NDArray[Any], str, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    if unit is None and array.dtype == np.uint16:
        unit, notes = "mm", ("16-bit depth, taken for millimetres",)
    scale = _DEPTH_SCALE.get(unit or "m")
    if scale is None:
        raise ValueError(f"the unit of depth must be m, cm or mm, found {unit!r}")
    if scale != 1.0 or array.dtype.kind not in "f":
        array = array.astype(np.float32) * np.float32(scale)
    return array, "m", notes


def _value(array: NDArray[Any], unit: str | None) -> tuple[ArrayValue, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    dtype = array.dtype.newbyteorder("=")
    data = None
    if array.nbytes <= MAX_KEPT_BYTES:
        # 0 dimensions would become 1 in ascontiguousarray; tobytes writes C order by itself.
        data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    else:
        notes += (f"its elements are not kept ({array.nbytes:,} bytes)",)
    numbers = array.reshape(-1) if array.flags.c_contiguous else array.ravel()
    if numbers.size > _MAX_MEASURED:
        step = -(-numbers.size // _MAX_MEASURED)
        numbers = numbers[::step]
        notes += (f"statistics of every {step}th element",)
    if numbers.dtype.kind == "c":
        numbers = np.abs(numbers)
        notes += ("statistics are those of the magnitudes",)
    measured = _statistics(numbers)
    return ArrayValue(dtype=str(dtype), shape=array.shape, data=data, unit=unit, **measured), notes


def _statistics(numbers: NDArray[Any]) -> dict[str, Any]:
    wide = numbers.astype(np.float64)
    finite = wide[np.isfinite(wide)] if numbers.dtype.kind in "fc" else wide
    found: dict[str, Any] = {"num_non_finite": int(wide.size - finite.size)}
    if finite.size:
        with np.errstate(over="ignore", invalid="ignore"):
            mean, std = float(finite.mean()), float(finite.std())
        found |= {"low": float(finite.min()), "high": float(finite.max())}
        found |= {"mean": mean if math.isfinite(mean) else None, "std": std if math.isfinite(std) else None}
    return found


def _not_numeric(array: NDArray[Any], notes: tuple[str, ...], part_id: str, config: ReadConfig) -> list[Part]:
    """Records, texts, dates and objects: as a table where they have one or two dimensions."""
    from sensorium.observations.table import read_table

    shape = "x".join(map(str, array.shape)) or "one element"
    notes += (f"from an array of type {array.dtype if not array.dtype.names else 'record'} ({shape})",)
    raw: Any = None
    if array.ndim == 1 and array.dtype.names:
        raw = {name: array[name].tolist() for name in array.dtype.names}
    elif array.ndim == 1:
        raw = {"value": array.tolist()}
    elif array.ndim == 2 and array.shape[1] <= config.max_items:
        raw = {f"column {i + 1}": array[:, i].tolist() for i in range(array.shape[1])}
    if raw is not None:
        parts = read_table(raw, part_id=part_id, config=config)
        return [part.model_copy(update={"notes": (*part.notes, *notes)}) for part in parts]
    text = encodable(safe_repr(array)[:10_000])
    return [Part(id=part_id, modality=Modality.TABLE, value=TextValue(text=text), notes=notes)]


def _is_scalar(entry: Any) -> bool:
    return isinstance(entry, int | float | np.generic) or getattr(entry, "shape", None) == ()


def _numbers(entry: Any) -> list[float] | None:
    """The numbers of a scalar or a vector; None for anything else."""
    if isinstance(entry, int | float):
        return [float_of(entry)]
    if isinstance(entry, str | bytes) or not (isinstance(entry, Sequence) or hasattr(entry, "__array__")):
        return None
    try:
        array, _ = as_array(entry)
        return [float(number) for number in array.astype(np.float64).ravel()]
    except (TypeError, ValueError, RuntimeError):
        return None
