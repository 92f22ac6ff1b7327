"""Tables as segments: what each column holds, then rows, the notable ones with the reason."""

import re
from collections.abc import Sequence

from sensorium.core.counted import counted
from sensorium.observations.base import Part
from sensorium.observations.values import Cell, Column, TableValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import TableConfig
from sensorium.representations.layout.typed import value_of

_WIDE = 40
"""Columns from which on a table is wide: columns are grouped, rows divided."""
_CHUNK = 20
"""Cells of a wide table's row in one segment."""
_FEW_ROWS = 8
"""Rows up to which a profile says no more than the rows themselves."""
_MAX_CELL = 200
_MAX_HEADER = 400
_TRAILING_NUMBER = re.compile(r"\d+(?=\D*$)")


def lay_out_table(part: Part, config: TableConfig = TableConfig()) -> Document:
    """Lay a table out.

    Args:
        part: A part with a `TableValue`.
        config: `max_rows`: the first, the last and the notable rows come first, then rows spread between.

    Returns:
        The document: notes, a line per column (per group of like columns in tables of more than 40), the
        pinned names of the columns, and a line per row, numbered as in the source.
    """
    value = value_of(part, TableValue, "tables")
    if len(value.row_numbers) != len(value.rows):  # not numbered, or wrongly
        value = value.model_copy(update={"row_numbers": tuple(range(len(value.rows)))})
    segments = [
        Segment(_clean(f"note: {note}"), 2.0, f"note {number}") for number, note in enumerate(part.notes, 1)
    ]
    is_wide = len(value.columns) > _WIDE
    segments += _grouped(value.columns) if is_wide else _profiles(value)
    chosen = _chosen(value, config.max_rows)
    reasons = {notable.row: _clean(notable.reason) for notable in value.notable}
    if chosen:
        names = [column.name for column in value.columns]
        header = "row | " + " | ".join(map(_clean, names))
        if is_wide or len(header) > _MAX_HEADER:
            header = f"rows, as name=value for {len(names):,} columns:"
            is_wide = True
        parent = len(segments)
        segments.append(Segment(header, 3.0, "names of columns", None, True))
        for place, position in enumerate(chosen):
            if is_wide:
                segments += _wide_row(value, position, reasons, parent)
            else:
                segments.append(_row(value, position, reasons, parent, place in (0, len(chosen) - 1)))
    is_sample = any(note.startswith("a sample of") for note in part.notes)
    rows = f"{'sample of ' if is_sample else ''}{counted(value.num_rows, 'row')}"
    title = f"table, {rows} x {counted(len(value.columns), 'column')}"
    if len(chosen) < value.num_rows:
        title += f", {len(chosen):,} of them laid out"
    return Document(title=title, segments=tuple(segments), unit="lines")


def _profiles(value: TableValue) -> list[Segment]:
    if value.num_rows <= _FEW_ROWS and value.rows:
        types = ", ".join(f"{_clean(c.name)} {_type(c)}" for c in value.columns)
        return [Segment(f"types: {types}", 1.5, "types")] if types else []
    segments = []
    for column in value.columns:
        weight = 2.0 + 0.5 * (column.missing > 0) + 0.5 * column.dtype.startswith(("mixed", "float (mixed"))
        text = describe_column(column, value.num_rows)
        segments.append(Segment(text, weight, f"column {column.name}"))
    return segments


def describe_column(column: Column, num_rows: int) -> str:
    """A column on one line: ``price (float64, EUR): 0.5 to 1999, median 20, mean 23.1; 3 missing``."""
    said: list[str] = []
    if column.low is not None:
        said.append(f"{_shown(column.low)} to {_shown(column.high)}")
    if column.quantiles and column.distinct != 1:
        said.append(f"median {_short(column.quantiles[len(column.quantiles) // 2])}")
    if column.mean is not None and column.distinct != 1:
        spread = f" ± {_short(column.std)}" if column.std is not None else ""
        said.append(f"mean {_short(column.mean)}{spread}")
    if column.top and (column.low is None or (column.distinct or 0) <= 12):
        said.append("; ".join(f"{_shown(cell)} ({count:,}x)" for cell, count in column.top))
    if column.distinct is not None and (column.distinct > len(column.top) or not column.top):
        said.append(f"{column.distinct:,} distinct")
    if column.missing:
        share = f" ({column.missing / num_rows:.0%})" if column.missing * 200 >= num_rows > 0 else ""
        said.append(f"{column.missing:,} missing{share}")
    meaning = f" [{column.meaning}]" if column.meaning else ""
    return _clean(f"{column.name} ({_type(column)}){meaning}: {', '.join(said) or 'no values'}")


def _type(column: Column) -> str:
    return f"{column.dtype}, {column.unit}" if column.unit else column.dtype


def _grouped(columns: Sequence[Column]) -> list[Segment]:
    """Columns with like names and types as one line; the first groups are pinned."""
    groups: dict[tuple[str, str], list[Column]] = {}
    for column in columns:
        groups.setdefault((_TRAILING_NUMBER.sub("#", column.name), column.dtype), []).append(column)
    if len(groups) > _WIDE:  # names have nothing in common
        groups = {}
        for column in columns:
            groups.setdefault(("", column.dtype), []).append(column)
    segments = []
    for number, members in enumerate(sorted(groups.values(), key=len, reverse=True)):
        text = _describe_group(members)
        segments.append(
            Segment(text, 2.5, f"columns {members[0].name}", None, number < 3 and len(text) < 300)
        )
        if 1 < len(members) <= 500 and len(columns) <= 1_000:
            parent = len(segments) - 1
            segments += [
                Segment(
                    f"  {describe_column(one, 0)}",
                    0.6 + 0.6 * (one.missing > 0),
                    f"column {one.name}",
                    parent,
                )
                for one in members
            ]
    return segments


def _describe_group(members: Sequence[Column]) -> str:
    if len(members) == 1:
        return describe_column(members[0], 0)
    first, last = _clean(members[0].name), _clean(members[-1].name)
    said = [f"{first} ... {last}: {len(members):,} columns of {members[0].dtype}"]
    lows = [c.low for c in members if isinstance(c.low, int | float)]
    highs = [c.high for c in members if isinstance(c.high, int | float)]
    if lows and highs:
        said.append(f"{_shown(min(lows))} to {_shown(max(highs))}")
    missing = sum(column.missing for column in members)
    if missing:
        affected = sum(column.missing > 0 for column in members)
        said.append(f"{missing:,} missing values in {affected:,} of them")
    return ", ".join(said)


def _chosen(value: TableValue, max_rows: int) -> list[int]:
    """Positions of the kept rows that are laid out, ascending."""
    count = len(value.rows)
    if count <= max_rows:
        return list(range(count))
    if max_rows <= 0:
        return []
    position = {number: i for i, number in enumerate(value.row_numbers)}
    head, tail = max(1, max_rows // 5), max_rows // 10
    order = [*range(head), *range(count - tail, count)]
    order += [position[notable.row] for notable in value.notable if notable.row in position]
    chosen = list(dict.fromkeys(order))[:max_rows]
    rest = sorted(set(range(count)) - set(chosen))
    left = max_rows - len(chosen)
    return sorted(chosen + [rest[i * len(rest) // left] for i in range(left)])


def _row(value: TableValue, position: int, reasons: dict[int, str], parent: int, is_edge: bool) -> Segment:
    number = value.row_numbers[position]
    label = f"{number}" if value.index is None else f"{number} {_clean(value.index[position])}"
    text = f"{label} | " + " | ".join(map(_shown, value.rows[position]))
    reason = reasons.get(number)
    if reason is not None:
        return Segment(f"{text}  <- {reason}", _notable_weight(reason), f"row {number}", parent)
    early = value.row_numbers[position] < 3
    return Segment(text, 1.6 if is_edge else 1.3 if early else 0.8, f"row {number}", parent)


def _notable_weight(reason: str) -> float:
    """What the profile does not tell weighs more than a lowest or highest value or a gap, which it does."""
    reasons = reason.split("; ")
    told = (" is the highest (", " is the lowest (", " is missing")
    return 3.0 if any(not any(words in r for words in told) for r in reasons) else 1.5


def _wide_row(value: TableValue, position: int, reasons: dict[int, str], parent: int) -> list[Segment]:
    number, cells = value.row_numbers[position], value.rows[position]
    reason = reasons.get(number)
    label = f"row {number}" if value.index is None else f"row {number} {_clean(value.index[position])}"
    segments = []
    if reason is not None:
        segments.append(Segment(f"{label}: {reason}", _notable_weight(reason), f"row {number}", parent))
    for start in range(0, len(cells), _CHUNK):
        stop = min(start + _CHUNK, len(cells))
        pairs = (f"{_clean(value.columns[i].name)}={_shown(cells[i])}" for i in range(start, stop))
        weight = 0.8 if start == 0 else 0.4
        place = f"row {number}, columns {start + 1}-{stop}"
        segments.append(Segment(f"{label}: {', '.join(pairs)}", weight, place, parent))
    return segments


def _shown(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        text = repr(cell)
        return text.removesuffix(".0") if len(text) <= 12 else f"{cell:.8g}"
    if isinstance(cell, str):
        return _clean(cell if len(cell) <= _MAX_CELL else f"{cell[:_MAX_CELL]}…")
    return str(cell)


def _short(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}"


def _clean(text: str) -> str:
    """Text on one line."""
    return " ".join(text.split()) if any(c in text for c in "\n\r\t") else text
