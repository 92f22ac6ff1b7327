"""Changes of tables as an agent reads them: ``row 12: price 3 -> 4``."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from sensorium.core.counted import counted
from sensorium.core.exact_json import from_json
from sensorium.observations.values import Column, TableValue
from sensorium.representations.base import Segment
from sensorium.representations.delta.base import AnyDelta, TableDelta
from sensorium.representations.delta.fields import plain
from sensorium.representations.delta.render_data import data_changes, seen, shown
from sensorium.representations.delta.tables import kept_rows, table_delta


def table_changes(old: TableValue, new: TableValue, change: AnyDelta) -> tuple[str, list[Segment]]:
    """What changed in a table: a summary of a few words, and a segment per row, column or measure."""
    delta = change if isinstance(change, TableDelta) else table_delta(old, new)
    if not isinstance(delta, TableDelta):
        segments = [
            segment
            for name in delta.changed
            for segment in data_changes(name, plain(getattr(old, name)), plain(getattr(new, name)))
        ]
        return "", segments
    kept = list(kept_rows(delta, old))
    stays = {i for i, _ in kept}
    gone = [number for i, number in enumerate(old.row_numbers) if i not in stays]
    rows = len({cell.row for cell in delta.cells})
    summary = ", ".join(
        f"{counted(count, 'row')} {what}"
        for count, what in ((rows, "changed"), (len(delta.added), "new"), (len(gone), "gone"))
        if count
    )
    segments = _column_changes(old, new, delta)
    segments.extend(_cell_changes(old, new, delta, {j: i for i, j in kept}))
    if delta.added:
        header = " | ".join(column.name for column in new.columns)
        segments.append(Segment(f"new rows, columns {header}", 1.5))
        parent = len(segments) - 1
        for row in delta.added:
            cells = " | ".join(shown(from_json(cell)) for cell in row.cells)
            name = _row_name(new, row.at)
            segments.append(Segment(f"+ {name}: {cells}", 1.2, place=f"row {row.number}", parent=parent))
    if gone:
        segments.append(Segment(f"- rows {ranges(gone)} (numbers before)", 1.0))
    segments.extend(_renumbered(delta, old))
    for name in delta.fields:
        if name != "notable":
            segments.extend(data_changes(name, plain(getattr(old, name)), plain(getattr(new, name))))
    for note in new.notable if "notable" in delta.fields else ():
        segments.append(Segment(f"row {note.row}: {note.reason}", 0.5, place=f"row {note.row}"))
    return summary, segments


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers, shortened: ``3, 7-9``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _column_changes(old: TableValue, new: TableValue, delta: TableDelta) -> list[Segment]:
    segments = []
    sources: Sequence[int | Column] = range(len(old.columns)) if delta.columns is None else delta.columns
    if delta.columns is not None:
        stays = {source for source in sources if isinstance(source, int)}
        for at, column in enumerate(old.columns):
            if at not in stays:
                segments.append(Segment(f"- column {column.name}", 1.5))
        for source in sources:
            if isinstance(source, Column):
                about = ", ".join(
                    f"{name} {shown(value)}"
                    for name, value in source.model_dump(exclude={"name"}).items()
                    if value not in (None, (), 0)
                )
                segments.append(Segment(f"+ column {source.name}: {about}", 1.5))
        segments.append(Segment(f"columns now: {', '.join(column.name for column in new.columns)}", 1.0))
    for at, _ in delta.profiles:
        source = sources[at]
        if isinstance(source, int):
            parts = data_changes("", old.columns[source].model_dump(), new.columns[at].model_dump())
            about = ", ".join(part.text.removeprefix(".") for part in parts)
            segments.append(Segment(f"column {new.columns[at].name}: {about}", 0.8))
    return segments


def _cell_changes(
    old: TableValue, new: TableValue, delta: TableDelta, row_of: dict[int, int]
) -> list[Segment]:
    sources: Sequence[int | Column] = range(len(old.columns)) if delta.columns is None else delta.columns
    segments = []
    for row, cells in groupby(delta.cells, key=lambda cell: cell.row):
        told = []
        for cell in cells:
            source, name = sources[cell.column], new.columns[cell.column].name
            value = shown(from_json(cell.value))
            if isinstance(source, int):
                told.append(f"{name} {seen(old.rows[row_of[row]][source])} -> {value}")
            else:
                told.append(f"{name} = {value}")
        segments.append(
            Segment(f"{_row_name(new, row)}: {', '.join(told)}", 1.2, place=f"row {new.row_numbers[row]}")
        )
    return segments


def _row_name(table: TableValue, at: int) -> str:
    label = table.index[at] if table.index is not None and at < len(table.index) else ""
    return f"row {table.row_numbers[at]}{f' ({label})' if label else ''}"


def _renumbered(delta: TableDelta, old: TableValue) -> list[Segment]:
    segments = []
    for run in delta.runs or ():
        if run.shift:
            first, last = old.row_numbers[run.start], old.row_numbers[run.start + run.length - 1]
            name = f"row {first}" if first == last else f"rows {first} to {last}"
            segments.append(Segment(f"{name}: number {run.shift:+d}", 0.3))
    return segments
