"""Arrays, depth pictures and proprioception as segments."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core.counted import counted
from sensorium.core.types import Modality
from sensorium.observations.array import array_of
from sensorium.observations.base import Part
from sensorium.observations.values import ArrayValue, ProprioValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import TableConfig
from sensorium.representations.layout.typed import value_of

_PER_LINE = 12
"""Numbers on one line."""
_MAP_PER_LINE = 64
"""Small integers on one line: mazes, masks and labels are shown cell by cell."""
_GRID = 12
"""Rows and columns of the block means that stand for a large matrix."""


def lay_out_array(part: Part, config: TableConfig = TableConfig()) -> Document:
    """Lay an array out: its range pinned, then its elements, or block means where they are too many.

    Args:
        part: A part with an `ArrayValue`.
        config: `max_rows`: lines of numbers at most.
    """
    value = value_of(part, ArrayValue, "arrays")
    shape = "x".join(map(str, value.shape)) or "one element"
    kind = "depth picture" if part.modality is Modality.DEPTH else "array"
    unit = f", {value.unit}" if value.unit else ""
    segments = [Segment(_range(value), 4.0, "range", None, True)]
    segments += [Segment(f"note: {note}", 2.0, "notes") for note in part.notes]
    array = array_of(value)
    if array is not None and array.size:
        if part.modality is Modality.DEPTH:
            segments += _nearest(array)
        is_constant = value.low == value.high and not value.num_non_finite
        for place, text in _lines(array, config.max_rows) if not is_constant else ():
            weight = 0.8 if place else 1.5
            segments.append(Segment(text, weight, place, None))
    return Document(title=f"{kind} {value.dtype} {shape}{unit}", segments=tuple(segments), unit="lines")


def lay_out_proprio(part: Part, config: TableConfig = TableConfig()) -> Document:
    """Lay the state of an agent's body out, a value per line; none of them is worth more than another.

    Args:
        part: A part with a `ProprioValue`.
        config: Not needed: a body has few values.
    """
    value = value_of(part, ProprioValue, "proprioception")
    units = value.units or ("",) * len(value.names)
    segments = [
        Segment(f"{name} = {_number(number)}{f' {unit}' if unit else ''}", 1.0, name)
        for name, number, unit in zip(value.names, value.values, units, strict=False)
    ]
    segments += [Segment(f"note: {note}", 1.0, "notes") for note in part.notes]
    return Document(
        title=f"body state, {counted(len(value.names), 'value')}", segments=tuple(segments), unit="values"
    )


def _range(value: ArrayValue) -> str:
    if value.low is None:
        said = "no finite elements" if 0 not in value.shape else "no elements"
    elif value.low == value.high:
        said = f"all elements are {_number(value.low)}"
    else:
        said = f"{_number(value.low)} to {_number(value.high or 0.0)}"
        if value.mean is not None:
            said += f", mean {_number(value.mean)}"
        if value.std is not None:
            said += f" ± {_number(value.std)}"
    return f"{said}; {value.num_non_finite:,} not finite" if value.num_non_finite else said


def _nearest(array: NDArray[Any]) -> list[Segment]:
    """Where the nearest surface is; 0 means that nothing was measured."""
    flat = array.reshape(-1)
    valid = np.isfinite(flat) & (flat > 0)
    if not valid.any():
        return [Segment("no valid depth anywhere", 3.0, "nearest")]
    place = np.unravel_index(int(np.argmin(np.where(valid, flat, np.inf))), array.shape)
    where = ", ".join(str(int(i)) for i in place)
    text = (
        f"nearest: {_number(float(flat[valid].min()))} m at ({where}); {valid.mean():.0%} of pixels are valid"
    )
    return [Segment(text, 3.0, "nearest")]


def _lines(array: NDArray[Any], max_rows: int) -> Iterator[tuple[str, str]]:
    """Places and lines of numbers; a line without a place is a heading."""
    if array.ndim == 0:
        yield "element", _number(array.item())
        return
    if array.ndim == 1:
        yield from _vector(array, max_rows)
        return
    planes = array.reshape(-1, *array.shape[-2:])
    left = max_rows
    for number, plane in enumerate(planes):
        if left <= 0:
            break
        prefix = ""
        if len(planes) > 1:
            index = np.unravel_index(number, array.shape[:-2])
            prefix = ", ".join(str(int(i)) for i in index) + ", "
            yield "", f"[{prefix}:, :]"
        for place, text in _plane(plane, prefix, left):
            left -= 1
            yield place, text


def _vector(array: NDArray[Any], max_rows: int) -> Iterator[tuple[str, str]]:
    room = max(1, max_rows) * _PER_LINE
    step = -(-len(array) // room)
    if step > 1:
        yield "", f"every {step}th element:"
    for start in range(0, len(array), _PER_LINE * step):
        numbers = array[start : start + _PER_LINE * step : step]
        yield f"[{start}]", f"[{start}] " + " ".join(map(_number, numbers.tolist()))


def _plane(plane: NDArray[Any], prefix: str, max_rows: int) -> Iterator[tuple[str, str]]:
    rows, columns = plane.shape
    is_map = plane.dtype.kind in "biu" and columns <= _MAP_PER_LINE and (not plane.size or plane.max() <= 99)
    if rows <= max_rows and (columns <= _PER_LINE or is_map):
        for row in range(rows):
            yield f"[{prefix}{row}]", f"[{prefix}{row}] " + " ".join(map(_number, plane[row].tolist()))
        return
    high, wide = min(rows, _GRID, max(1, max_rows)), min(columns, _GRID)
    yield "", f"means of {high}x{wide} blocks:"
    means = block_means(plane, high, wide)
    for row in range(high):
        place = f"[{prefix}{row * rows // high}:{(row + 1) * rows // high}]"
        yield place, f"{place} " + " ".join(_short(one) for one in means[row].tolist())


def block_means(plane: NDArray[Any], rows: int, columns: int) -> NDArray[np.float64]:
    """Means over (rows, columns) blocks of a matrix; elements that are not finite are left out.

    Returns:
        (rows, columns) float64; NaN where a block has no finite element.
    """
    numbers = (np.abs(plane) if plane.dtype.kind == "c" else plane).astype(np.float64)
    finite = np.isfinite(numbers)
    row_starts = np.arange(rows) * plane.shape[0] // rows
    column_starts = np.arange(columns) * plane.shape[1] // columns

    def summed(values: NDArray[Any]) -> NDArray[np.float64]:
        down = np.add.reduceat(values, row_starts, axis=0)
        return np.asarray(np.add.reduceat(down, column_starts, axis=1), dtype=np.float64)

    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return summed(np.where(finite, numbers, 0.0)) / summed(finite.astype(np.float64))


def _number(number: Any) -> str:
    if isinstance(number, bool):
        return "1" if number else "0"
    if isinstance(number, complex):
        return f"{number.real:.5g}{number.imag:+.5g}j"
    return str(number) if isinstance(number, int) else f"{number:.6g}"


def _short(number: float) -> str:
    return f"{number:.3g}"
