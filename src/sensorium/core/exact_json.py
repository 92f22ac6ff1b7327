"""Plain data in JSON without loss: numbers that are not finite, and bytes, have a form of their own.

JSON has neither NaN nor infinity. Where a field may hold text as well as numbers, such a number is written
as an object that is valid JSON for every reader and cannot be taken for text: ``{"~": "nan"}``,
``{"~": "inf"}``, ``{"~": "-inf"}``. Bytes are ``{"~": "bytes", "of": "<base64>"}``. A name that begins
with ``~`` itself gets a second one in front.
"""

import base64
import binascii
import math
from collections.abc import Callable
from operator import is_
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainSerializer,
    ValidationError,
    WrapValidator,
)

MAX_DEPTH = 150
"""Nesting of plain data: readers of JSON refuse more than some 200, and the data lies in other objects."""
_MARK = "~"
MAX_INT = 10**4000
"""Integers with more digits are refused: neither Python nor readers of JSON take them as text."""
_ATOMS = frozenset({str, float, bool, type(None)})


def to_json(value: Any) -> Any:
    """Plain data in a form that JSON carries without loss; the same object where it is one already.

    Args:
        value: None, numbers, text, bytes, and lists, tuples and dicts (names are text) of them.
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else {_MARK: str(value)}
    if kind is list or kind is tuple:
        items = [to_json(item) for item in value]
        is_same = all(map(is_, items, value))
        return value if is_same else kind(items)
    if kind is dict:
        return _mapping_to_json(value)
    if kind is bytes:
        return {_MARK: "bytes", "of": base64.b64encode(value).decode()}
    return value


def from_json(value: Any) -> Any:
    """Inverse of `to_json`; the same object where nothing in it has a form of its own.

    Raises:
        ValueError: It was not made by `to_json`.
    """
    if isinstance(value, list | tuple):
        items = [from_json(item) for item in value]
        return value if all(map(is_, items, value)) else type(value)(items)
    if not isinstance(value, dict):
        return value
    if _MARK in value:
        return _special(value)
    found = {_name_from_json(name): from_json(item) for name, item in value.items()}
    return value if _is_same_mapping(found, value) else found


def plain_problem(value: Any) -> str:
    """What keeps a value from being plain data that survives JSON; empty when nothing does."""
    level, depth = {id(value): value} if type(value) in (list, dict) else {}, 0
    if not level and (problem := _atom_problem(value)):
        return problem
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return f"it is nested more than {MAX_DEPTH} deep, or lies in itself"
        below: dict[int, Any] = {}
        for container in level.values():
            items = container
            if type(container) is dict:
                items = container.values()
                if not all(map(_is_text, container)):
                    return "it has names that are not text"
            for item in items:
                kind = type(item)
                if kind in _ATOMS or (kind is int and -MAX_INT < item < MAX_INT):
                    continue
                if kind is list or kind is dict:
                    below[id(item)] = item
                elif problem := _atom_problem(item):
                    return problem
        level = below
    return ""


def _is_text(name: Any) -> bool:
    return type(name) is str


def _is_same_mapping(found: dict[str, Any], value: dict[str, Any]) -> bool:
    return all(map(is_, found, value)) and all(map(is_, found.values(), value.values()))


def _mapping_to_json(value: dict[str, Any]) -> dict[str, Any]:
    found = {_MARK + name if name.startswith(_MARK) else name: to_json(item) for name, item in value.items()}
    return value if _is_same_mapping(found, value) else found


def _name_from_json(name: str) -> str:
    return name[len(_MARK) :] if name.startswith(_MARK) else name


def _atom_problem(value: Any) -> str:
    kind = type(value)
    if kind in _ATOMS:
        return ""
    if kind is int:
        return "" if -MAX_INT < value < MAX_INT else "it holds an integer of more than 4,000 digits"
    return f"it holds {kind.__module__}.{kind.__qualname__}".replace(" builtins.", " ")


def _special(value: dict[str, Any]) -> Any:
    match value:
        case {"~": "nan" | "inf" | "-inf" as number}:
            return float(number)
        case {"~": "bytes", "of": str(text)}:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise ValueError(f"bytes are not base64: {error}") from error
    raise ValueError(f"unknown form {str(value[_MARK])[:40]!r} of a value; known: nan, inf, -inf, bytes")


def _read(value: Any, info: Any) -> Any:
    """Forms are read in JSON alone: a Python dict with the name ``~`` is what it is."""
    return from_json(value) if info.mode == "json" else value


def _read_scalars(value: Any, validate: Callable[[Any], Any]) -> Any:
    """Forms are looked for only where a value does not fit as it is: most tables have none."""
    try:
        return validate(value)
    except ValidationError:
        found = from_json(value)
        if found is value:
            raise
        return validate(found)


def _checked(value: Any) -> Any:
    if problem := plain_problem(value):
        raise ValueError(
            f"not plain data: {problem}; expected None, bool, int, float, str, and lists and dicts of "
            "them (sensorium.observations.read makes plain data of any object)"
        )
    return value


_WRITTEN = PlainSerializer(to_json, return_type=Any, when_used="json")
PlainData = Annotated[Any, BeforeValidator(_read), AfterValidator(_checked), _WRITTEN]
"""Plain data of any shape, checked, that survives JSON."""
Received = Annotated[dict[str, Any], BeforeValidator(_read), _WRITTEN]
"""An object as it was received, not checked."""
SCALARS = (WrapValidator(_read_scalars), _WRITTEN)
"""For fields of one type or a few, of which a mapping is none: their forms are read in Python data, too."""
