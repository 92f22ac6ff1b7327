"""Any Python object becomes plain JSON data: no cycles, no endless depth, nothing that cannot be written."""

import base64
import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel

from sensorium.observations.decoding import decode

HARD_DEPTH = 150
"""Nesting that is never exceeded, whatever a config says: JSON readers refuse more than 200."""
MORE = "<more values left out>"
"""Stands behind the values that were looked at, when there are more."""
_MAX_INT = 10**300
_MAX_BYTES = 4096
_MAX_ARRAY = 10_000


class Plain(NamedTuple):
    """Plain data, and what was lost on the way."""

    data: Any
    """None, bool, int, float (finite), str, list, and dict with str keys."""
    notes: tuple[str, ...] = ()


def to_plain(raw: Any, *, max_depth: int, max_items: int) -> Plain:
    """Turn an object into plain JSON data; never raises and never recurses.

    Numbers that are not finite become the text ``NaN``, ``Infinity`` or ``-Infinity``; dates become ISO 8601;
    decimals stay exact (as text where a float would not be); bytes become ``base64:...``; dataclasses,
    pydantic models and named tuples become objects; what is met again inside itself, lies too deep or
    comes too late becomes a text that says so.

    Args:
        raw: The object.
        max_depth: Containers inside containers that are followed (`HARD_DEPTH` at most).
        max_items: Values that are looked at.
    """
    return _Conversion(min(max_depth, HARD_DEPTH), max_items).run(raw)


class _Level(NamedTuple):
    items: Iterator[tuple[Any, Any]]
    target: dict[str, Any] | list[Any]
    source: Any
    """The container itself: while it is held, its identity belongs to nothing else."""


class _Conversion:
    def __init__(self, max_depth: int, max_items: int) -> None:
        self.max_depth = max_depth
        self.left = max_items
        self.max_items = max_items
        self.counts: dict[str, int] = {}
        self.open: set[int] = set()
        self.levels: list[_Level] = []

    def run(self, raw: Any) -> Plain:
        root: list[Any] = []
        self._put(root, None, raw)
        while self.levels:
            level = self.levels[-1]
            for key, value in level.items:
                if self.left <= 0:
                    self._count("cut")
                    self._store(level.target, "...", MORE)
                    self._close()
                    break
                self.left -= 1
                target = level.target
                kind = type(value)
                if kind is str and value.isascii() and "\0" not in value:
                    plain: Any = value
                elif (
                    kind is bool
                    or value is None
                    or (kind is int and -_MAX_INT < value < _MAX_INT)
                    or (kind is float and value - value == 0.0)  # finite
                ):
                    plain = value
                else:
                    before = len(self.levels)
                    self._put(target, key, value)
                    if len(self.levels) > before:
                        break
                    continue
                if isinstance(target, list):
                    target.append(plain)
                else:
                    target[self._key(key, target)] = plain
            else:
                self._close()
        return Plain(root[0], self._notes())

    def _close(self) -> None:
        level = self.levels.pop()
        self.open.discard(id(level.source))

    def _store(self, target: dict[str, Any] | list[Any], key: Any, plain: Any) -> None:
        if isinstance(target, list):
            target.append(plain)
        else:
            target[self._key(key, target)] = plain

    def _put(self, target: dict[str, Any] | list[Any], key: Any, value: Any) -> None:
        try:
            opened = self._children(value)
            plain = self._scalar(value) if opened is None else None
        except Exception as error:  # a stranger's object whose attributes or iteration raise
            self._count("broken")
            self._store(target, key, f"<{type(value).__name__}: reading it raises {type(error).__name__}>")
            return
        if opened is None:
            self._store(target, key, plain)
            return
        if id(value) in self.open:
            self._count("cyclic")
            self._store(target, key, "<contains itself>")
            return
        if len(self.levels) >= self.max_depth:
            self._count("deep")
            self._store(target, key, f"<{type(value).__name__}, nested deeper>")
            return
        items, is_object = opened
        inside: dict[str, Any] | list[Any] = {} if is_object else []
        self._store(target, key, inside)
        self.open.add(id(value))
        self.levels.append(_Level(items, inside, value))

    def _children(self, value: Any) -> tuple[Iterator[tuple[Any, Any]], bool] | None:
        """The items of a container and whether they have names; None for a value without parts."""
        kind = type(value)
        if kind is dict:
            return iter(list(value.items())), True
        if kind is list or kind is tuple:
            return _numbered(value), False
        if isinstance(value, str | bytes | bytearray | memoryview | Enum) or value is None:
            return None
        if isinstance(value, Mapping):
            return iter([(k, value[k]) for k in islice(value, self.left + 1)]), True
        if isinstance(value, BaseModel):
            return iter([*value.__dict__.items(), *(value.__pydantic_extra__ or {}).items()]), True
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return iter([(f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value)]), True
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return iter(list(zip(value._fields, value, strict=False))), True
        if isinstance(value, list | tuple):
            return _numbered(value), False
        if isinstance(value, Set):
            return _numbered(sorted(value, key=lambda v: (type(v).__name__, str(v)))), False
        if type(value).__module__ == "collections" and isinstance(value, Iterable):  # deque and the like
            return _numbered(value), False
        return self._array(value)

    def _array(self, value: Any) -> tuple[Iterator[tuple[Any, Any]], bool] | None:
        if not isinstance(value, np.ndarray) or value.ndim == 0:
            return None
        if value.size > _MAX_ARRAY:
            self._count("array")
            return _numbered([f"<array {value.dtype} {value.shape}>"]), False
        return _numbered(list(value)), False

    def _scalar(self, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self._scalar(value.value) if not isinstance(value.value, Enum) else str(value.value)
        if isinstance(value, str):
            return self._text(str(value))
        if isinstance(value, int):
            return self._integer(int(value))
        if isinstance(value, float):
            return self._number(float(value))
        for types, convert in _CONVERSIONS:
            if isinstance(value, types):
                converted = convert(value)
                return self._number(converted) if isinstance(converted, float) else converted
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(bytes(value))
        if isinstance(value, np.generic | np.ndarray):
            item = value.item()
            if isinstance(item, np.generic | np.ndarray):  # longdouble has no Python twin
                return str(item)
            return str(item) if isinstance(item, tuple | list | dict) else self._scalar(item)
        return self._object(value)

    def _text(self, text: str) -> str:
        decoded = decode(text)
        if decoded.notes:
            self._count("text")
        # Line ends and a first U+FEFF belong to the value: only what cannot be written is replaced.
        return decoded.text if decoded.notes else text

    def _integer(self, value: int) -> int | str:
        if -_MAX_INT < value < _MAX_INT:
            return value
        self._count("huge")
        return f"<integer of {value.bit_length():,} bits>"

    def _number(self, value: float) -> float | str:
        if math.isfinite(value):
            return value
        self._count("nan")
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"

    def _bytes(self, value: bytes) -> str:
        self._count("bytes")
        if len(value) > _MAX_BYTES:
            return f"<{len(value):,} bytes>"
        return "base64:" + base64.b64encode(value).decode()

    def _object(self, value: Any) -> str:
        self._count("object")
        try:
            shown = repr(value)
        except Exception as error:  # whatever a stranger's __repr__ raises
            shown = f"<{type(value).__name__}: its repr raises {type(error).__name__}>"
        return decode(shown if len(shown) <= 200 else f"{shown[:160]}...{shown[-30:]}").text

    def _key(self, key: Any, target: dict[str, Any]) -> str:
        name = key if type(key) is str and key.isascii() and "\x00" not in key else self._other_key(key)
        if name in target:  # 1 and "1" in one dict
            self._count("key")
            base, number = name, 2
            while name in target:
                name, number = f"{base} ({number})", number + 1
        return name

    def _other_key(self, key: Any) -> str:
        if isinstance(key, str):
            return self._text(str(key))
        if isinstance(key, bool) or key is None:
            return {True: "true", False: "false", None: "null"}[key]
        if isinstance(key, bytes):
            return decode(key).text
        plain = self._scalar(key) if not isinstance(key, tuple | frozenset) else None
        if plain is not None:
            return str(plain)
        try:
            return decode(str(key)).text
        except Exception as error:  # whatever a stranger's __str__ raises
            return f"<{type(key).__name__}: its str raises {type(error).__name__}>"

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _notes(self) -> tuple[str, ...]:
        sentences = {
            "cut": f"first {self.max_items:,} values; the rest is left out",
            "deep": f"{{n:,}} values nested more than {self.max_depth} deep are left out",
            "cyclic": "{n:,} values contain themselves and are shown once",
            "nan": "{n:,} numbers are not finite and are written as text",
            "huge": "{n:,} integers are too long to be written out",
            "bytes": "{n:,} values are bytes, written in base64 or by their number",
            "object": "{n:,} values are Python objects, shown by their repr",
            "broken": "{n:,} values could not be read",
            "array": "{n:,} arrays are too large and are shown by their shape",
            "text": "{n:,} texts hold characters that cannot be written, which are replaced",
            "key": "{n:,} keys of one object are equal as text and got a number",
        }
        return tuple(sentences[what].format(n=n) for what, n in self.counts.items())


def _numbered(values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    return ((None, value) for value in values)


def _decimal(value: Decimal) -> float | str:
    if value.is_nan():
        return math.nan
    as_float = float(value)
    exact = value.is_finite() and Decimal(repr(as_float)) == value if math.isfinite(as_float) else False
    return as_float if exact or not value.is_finite() else str(value)


_CONVERSIONS: tuple[tuple[Any, Callable[[Any], str | float]], ...] = (
    (dt.date | dt.time, lambda v: str(v.isoformat())),
    (dt.timedelta, lambda v: f"{v.total_seconds()} s"),
    (Decimal, _decimal),
    (Fraction | complex, str),
)
"""Values that have a plain form, in the order they are tried."""
