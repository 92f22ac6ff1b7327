"""What one column of a table holds: counts, ranges, quantiles, frequent values."""

import contextlib
import datetime
import decimal
import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.observations.decoding import encodable
from sensorium.observations.units import guess_unit
from sensorium.observations.values import Cell, Column

MAX_CELL_CHARS = 2_000
"""Characters of one cell that are kept."""
_TOP = 5
_MAX_TOP_CHARS = 80
_MISSING_TYPES = ("NAType", "NaTType")
PLAIN_TYPES = frozenset({type(None), str, int, bool, datetime.date, datetime.datetime})
"""Types whose values are hashable, equal to themselves, and missing only when None."""
_QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


class Measured(NamedTuple):
    """A column with what was measured of it."""

    column: Column
    values: Sequence[Any] | NDArray[Any]
    """In their own types, one per row that was read."""
    numbers: NDArray[np.float64] | None
    """Of a numeric column: values, NaN where there is none."""
    counts: "Counter[Any] | None"
    """Of a column that is not numeric: how often each value occurs."""


def is_missing(value: Any) -> bool:
    """Whether a cell holds no value: None, NaN, pandas' NA and NaT."""
    if value is None:
        return True
    if isinstance(value, float):
        return value != value
    return type(value).__name__ in _MISSING_TYPES or (
        isinstance(value, np.datetime64) and bool(np.isnat(value))
    )


def plain_cell(value: Any) -> Cell:
    """A cell in plain form: dates as ISO text, infinities and nested objects as text, bounded in length."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return None if value != value else str(value)
    if isinstance(value, int):
        if abs(value) < 2**63:
            return int(value)
        # Python refuses to write integers of some thousand digits.
        return str(value) if value.bit_length() < 1_000 else f"integer of {value.bit_length():,} bits"
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if is_missing(value):
        return None
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return str(value.isoformat())
    if isinstance(value, decimal.Decimal):
        return float(value) if value.is_finite() else str(value)
    if isinstance(value, dict | list | tuple):
        try:
            return _short(json.dumps(value, ensure_ascii=False, default=str))
        except (ValueError, TypeError, RecursionError):
            pass
    return _short(safe_repr(value) if isinstance(value, bytes | dict | list | tuple) else safe_str(value))


def safe_str(value: Any) -> str:
    """``str(value)``; of an object that fails at it, its type."""
    try:
        return str(value)
    except Exception as error:  # foreign objects may raise anything
        return f"<{type(value).__name__} whose text raises {type(error).__name__}>"


def safe_repr(value: Any) -> str:
    """``repr(value)``; of an object that fails at it, its type."""
    try:
        return repr(value)
    except Exception as error:  # foreign objects may raise anything
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def measure(
    name: str,
    values: Sequence[Any] | NDArray[Any],
    *,
    dtype: str | None = None,
    unit: str | None = None,
    meaning: str | None = None,
) -> Measured:
    """Measure a column.

    Args:
        name: Its name.
        values: One per row; a numeric NumPy array is measured without a loop.
        dtype: The source's name of its type; found out from the values when None.
        unit: Its unit; guessed from the name when None.
        meaning: What it means, as the user says.
    """
    unit = unit or guess_unit(name)
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iuf":
            return _numeric(name, values, dtype or str(values.dtype), unit, meaning)
        values = list(values.tolist())
    kinds = set(map(type, values))
    if kinds <= PLAIN_TYPES:
        present = [v for v in values if v is not None]
    else:
        present = [v for v in values if not is_missing(v)]
        kinds = set(map(type, present))
    kinds.discard(type(None))
    if kinds and (kinds <= {int, float} or all(issubclass(kind, np.number) for kind in kinds)):
        numbers = _as_floats(values)
        found = _numeric(name, numbers, dtype or _type_name(kinds), unit, meaning, exact=present)
        return found._replace(values=values)
    if dtype == "float (mixed)":
        numbers = np.array([v if isinstance(v, float) else np.nan for v in values], dtype=np.float64)
        found = _numeric(name, numbers, dtype, unit, meaning)
        missing = len(values) - len(present)
        return found._replace(values=values, column=found.column.model_copy(update={"missing": missing}))
    return _other(name, values, present, dtype or _type_name(kinds), unit, meaning)


def _as_floats(values: Sequence[Any]) -> NDArray[np.float64]:
    try:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    except (TypeError, OverflowError, ValueError):  # pandas' NA, integers beyond the range of floats
        return np.array([np.nan if is_missing(v) else float_of(v) for v in values], dtype=np.float64)


def float_of(value: Any) -> float:
    """A number as float; an integer beyond its range as infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _numeric(
    name: str,
    values: NDArray[Any],
    dtype: str,
    unit: str | None,
    meaning: str | None,
    exact: Sequence[Any] | None = None,
) -> Measured:
    numbers = values.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    finite.sort()
    missing = int(np.count_nonzero(np.isnan(numbers)))
    column: dict[str, Any] = {
        "name": name,
        "dtype": dtype,
        "unit": unit,
        "missing": missing,
        "meaning": meaning,
    }
    size = len(finite)
    if size:
        changes = np.flatnonzero(finite[1:] != finite[:-1]) + 1
        column["distinct"] = len(changes) + 1
        whole = values.dtype.kind in "iu" or (exact is not None and all(isinstance(v, int) for v in exact))
        low, high = finite[0], finite[-1]
        if whole and exact is not None:
            column["low"], column["high"] = plain_cell(min(exact)), plain_cell(max(exact))
        elif whole:
            column["low"], column["high"] = plain_cell(values.min()), plain_cell(values.max())
        else:
            column["low"], column["high"] = float(low), float(high)
        with np.errstate(over="ignore", invalid="ignore"):
            column["mean"] = _finite(finite.mean())
            column["std"] = _finite(finite.std(ddof=1)) if size > 1 else None
        column["quantiles"] = _quantiles(finite)
        if len(changes) < 12 and size > len(changes) + 1:
            column["top"] = _frequent_numbers(finite, changes, whole)
    return Measured(Column(**column), values, numbers, None)


def _quantiles(ordered: NDArray[np.float64]) -> tuple[float, ...]:
    """Quantiles of sorted numbers, interpolated linearly as `numpy.quantile` does."""
    places = _QUANTILES * (len(ordered) - 1)
    below = places.astype(np.intp)
    above = np.minimum(below + 1, len(ordered) - 1)
    share = places - below
    return tuple((ordered[below] * (1.0 - share) + ordered[above] * share).tolist())


def _frequent_numbers(
    ordered: NDArray[np.float64], changes: NDArray[np.intp], whole: bool
) -> tuple[tuple[Cell, int], ...]:
    starts = np.concatenate(([0], changes))
    lengths = np.diff(np.concatenate((starts, [len(ordered)])))
    order = np.argsort(-lengths, kind="stable")[:_TOP]
    cells = ordered[starts[order]].tolist()
    counts = lengths[order].tolist()
    return tuple((int(c) if whole else c, n) for c, n in zip(cells, counts, strict=True))


def _other(
    name: str,
    values: Sequence[Any],
    present: list[Any],
    dtype: str,
    unit: str | None,
    meaning: str | None,
) -> Measured:
    try:
        counts = Counter(present)
    except TypeError:
        counts = Counter(str(plain_cell(v)) for v in present)
    distinct = len(counts)
    column: dict[str, Any] = {
        "name": name,
        "dtype": dtype,
        "unit": unit,
        "missing": len(values) - len(present),
        "distinct": distinct,
        "meaning": meaning,
    }
    if distinct and distinct <= max(20, len(present) // 2) and distinct < len(present):
        column["top"] = tuple((_top_cell(v), n) for v, n in counts.most_common(_TOP))
    if present and isinstance(present[0], datetime.date):  # a datetime is a date, too
        with contextlib.suppress(TypeError):  # with and without time zone, or other types between
            column["low"], column["high"] = plain_cell(min(counts)), plain_cell(max(counts))
    return Measured(Column(**column), values, None, counts)


def _top_cell(value: Any) -> Cell:
    cell = plain_cell(value)
    return f"{cell[:_MAX_TOP_CHARS]}…" if isinstance(cell, str) and len(cell) > _MAX_TOP_CHARS else cell


def _type_name(kinds: set[type]) -> str:
    names = sorted({"string": "string", "str": "string"}.get(kind.__name__, kind.__name__) for kind in kinds)
    if not names:
        return "empty"
    if len(names) == 1:
        return names[0]
    return "float" if names == ["float", "int"] else f"mixed ({', '.join(names[:4])})"


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _short(text: str) -> str:
    text = encodable(text)
    if "\0" in text:  # many a server refuses a message that holds one
        text = text.replace("\0", "\u2400")
    return text if len(text) <= MAX_CELL_CHARS else f"{text[:MAX_CELL_CHARS]}…"
