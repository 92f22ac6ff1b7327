"""A table as columns of values, and how it becomes a `TableValue`."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sensorium.core.counted import counted
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import encodable
from sensorium.observations.notable import notable_rows
from sensorium.observations.profile import Measured, measure, plain_cell
from sensorium.observations.text_types import typed
from sensorium.observations.units import given_meaning
from sensorium.observations.values import Cell, NotableRow, TableValue

MAX_KEPT_CELLS = 200_000
"""Cells of one table that are kept; of wide tables fewer rows are kept."""
MAX_READ_CELLS = 4_000_000
"""Cells of one table that its profile is made from."""
MAX_COLUMNS = 16_384
"""Columns of one table that are looked at; as many as a workbook can have."""
_MAX_NAME_CHARS = 200


class Grid(NamedTuple):
    """A table as its source gives it."""

    names: Sequence[str]
    columns: Sequence[Sequence[Any]]
    """For each name its values (a list or a NumPy array), all of the same length."""
    dtypes: Sequence[str | None]
    """For each name the source's type; None to find it out."""
    row_numbers: Sequence[int]
    """For each row its number in the source, ascending."""
    total_rows: int
    """Rows of the source, where known; otherwise rows that were read."""
    labels: Sequence[str] | None = None
    """For each row its label."""
    is_text: bool = False
    """Whether all values are text of which the types must be found out."""
    decimal_comma: bool = False
    is_sample: bool = False
    notes: tuple[str, ...] = ()
    odd_rows: Mapping[int, str] = {}
    """Position of a row -> what was wrong with it."""


def rows_within(num_rows: int, num_columns: int, config: ReadConfig) -> int:
    """How many rows of a table are looked at, so that neither rows nor cells are too many."""
    return min(num_rows, config.max_rows, max(1, MAX_READ_CELLS // max(1, num_columns)))


def table_value(
    grid: Grid,
    config: ReadConfig,
    *,
    units: Mapping[str, str] | None = None,
    meanings: Mapping[str, str] | None = None,
) -> tuple[TableValue, tuple[str, ...]]:
    """Profile a table and choose the rows that are kept.

    Args:
        grid: The table.
        config: Limits.
        units: Name of a column -> unit.
        meanings: Name of a column -> what it means.

    Returns:
        The value, and notes for the part.
    """
    units, meanings = units or {}, meanings or {}
    grid = _narrowed(grid)
    names, notes = _unique_names(grid.names)
    measured = []
    for name, values, dtype in zip(names, grid.columns, grid.dtypes, strict=True):
        if grid.is_text:
            values, dtype = typed(values, decimal_comma=grid.decimal_comma)
        meaning = given_meaning(name, meanings)
        measured.append(measure(name, values, dtype=dtype, unit=units.get(name), meaning=meaning))
    found, num_duplicates = notable_rows(measured, grid.row_numbers, grid.odd_rows)
    if num_duplicates:
        notes += (f"{counted(num_duplicates, 'row')} like an earlier one",)
    kept = _kept_rows(len(grid.row_numbers), len(names), found, config)
    if len(kept) < len(grid.row_numbers):
        notes += (f"{len(kept):,} of {len(grid.row_numbers):,} rows are kept",)
        found = {row: reason for row, reason in found.items() if row in set(kept)}
    value = TableValue(
        columns=tuple(one.column for one in measured),
        num_rows=grid.total_rows,
        rows=_rows(measured, kept),
        row_numbers=tuple(int(grid.row_numbers[row]) for row in kept),
        index=None if grid.labels is None else tuple(grid.labels[row] for row in kept),
        notable=tuple(
            NotableRow(row=int(grid.row_numbers[row]), reason=reason) for row, reason in found.items()
        ),
        is_sample=grid.is_sample,
    )
    return value, (*grid.notes, *notes)


def _narrowed(grid: Grid) -> Grid:
    width = len(grid.names)
    if width <= MAX_COLUMNS:
        return grid
    return grid._replace(
        names=grid.names[:MAX_COLUMNS],
        columns=grid.columns[:MAX_COLUMNS],
        dtypes=grid.dtypes[:MAX_COLUMNS],
        notes=(*grid.notes, f"the first {MAX_COLUMNS:,} of {width:,} columns were read"),
    )


def _rows(measured: Sequence[Measured], kept: Sequence[int]) -> tuple[tuple[Cell, ...], ...]:
    columns = [[plain_cell(one.values[row]) for row in kept] for one in measured]
    return tuple(zip(*columns, strict=True)) if columns else tuple(() for _ in kept)


def _kept_rows(num_rows: int, num_columns: int, found: Mapping[int, str], config: ReadConfig) -> list[int]:
    """Rows that are kept: the notable ones, the first, the last, and some spread evenly between."""
    limit = min(config.keep_rows, max(6, MAX_KEPT_CELLS // max(1, num_columns)))
    if num_rows <= limit:
        return list(range(num_rows))
    chosen = set(list(found)[: limit // 2])
    left = limit - len(chosen)
    head, tail = (left + 1) // 2, left // 4
    chosen.update(range(head))
    chosen.update(range(num_rows - tail, num_rows))
    rest = [row for row in range(num_rows) if row not in chosen]
    spread = max(0, limit - len(chosen))
    chosen.update(rest[i * len(rest) // spread] for i in range(spread))
    return sorted(chosen)


def _unique_names(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    unique: list[str] = []
    taken: set[str] = set()
    repeated = 0
    for position, given in enumerate(names):
        name = encodable(given[:_MAX_NAME_CHARS]) or f"column {position + 1}"
        if name in taken:
            repeated += 1
            count = 2
            while f"{name} ({count})" in taken:
                count += 1
            name = f"{name} ({count})"
        taken.add(name)
        unique.append(name)
    if not repeated:
        return unique, ()
    return unique, (f"{repeated:,} columns have the name of an earlier one and are numbered here",)
