"""What the fields of structured data are: types, units, ranges, missing values, meanings."""

import re
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from sensorium.observations.plain import MORE
from sensorium.observations.units import given_meaning, guess_meaning, guess_unit
from sensorium.observations.values import FieldNote

MAX_FIELDS = 400
"""Fields that are described; data with more has names that are values."""
_MAX_DISTINCT = 1_000
_EXAMPLES = 3
_EXAMPLE_CHARS = 40
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$")
_ORDER = ("integer", "number", "date", "string", "boolean", "object", "array", "null")
_TYPES = {bool: "boolean", int: "integer", float: "number", type(None): "null", dict: "object", list: "array"}


class _Stats:
    """What was met at one path."""

    __slots__ = ("children", "examples", "high", "low", "nulls", "records", "seen", "types", "values")

    def __init__(self) -> None:
        self.children: dict[str, _Stats] = {}
        self.types: set[str] = set()
        self.records = 0
        """Objects met here, for the share of those without a field."""
        self.seen = 0
        self.nulls = 0
        self.low: Any = None
        self.high: Any = None
        self.values: set[Any] = set()
        self.examples: list[str] = []

    def child(self, name: str) -> "_Stats | None":
        found = self.children.get(name)
        if found is None and len(self.children) < MAX_FIELDS:
            found = self.children[name] = _Stats()
        return found

    def add(self, value: Any) -> None:
        self.seen += 1
        kind = _TYPES.get(type(value))
        if kind == "object":
            self.records += 1
        elif kind is None:
            kind = self._add_text(value)
        elif kind in ("integer", "number"):
            low = self.low
            if not isinstance(low, int | float):
                self.low = self.high = value
            elif value < low:
                self.low = value
            elif value > self.high:
                self.high = value
        elif kind == "null":
            self.nulls += 1
        self.types.add(kind)
        if kind not in ("object", "array", "null") and len(self.values) <= _MAX_DISTINCT:
            self.values.add(value)

    def _add_text(self, value: str) -> str:
        if len(self.examples) < _EXAMPLES and value and value not in self.examples:
            self.examples.append(value)
        if value[:2].isdigit() and len(value) <= 35 and _DATE.match(value):
            if self.low is None:
                self.low = self.high = value
            elif isinstance(self.low, str):
                self.low, self.high = min(self.low, value), max(self.high, value)
            return "date"
        return "string"


def describe_fields(
    data: Any, *, meanings: Mapping[str, str] | None = None, max_items: int = 200_000
) -> tuple[FieldNote, ...]:
    """Describe the fields of plain JSON data.

    Args:
        data: What `to_plain` returns.
        meanings: Path or name of a field -> what it means.
        max_items: Values that are looked at.

    Returns:
        A note per field, in the order they are met, parents before children; at most `MAX_FIELDS`.
        Elements of a list share the path ``list[]``. Values that are objects or lists themselves have
        notes only when a meaning is given for them or they are sometimes missing.
    """
    root = _Stats()
    root.add(data)
    stack: list[tuple[_Stats, Any]] = [(root, data)] if isinstance(data, dict | list) else []
    left = max_items
    while stack and left > 0:
        stats, container = stack.pop()
        left -= len(container)
        is_list = type(container) is list
        inside: list[tuple[_Stats, Any]] = []
        for key, value in zip(repeat("[]"), container, strict=False) if is_list else container.items():
            if value is MORE:
                continue
            child = stats.child(key)
            if child is None:
                continue
            child.add(value)
            if type(value) is dict or type(value) is list:
                inside.append((child, value))
        inside.reverse()
        stack += inside
    return _notes(root, meanings or {})


def describe_columns(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, meanings: Mapping[str, str] | None = None
) -> tuple[FieldNote, ...]:
    """Describe the columns of the result of a query; rows hold plain JSON data."""
    notes = []
    for index, name in enumerate(columns[:MAX_FIELDS]):
        stats = _Stats()
        for row in rows:
            stats.add(row[index] if index < len(row) else None)
        notes.append(_note(name, stats, max(len(rows), 1), meanings or {}))
    return tuple(notes)


def _notes(root: _Stats, meanings: Mapping[str, str]) -> tuple[FieldNote, ...]:
    notes: list[FieldNote] = []
    stack: list[tuple[str, str, _Stats, int, int]] = [("", "", root, 1, 0)]
    while stack and len(notes) < MAX_FIELDS:
        path, name, stats, records, depth = stack.pop()
        inner = stats.types <= {"object", "array", "null"}
        note = _note(path, stats, records, meanings, name=name)
        if path and (not inner or note.missing > 0.0 or given_meaning(path, meanings) or not stats.children):
            notes.append(note)
        if depth < 100:
            for key, child in reversed(stats.children.items()):
                is_list = key == "[]"
                below = f"{path}[]" if is_list else f"{path}.{key}" if path else key
                count = child.seen if is_list else stats.records
                stack.append((below, name if is_list else key, child, count, depth + 1))
    return tuple(notes)


def _note(
    path: str, stats: _Stats, records: int, meanings: Mapping[str, str], *, name: str | None = None
) -> FieldNote:
    name = path if name is None else name
    kinds = set(stats.types)
    if "number" in kinds:
        kinds.discard("integer")
    kind = " | ".join(k for k in _ORDER if k in kinds) or "null"
    main = kind.removesuffix(" | null")
    low, high = _bound(stats.low), _bound(stats.high)
    if "string" in kinds and isinstance(low, str):  # some dates among other texts: no range
        low = high = None
    absent = max(0, records - stats.seen) + stats.nulls
    distinct = len(stats.values) if stats.seen > 1 and 0 < len(stats.values) <= _MAX_DISTINCT else None
    unit = None
    if main in ("integer", "number"):
        unit = guess_unit(name)
    elif main == "string":
        unit = guess_unit("", stats.examples) if stats.examples else None
    return FieldNote(
        path=path,
        type=kind,
        unit=unit,
        low=low,
        high=high,
        missing=min(1.0, absent / records) if records else 0.0,
        distinct=distinct,
        examples=tuple(_shortened(text) for text in stats.examples),
        meaning=given_meaning(path, meanings) or guess_meaning(name, type=main, low=low),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _EXAMPLE_CHARS else f"{text[: _EXAMPLE_CHARS - 3]}..."


def _bound(value: Any) -> float | str | None:
    if isinstance(value, str) or value is None:
        return value
    try:
        return float(value)
    except OverflowError:
        return f"{str(value)[:12]}..."
