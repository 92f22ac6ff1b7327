"""Long parts as numbered lines, so that what is said of them can name its source."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sensorium.observations.base import Part
from sensorium.observations.values import (
    CellValue,
    CodeValue,
    Column,
    OutputValue,
    StructuredValue,
    TableValue,
    TextValue,
)

MAX_LINES = 200_000
"""Lines that are made of structured data; what lies behind is not seen."""
ROW_CHARS = 600
"""A longer line goes over several rows of the same number."""


class Line(NamedTuple):
    """One line of a part."""

    text: str
    place: str
    """What it is called outside: ``line 12``, ``row 40``, ``column price``, ``orders[3].price``."""


class Row(NamedTuple):
    """A line, or a stretch of a very long one, as a model reads it."""

    number: int
    """Of the line, from 1."""
    text: str

    def __str__(self) -> str:
        return f"{self.number}| {self.text}"


def has_lines(part: Part) -> bool:
    """Whether a part is of a kind that has lines."""
    kinds = TextValue | CodeValue | CellValue | OutputValue | TableValue | StructuredValue
    return isinstance(part.value, kinds)


def lines_of(part: Part) -> list[Line]:
    """A part as lines: of text its own, of a table one per column and row, of structured data one per value.

    Returns:
        Lines; line number n is the one at position n - 1. Empty for other kinds.
    """
    match part.value:
        case TableValue() as table:
            return [*map(_column, table.columns), *_rows(table)]
        case StructuredValue(format="sql", data={"columns": list(names), "rows": list(rows)}):
            return [Line(_pairs(names, row), f"row {number}") for number, row in enumerate(rows[:MAX_LINES])]
        case StructuredValue(data=data):
            return list(_leaves(data))
        case _:
            text = part.text or ""
            return [Line(line, f"line {n}") for n, line in enumerate(text.split("\n"), start=1)]


def rows_of(lines: Sequence[Line]) -> list[Row]:
    """Lines as a model reads them, blank ones left out."""
    rows = []
    for number, line in enumerate(lines, start=1):
        text = line.text.rstrip()
        if text:
            rows += [Row(number, text[i : i + ROW_CHARS]) for i in range(0, len(text), ROW_CHARS)]
    return rows


def where(lines: Sequence[Line], first: int, last: int) -> str:
    """What lines `first` to `last` (numbers from 1) are called: ``lines 12-18``, ``rows 3-9``, ``line 4``."""
    begin, end = lines[first - 1].place, lines[last - 1].place
    if begin == end:
        return begin
    word, _, low = begin.partition(" ")
    same, _, high = end.partition(" ")
    is_counted = word == same and low.isdigit() and high.isdigit()
    return f"{word}s {low}-{high}" if is_counted else f"{begin} to {end}"


def _column(column: Column) -> Line:
    known: dict[str, Any] = {
        "unit": column.unit,
        "missing": column.missing or None,
        "distinct": column.distinct,
        "low": column.low,
        "high": column.high,
        "mean": column.mean,
        "std": column.std,
        "meaning": column.meaning,
        "top": ", ".join(f"{value} ({count})" for value, count in column.top[:5]) or None,
    }
    said = ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
    return Line(f"column {column.name} ({column.dtype}): {said}", f"column {column.name}")


def _rows(table: TableValue) -> Iterator[Line]:
    names = [column.name for column in table.columns]
    reasons = {notable.row: notable.reason for notable in table.notable}
    for position, (number, row) in enumerate(zip(table.row_numbers, table.rows, strict=False)):
        label = f"{table.index[position]}: " if table.index is not None else ""
        note = f"  ({reasons[number]})" if number in reasons else ""
        yield Line(f"{label}{_pairs(names, row)}{note}", f"row {number}")


def _pairs(names: Sequence[Any], row: Any) -> str:
    return ", ".join(f"{name}={cell}" for name, cell in zip(names, row, strict=False) if cell is not None)


def _leaves(data: Any) -> Iterator[Line]:
    """Values with their paths, depth first and without recursion."""
    stack: list[tuple[str, Any]] = [("", data)]
    left = MAX_LINES
    while stack and left:
        path, value = stack.pop()
        if isinstance(value, dict) and value:
            inner = [(f"{path}.{key}" if path else str(key), one) for key, one in value.items()]
            stack += reversed(inner)
        elif isinstance(value, list) and value:
            stack += [(f"{path}[{i}]", value[i]) for i in reversed(range(len(value)))]
        else:
            left -= 1
            said = " ".join(value.split()) if isinstance(value, str) else json.dumps(value, default=str)
            yield Line(f"{path}: {said}" if path else said, path or "line 1")
