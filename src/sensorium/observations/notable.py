"""Rows of a table that stand out: extremes, outliers, gaps, rare categories, duplicates, broken rows."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sensorium.observations.profile import PLAIN_TYPES, Measured, is_missing, plain_cell

MAX_NOTABLE = 80
"""Rows of one table that are named at most."""
_MAX_COLUMNS = 200
"""Columns that are looked through."""
_OUTLIER_Z = 6.0
"""Robust z-score (distance from the median / 1.4826 x median absolute deviation) of an outlier."""
_PER_KIND = 3
"""Rows that one column may name for one reason."""
_MAX_OUTLIERS = 16
"""Outliers that one column may name."""
_RARE_SHARE = 0.01
_MAX_CHARS = 40


_Add = Callable[[int, str], None]
"""Takes a row with a reason."""


def notable_rows(
    columns: Sequence[Measured], row_numbers: Sequence[int], odd_rows: Mapping[int, str]
) -> tuple[dict[int, str], int]:
    """Rows that stand out, with the reason.

    Args:
        columns: All columns, measured.
        row_numbers: For each row that was read its number in the source.
        odd_rows: Row -> what was wrong with it when it was read.

    Returns:
        Position of a row among those read -> reasons; and how many rows repeat an earlier one.
    """
    found: dict[int, list[str]] = {}
    num_rows = len(row_numbers)

    def add(row: int, reason: str) -> None:
        if row in found:
            about = f"{reason.partition(' is ')[0]} is an outlier"  # then that it is an extreme says no more
            if len(found[row]) < 4 and not any(known.startswith(about) for known in found[row]):
                found[row].append(reason)
        elif len(found) < MAX_NOTABLE:
            found[row] = [reason]

    for row, reason in list(odd_rows.items())[:_PER_KIND]:
        add(row, reason)
    seen = columns[:_MAX_COLUMNS]
    for measured in seen:
        _misfits(measured, add)
    for measured in seen:
        _outliers(measured, add)
    duplicates, count = _duplicates(seen, num_rows)
    for row, earlier in duplicates:
        add(row, f"repeats row {row_numbers[earlier]:,}")
    for measured in seen:
        _gaps(measured, num_rows, add)
        _rare(measured, num_rows, add)
    for measured in seen:
        _extremes(measured, num_rows, add)
    return {row: "; ".join(reasons) for row, reasons in sorted(found.items())}, count


def _misfits(measured: Measured, add: _Add) -> None:
    """Infinite values, and texts in a numeric column."""
    numbers, name = measured.numbers, measured.column.name
    if numbers is None:
        return
    for row in np.flatnonzero(np.isinf(numbers))[:_PER_KIND].tolist():
        add(row, f"{name} is infinite")
    if measured.column.dtype == "float (mixed)":
        wrong = [row for row, value in enumerate(measured.values) if isinstance(value, str)]
        for row in wrong[:_PER_KIND]:
            add(row, f"{name} is not a number ({_quoted(measured.values[row])})")


def _outliers(measured: Measured, add: _Add) -> None:
    numbers, column = measured.numbers, measured.column
    if numbers is None or column.quantiles is None or (column.distinct or 0) < 5 or len(numbers) < 10:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        distances = np.abs(numbers - column.quantiles[2])
        distances[~np.isfinite(distances)] = 0.0
        scale = 1.4826 * float(np.median(distances))
        if not scale > 0.0:
            return
        z = distances / scale
    far = np.flatnonzero(z > _OUTLIER_Z)
    if not 0 < len(far) <= max(_PER_KIND, len(numbers) // 20):
        return  # a long tail is not a set of outliers
    for row in far[np.argsort(-z[far], kind="stable")][:_MAX_OUTLIERS].tolist():
        add(row, f"{column.name} is an outlier ({z[row]:.0f} deviations)")


def _extremes(measured: Measured, num_rows: int, add: _Add) -> None:
    numbers, column = measured.numbers, measured.column
    if numbers is None or column.quantiles is None or (column.distinct or 0) < 3:
        return
    if column.distinct == num_rows and num_rows > 2 and _is_counter(numbers):
        return
    finite = np.where(np.isfinite(numbers), numbers, np.nan)
    high, low = int(np.nanargmax(finite)), int(np.nanargmin(finite))
    add(high, f"{column.name} is the highest ({_number(numbers[high])})")
    add(low, f"{column.name} is the lowest ({_number(numbers[low])})")


def _is_counter(numbers: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> bool:
    """Whether a column only counts rows: its extremes are the first and last row."""
    steps = np.diff(numbers)
    return bool(np.all(steps == steps[0]))


def _gaps(measured: Measured, num_rows: int, add: _Add) -> None:
    missing, name = measured.column.missing, measured.column.name
    if not 0 < missing <= max(_PER_KIND, num_rows // 20):
        return
    if measured.numbers is not None and measured.column.dtype != "float (mixed)":
        rows = np.flatnonzero(np.isnan(measured.numbers))[:_PER_KIND].tolist()
    else:
        rows = [row for row, value in enumerate(measured.values) if is_missing(value)][:_PER_KIND]
    for row in rows:
        add(row, f"{name} is missing")


def _rare(measured: Measured, num_rows: int, add: _Add) -> None:
    counts = measured.counts
    if counts is None or num_rows < 20 or not 2 <= len(counts) <= min(50, num_rows // 4):
        return
    limit = max(1.0, _RARE_SHARE * num_rows)
    rare = {value for value, count in counts.items() if count <= limit}
    if not rare or len(rare) > len(counts) // 2 + 1:
        return
    left = _PER_KIND
    for row, value in enumerate(measured.values):
        try:
            is_rare = value in rare
        except TypeError:
            return
        if is_rare:
            rare.discard(value)
            add(row, f"{measured.column.name} is rare ({_quoted(value)}, {counts[value]:,} of {num_rows:,})")
            left -= 1
            if not left or not rare:
                return


def _duplicates(columns: Sequence[Measured], num_rows: int) -> tuple[list[tuple[int, int]], int]:
    """Rows that repeat an earlier one: the first few with that row, and how many there are."""
    if len(columns) < 2 or num_rows < 2:
        return [], 0
    first: dict[object, int] = {}
    repeats: list[tuple[int, int]] = []
    count = 0
    lists = [_comparable(measured) for measured in columns]
    for number, row in enumerate(zip(*lists, strict=True)):
        earlier = first.setdefault(row, number)
        if earlier != number:
            count += 1
            if len(repeats) < _PER_KIND:
                repeats.append((number, earlier))
    return repeats, count


def _comparable(measured: Measured) -> list[object]:
    values = measured.values
    if measured.numbers is not None and isinstance(values, np.ndarray):
        cells: list[object] = values.tolist()
        return [None if v != v else v for v in cells] if values.dtype.kind == "f" else cells
    if set(map(type, values)) <= PLAIN_TYPES:
        return list(values)
    return [_hashable(value) for value in values]


def _hashable(value: object) -> object:
    if isinstance(value, str | int | float) and value == value:
        return value
    return str(plain_cell(value))


def _quoted(value: object) -> str:
    text = str(plain_cell(value))
    return repr(text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…")


def _number(value: float) -> str:
    return f"{value:.6g}"
