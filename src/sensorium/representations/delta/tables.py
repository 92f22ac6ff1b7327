"""Differences of tables: rows, columns, cells and profiles."""

from collections.abc import Iterator, Sequence
from typing import Any

from sensorium.core.exact_json import from_json, to_json
from sensorium.observations.values import Column, TableValue
from sensorium.representations.delta.base import CellChange, FieldDelta, RowAdded, RowRun, TableDelta
from sensorium.representations.delta.fields import (
    apply_data,
    apply_fields,
    data_delta,
    field_delta,
    same,
)
from sensorium.representations.delta.sequences import Block, gaps, matching_blocks

_OWN_FIELDS = frozenset({"columns", "rows", "row_numbers"})

Row = tuple[Any, ...]


def table_delta(old: TableValue, new: TableValue) -> TableDelta | FieldDelta:
    """How a table changed; by its fields when rows, row numbers and columns do not fit together."""
    if not (_is_regular(old) and _is_regular(new)):
        return field_delta(old, new)
    columns, sources = _columns(old.columns, new.columns)
    profiles = []
    for at, source in enumerate(sources):
        if source >= 0:
            change = data_delta(old.columns[source].model_dump(), new.columns[at].model_dump())
            if change is not None:
                profiles.append((at, change))
    before = old.rows if columns is None else tuple(_projected(old.rows, sources))
    pairs = _row_pairs(old, before, new)
    cells = [
        CellChange(j, at, to_json(value))
        for i, j in pairs
        if before[i] is not new.rows[j]
        for at, value in _changed_cells(before[i], new.rows[j])
    ]
    kept = {j for _, j in pairs}
    added = [RowAdded(j, new.row_numbers[j], to_json(row)) for j, row in enumerate(new.rows) if j not in kept]
    runs = _runs(pairs, old.row_numbers, new.row_numbers)
    return TableDelta(
        columns=columns,
        profiles=tuple(profiles),
        runs=None if runs == _all_rows(old) else runs,
        added=tuple(added),
        cells=tuple(cells),
        fields=field_delta(old, new, _OWN_FIELDS).changed,
    )


def apply_table(old: TableValue, delta: TableDelta) -> TableValue:
    """The new table.

    Raises:
        ValueError, TypeError, KeyError, IndexError: The change does not fit.
    """
    columns, rows = list(old.columns), list(old.rows)
    if delta.columns is not None:
        columns = [entry if isinstance(entry, Column) else old.columns[entry] for entry in delta.columns]
        sources = [-1 if isinstance(entry, Column) else entry for entry in delta.columns]
        rows = list(_projected(rows, sources))
    for at, change in delta.profiles:
        columns[at] = Column.model_validate(apply_data(columns[at].model_dump(), change))
    runs = _all_rows(old) if delta.runs is None else delta.runs
    kept = [
        (number + run.shift, rows[at])
        for run in runs
        for at, number in enumerate(_numbers(old.row_numbers, run), run.start)
    ]
    merged, stays = [], iter(kept)
    places = {row.at: row for row in delta.added}
    for at in range(len(kept) + len(places)):
        row = places.get(at)
        merged.append(next(stays) if row is None else (row.number, tuple(from_json(row.cells))))
    numbers, rows = [number for number, _ in merged], [row for _, row in merged]
    for row_at, column, value in delta.cells:
        cells = list(rows[row_at])
        cells[column] = from_json(value)
        rows[row_at] = tuple(cells)
    own = {"columns": tuple(columns), "rows": tuple(rows), "row_numbers": tuple(numbers)}
    return apply_fields(old, delta.fields, own)


def kept_rows(delta: TableDelta, old: TableValue) -> Iterator[tuple[int, int]]:
    """For each row that stays its place among the old kept rows and among the new ones, in order."""
    places = {row.at for row in delta.added}
    new = 0
    for run in _all_rows(old) if delta.runs is None else delta.runs:
        for at in range(run.start, run.start + run.length):
            while new in places:
                new += 1
            yield at, new
            new += 1


def _is_regular(table: TableValue) -> bool:
    width = len(table.columns)
    return len(table.rows) == len(table.row_numbers) and all(len(row) == width for row in table.rows)


def _columns(
    old: Sequence[Column], new: Sequence[Column]
) -> tuple[tuple[int | Column, ...] | None, list[int]]:
    """`TableDelta.columns`, and for each new column its place among the old ones or -1."""
    places: dict[str, list[int]] = {}
    for at, column in enumerate(old):
        places.setdefault(column.name, []).append(at)
    sources = [places[column.name].pop(0) if places.get(column.name) else -1 for column in new]
    if sources == list(range(len(old))):
        return None, sources
    return tuple(new[at] if source < 0 else source for at, source in enumerate(sources)), sources


def _projected(rows: Sequence[Row], sources: Sequence[int]) -> Iterator[Row]:
    for row in rows:
        yield tuple(None if source < 0 else row[source] for source in sources)


def _row_pairs(old: TableValue, before: Sequence[Row], new: TableValue) -> list[tuple[int, int]]:
    """Rows that stay, as places on both sides: equal ones first, then by number, then by place."""
    blocks = matching_blocks(list(map(repr, before)), list(map(repr, new.rows)))
    pairs = [(i + step, j + step) for i, j, length in blocks for step in range(length)]
    for gap in gaps(blocks, len(before), len(new.rows)):
        numbers_old = old.row_numbers[gap.old_start : gap.old_end]
        numbers_new = new.row_numbers[gap.new_start : gap.new_end]
        inner = matching_blocks(numbers_old, numbers_new)
        if not inner:
            inner = [Block(0, 0, min(len(numbers_old), len(numbers_new)))]
        pairs.extend(
            (gap.old_start + i + step, gap.new_start + j + step)
            for i, j, length in inner
            for step in range(length)
            if 2 * len(_changed_cells(before[gap.old_start + i + step], new.rows[gap.new_start + j + step]))
            <= len(new.columns)
        )
    return sorted(pairs)


def _changed_cells(old: Row, new: Row) -> list[tuple[int, Any]]:
    return [
        (at, after)
        for at, (before, after) in enumerate(zip(old, new, strict=True))
        if not same(before, after)
    ]


def _runs(
    pairs: Sequence[tuple[int, int]], numbers_old: Sequence[int], numbers_new: Sequence[int]
) -> tuple[RowRun, ...]:
    runs: list[RowRun] = []
    for i, j in pairs:
        shift = numbers_new[j] - numbers_old[i]
        if runs and runs[-1].start + runs[-1].length == i and runs[-1].shift == shift:
            runs[-1] = runs[-1]._replace(length=runs[-1].length + 1)
        else:
            runs.append(RowRun(i, 1, shift))
    return tuple(runs)


def _all_rows(table: TableValue) -> tuple[RowRun, ...]:
    return (RowRun(0, len(table.rows), 0),) if table.rows else ()


def _numbers(numbers: Sequence[int], run: RowRun) -> Sequence[int]:
    end = run.start + run.length
    if run.start < 0 or run.length < 0 or end > len(numbers):
        raise IndexError(f"rows {run.start} to {end} of {len(numbers)}")
    return numbers[run.start : end]
