"""Structured data as segments: notes on its fields, then a line per record or value.

Objects are indented as in YAML, with their values in JSON; a list of alike flat records is a table whose
names stand once.
"""

import json
import re
from json.encoder import encode_basestring
from typing import Any

from sensorium.core.counted import counted
from sensorium.observations.base import Part
from sensorium.observations.values import FieldNote, StructuredValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import TextConfig
from sensorium.representations.layout.typed import value_of

ONE_LINE = 160
"""Characters up to which an object or list is written on one line."""
RECORD_LINE = 400
"""Characters up to which an object that is an element of a list is."""
_MAX_SEGMENTS = 50_000
_STRING_PIECE = 1_000
_MAX_KEY_CHARS = 200
"""Names are shown up to here; the whole of a longer one is in the part."""
_ERROR_WORDS = ("error", "exception", "fail", "fault", "warning", "reason", "critical", "invalid")
_PLAIN = re.compile(r"[A-Za-z](?:[\w .\-]*\w)?|\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
"""Text that cannot be taken for something else without quotes."""
_RESERVED = frozenset({"true", "false", "null", "NaN", "Infinity"})
_IDENTITY_WORDS = frozenset(
    {"id", "name", "title", "status", "state", "type", "code", "message", "key", "total"}
)


def lay_out_structured(part: Part, config: TextConfig | None = None) -> Document:
    """Lay structured data out, all of it.

    Args:
        part: A part with a `StructuredValue`.
        config: `max_chars` limits the length of the whole.

    Returns:
        The document: notes on fields first (weight by how much they say), then the data. The names of a table
        are pinned; extremes, errors, names and the first and last records weigh more; nothing and emptiness
        less.
    """
    value = value_of(part, StructuredValue, "structured data")
    writer = _Writer(value, (config or TextConfig()).max_chars)
    writer.write()
    return Document(title=f"{value.format}, {_size(value)}", segments=tuple(writer.segments), unit="lines")


def _size(value: StructuredValue) -> str:
    data = value.data
    if value.format == "sql" and isinstance(data, dict):
        return (
            f"{counted(len(data.get('rows', ())), 'row')}, {counted(len(data.get('columns', ())), 'column')}"
        )
    if isinstance(data, list):
        return f"list of {len(data):,}"
    if isinstance(data, dict):
        return f"object of {counted(len(data), 'field')}"
    return "one value"


class _Writer:
    def __init__(self, value: StructuredValue, max_chars: int) -> None:
        self.value = value
        self.segments: list[Segment] = []
        self.left = max_chars
        self.extremes = _extremes(value.fields)

    def write(self) -> None:
        self._fields(self.value.fields)
        data = self.value.data
        if self.value.format == "sql" and isinstance(data, dict) and {"columns", "rows"} <= data.keys():
            self._table(data["columns"], data["rows"], "rows", "", None)
        elif isinstance(data, list) and (names := _table_names(data)):
            self._table(names, [[row.get(name) for name in names] for row in data], "", "", None)
        else:
            self._walk(data)

    def _add(
        self, text: str, weight: float, place: str, parent: int | None, pinned: bool = False
    ) -> int | None:
        if self.left <= 0 or len(self.segments) >= _MAX_SEGMENTS:
            if self.segments and not self.segments[-1].text.startswith("... more"):
                self.segments.append(Segment("... more values are not shown ...", 0.5))
            return None
        self.left -= len(text)
        self.segments.append(Segment(text, weight, place, parent, pinned))
        return len(self.segments) - 1

    def _fields(self, fields: tuple[FieldNote, ...]) -> None:
        lines = [(note, line) for note in fields if (line := describe_field(note))]
        if not lines:
            return
        head = self._add("fields:", 1.2, "fields", None)
        for note, line in lines:
            said = 1.0 + 0.3 * sum(x is not None for x in (note.unit, note.low, note.meaning))
            given = note.meaning is not None and not note.meaning.endswith("?")
            self._add(f"  {line}", said + given, f"field {note.path}", head)
        self._add("data:", 0.5, "data", None)

    def _table(self, names: list[Any], rows: list[Any], path: str, indent: str, parent: int | None) -> None:
        columns = [str(name) for name in names]
        text = indent + " | ".join(columns)
        head = self._add(text, 2.0, path or "columns", parent, pinned=len(text) <= 400)
        keys = [f"{path}[].{name}" if path != "rows" else name for name in columns]
        weighted = [
            (self.extremes.get(key), _name_weight(name) > 2.0)
            for key, name in zip(keys, columns, strict=True)
        ]
        for number, row in enumerate(rows):
            cells = [_cell(cell) for cell in row]
            weight = 1.5 if number in (0, len(rows) - 1) else 0.8
            for cell, (bounds, is_error) in zip(row, weighted, strict=False):
                if bounds is not None and type(cell) in (int, float) and cell in bounds:
                    weight += 0.8
                if is_error and cell:
                    weight += 1.0
            if (
                self._add(indent + " | ".join(cells), weight, f"{path or 'row'} {number}".strip(), head)
                is None
            ):
                return

    def _walk(self, data: Any) -> None:
        """Depth first, without recursion: an entry is key, value, path, depth and parent."""
        stack: list[tuple[str, Any, str, int, int | None]] = [("", data, "", -1, None)]
        while stack:
            label, value, path, depth, parent = stack.pop()
            indent = "  " * max(depth, 0)
            if (
                not isinstance(value, dict | list)
                or not value
                or (path and _fits(value, len(label) + len(indent), is_record=label == "- "))
            ):
                if not self._leaf(indent + label, value, path, parent):
                    return
                continue
            above = parent
            if depth >= 0:
                count = f"  # {len(value):,} items" if isinstance(value, list) and len(value) > 5 else ""
                above = self._add(indent + label.rstrip() + count, _name_weight(path) + 0.3, path, parent)
                if above is None:
                    return
            names = _table_names(value) if isinstance(value, list) else None
            if names:
                rows = [[row.get(name) for name in names] for row in value]
                self._table(names, rows, path, indent + "  ", above)
                continue
            if isinstance(value, list) and not any(
                isinstance(inner, dict | list) and inner for inner in value
            ):
                if not self._row(value, path, indent + "  ", above):
                    return
                continue
            items: list[tuple[str, Any, str]]
            if isinstance(value, dict):
                items = [(f"{_key(k)}: ", v, f"{path}.{k}" if path else k) for k, v in value.items()]
            else:
                items = [("- ", v, f"{path}[{i}]") for i, v in enumerate(value)]
            stack += [(name, inner, where, depth + 1, above) for name, inner, where in reversed(items)]

    def _row(self, values: list[Any], path: str, indent: str, parent: int | None) -> bool:
        """A long list of plain values: as many on a line as fit."""
        bounds = self.extremes.get(_general(f"{path}[]"))
        begin, line, weight = 0, "", 1.0
        for index, value in enumerate(values):
            cell = _cell(value)
            if line and len(line) + len(cell) > ONE_LINE:
                if self._add(f"{indent}{line}", weight, f"{path}[{begin}..{index - 1}]", parent) is None:
                    return False
                begin, line, weight = index, "", 0.8
            line += f"{cell}, " if index < len(values) - 1 else cell
            if bounds is not None and value in bounds:
                weight += 0.5
        return (
            self._add(indent + line, weight + 0.2, f"{path}[{begin}..{len(values) - 1}]", parent) is not None
        )

    def _leaf(self, label: str, value: Any, path: str, parent: int | None) -> bool:
        text = _cell(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        weight = _name_weight(path) * _value_weight(value)
        bounds = self.extremes.get(_general(path)) if type(value) in (int, float) else None
        if bounds is not None and value in bounds:
            weight += 0.5
        if isinstance(value, str) and len(text) > _STRING_PIECE:
            position = self._add(label + text[:_STRING_PIECE], weight, path, parent)
            for begin in range(_STRING_PIECE, len(text), _STRING_PIECE):
                if position is None:
                    return False
                self._add(text[begin : begin + _STRING_PIECE], weight * 0.5, path, position)
            return position is not None
        return self._add(label + text, weight, path, parent) is not None


def describe_field(note: FieldNote) -> str:
    """One line about a field: ``orders[].price: number, EUR, 1.5 to 20, 3 % missing; what was paid?``."""
    said = [note.type]
    if note.unit:
        said.append(note.unit)
    if note.low is not None and note.high is not None:
        low, high = _number(note.low), _number(note.high)
        said.append(low if low == high else f"{low} to {high}")
    elif note.examples and note.distinct is not None and note.distinct <= len(note.examples):
        said.append("one of " + ", ".join(json.dumps(text, ensure_ascii=False) for text in note.examples))
    if note.distinct is not None and note.distinct > 3 and note.low is None:
        said.append(f"{note.distinct:,} different")
    if note.missing > 0:
        said.append(f"{max(note.missing * 100, 0.1):.3g} % missing")
    meaning = f"; {note.meaning}" if note.meaning else ""
    path = note.path or "(value)"
    if len(path) > 2 * _MAX_KEY_CHARS:
        path = f"{path[:_MAX_KEY_CHARS]}...{path[-_MAX_KEY_CHARS:]}"
    return f"{path}: {', '.join(said)}{meaning}"


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def _extremes(fields: tuple[FieldNote, ...]) -> dict[str, tuple[float, float]]:
    """Path -> smallest and greatest number; only where there is a range to be at the end of."""
    return {
        note.path: (note.low, note.high)
        for note in fields
        if isinstance(note.low, float) and isinstance(note.high, float) and note.low < note.high
    }


def _general(path: str) -> str:
    if "[" not in path:
        return path
    pieces = path.split("[")
    return "[]".join([pieces[0], *(piece.split("]", 1)[-1] for piece in pieces[1:])])


def _table_names(rows: list[Any]) -> list[str] | None:
    """The names of a table, when at least three records are flat and nearly alike."""
    if len(rows) < 3 or type(rows[0]) is not dict or not rows[0]:
        return None
    names: dict[str, None] = {}
    cells = 0
    for row in rows:
        if type(row) is not dict:
            return None
        cells += len(row)
        for name, cell in row.items():
            if isinstance(cell, dict) or (isinstance(cell, list) and not _fits(cell, 60)):
                return None
            names.setdefault(name)
    if cells < 0.7 * len(names) * len(rows) or any("|" in name or "\n" in name for name in names):
        return None
    return list(names)


def _fits(value: Any, used: int, *, is_record: bool = False) -> bool:
    """Whether a container can be written on one line; looks at no more of it than would fit.

    An element of a list may be longer and deeper: a record whose fields are kept apart says nothing.
    """
    room = (RECORD_LINE if is_record else ONE_LINE) - used
    stack = [value]
    while stack and room > 0:
        item = stack.pop()
        if isinstance(item, dict):
            is_deep = any(isinstance(inner, dict) and inner for inner in item.values())
            if len(item) > (24 if is_record else 8) or (is_deep and not is_record):
                return False
            room -= 2 + sum(len(key) + 6 for key in item)
            stack.extend(item.values())
        elif isinstance(item, list):
            if len(item) > 40:
                return False
            room -= 2 + 2 * len(item)
            stack.extend(item)
        else:
            room -= len(item) if isinstance(item, str) else 4
    return room > 0


def _cell(value: Any) -> str:
    """A value as short as it can be without being taken for another: text is quoted only where it must be."""
    kind = type(value)
    if kind is str:
        is_plain = _PLAIN.fullmatch(value) is not None and value not in _RESERVED
        return value if is_plain else encode_basestring(value)
    if kind is int or kind is float:
        return repr(value)
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    if len(key) > _MAX_KEY_CHARS:
        key = f"{key[:_MAX_KEY_CHARS]}... ({len(key):,} characters)"
    return key if _PLAIN.fullmatch(key) else encode_basestring(key)


def _name_weight(path: str) -> float:
    lowered = path.rsplit(".", 1)[-1].lower()
    if any(word in lowered for word in _ERROR_WORDS):
        return 3.0
    return 1.4 if lowered in _IDENTITY_WORDS else 1.0


def _value_weight(value: Any) -> float:
    if value is None or value == "" or value == [] or value == {}:
        return 0.4
    return 0.8 if isinstance(value, bool) else 1.0
