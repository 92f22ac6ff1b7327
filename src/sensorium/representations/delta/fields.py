"""Differences of any plain data, and of the fields of any value."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from sensorium.core.exact_json import from_json, to_json
from sensorium.observations.values import Value
from sensorium.representations.delta.base import (
    BytesDelta,
    Change,
    FieldDelta,
    ListDelta,
    ListEdit,
    MapDelta,
    SetDelta,
    TextDelta,
)
from sensorium.representations.delta.sequences import gaps, matching_blocks
from sensorium.representations.delta.text import apply_bytes, apply_text, bytes_delta, text_delta

ValueT = TypeVar("ValueT", bound=Value)

_MIN_TEXT = 32
"""Texts shorter than this are replaced whole."""
_MAX_DEPTH = 24
"""Data nested deeper is replaced whole."""


def plain(value: Any) -> Any:
    """Models as dicts, everything else as it is."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, tuple) and value and not isinstance(value[0], str | int | float):
        return tuple(plain(item) for item in value)
    return value


def same(old: Any, new: Any) -> bool:
    """Whether plain data is exactly the same: types, order of names, sign of zero; NaN equals NaN."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, str | bytes | int):
        return bool(old == new)
    return repr(old) == repr(new)


def data_delta(old: Any, new: Any, depth: int = 0) -> Change | None:
    """How plain data changed; None when it is exactly the same."""
    if same(old, new):
        return None
    if type(old) is type(new) and depth < _MAX_DEPTH:
        match old:
            case str() if min(len(old), len(new)) >= _MIN_TEXT:
                return text_delta(old, new)
            case bytes() if min(len(old), len(new)) >= _MIN_TEXT:
                return bytes_delta(old, new)
            case list() | tuple() if old and new:
                return _list_delta(old, new, depth)
            case dict() if old and new and all(isinstance(key, str) for key in [*old, *new]):
                return _map_delta(old, new, depth)
    return SetDelta(value=to_json(new))


def apply_data(old: Any, change: Change) -> Any:
    """The new plain data.

    Raises:
        ValueError, TypeError, KeyError, IndexError: The change does not fit.
    """
    match change:
        case SetDelta(value=value):
            return from_json(value)
        case TextDelta():
            return apply_text(old, change)
        case BytesDelta():
            return apply_bytes(old, change)
        case ListDelta():
            return _apply_list(old, change)
        case MapDelta():
            return _apply_map(old, change)


def field_delta(old: Value, new: Value, leave_out: frozenset[str] = frozenset()) -> FieldDelta:
    """Which fields of a value differ, and how; both are of one type.

    Args:
        old: The value before.
        new: The value now.
        leave_out: Fields that are not looked at.
    """
    changed = {}
    for name in type(new).model_fields:
        if name not in leave_out:
            before, after = getattr(old, name), getattr(new, name)
            if before is not after:
                change = data_delta(plain(before), plain(after))
                if change is not None:
                    changed[name] = change
    return FieldDelta(changed=changed)


def apply_fields(
    old: ValueT, changed: Mapping[str, Change], replaced: Mapping[str, Any] | None = None
) -> ValueT:
    """The new value.

    Args:
        old: The value before.
        changed: Field -> how it changed.
        replaced: Further fields with their new values.

    Raises:
        ValueError, TypeError, KeyError, IndexError: A change does not fit.
    """
    fields = {name: getattr(old, name) for name in type(old).model_fields}
    for name, change in changed.items():
        fields[name] = apply_data(plain(fields[name]), change)
    return type(old).model_validate({**fields, **(replaced or {})})


def _list_delta(old: Sequence[Any], new: Sequence[Any], depth: int) -> ListDelta:
    edits, changed = [], []
    blocks = matching_blocks(list(map(repr, old)), list(map(repr, new)))
    for i, i_end, j, j_end in gaps(blocks, len(old), len(new)):
        while i < i_end and j < j_end and _is_related(old[i], new[j]):
            change = data_delta(old[i], new[j], depth + 1)
            if change is not None:
                changed.append((i, change))
            i, j = i + 1, j + 1
        if i < i_end or j < j_end:
            edits.append(ListEdit(i, i_end - i, tuple(to_json(item) for item in new[j:j_end])))
    return ListDelta(edits=tuple(edits), changed=tuple(changed))


def _apply_list(old: Any, delta: ListDelta) -> Any:
    items = list(old)
    for at, change in delta.changed:
        if at < 0:
            raise IndexError(f"element {at} of a list")
        items[at] = apply_data(items[at], change)
    pieces: list[Any] = []
    done = 0
    for at, removed, inserted in delta.edits:
        if at < done or removed < 0 or at + removed > len(items):
            raise ValueError(f"an edit at {at} removes {removed} of a list of {len(items)}")
        pieces += [*items[done:at], *(from_json(item) for item in inserted)]
        done = at + removed
    return type(old)([*pieces, *items[done:]])


def _map_delta(old: dict[str, Any], new: dict[str, Any], depth: int) -> MapDelta:
    names = list(new)
    stays = [
        name
        for block in matching_blocks(list(old), names)
        for name in names[block.new : block.new + block.length]
    ]
    changes = ((name, data_delta(old[name], new[name], depth + 1)) for name in stays)
    kept = set(stays)
    return MapDelta(
        removed=tuple(name for name in old if name not in kept),
        changed={name: change for name, change in changes if change is not None},
        added=tuple((at, name, to_json(new[name])) for at, name in enumerate(names) if name not in kept),
    )


def _apply_map(old: dict[str, Any], delta: MapDelta) -> dict[str, Any]:
    items = dict(old)
    for name in delta.removed:
        del items[name]
    for name, change in delta.changed.items():
        items[name] = apply_data(items[name], change)
    if not delta.added:
        return items
    stays, added = iter(items.items()), {at: (name, item) for at, name, item in delta.added}
    merged: dict[str, Any] = {}
    for at in range(len(items) + len(added)):
        if at in added:
            name, item = added[at]
            merged[name] = from_json(item)
        elif (stay := next(stays, None)) is not None:
            merged[stay[0]] = stay[1]
        else:
            raise IndexError(f"no entry for place {at} of a mapping")
    return merged


def _is_related(old: Any, new: Any) -> bool:
    """Whether an element at the place of another is told as a change of it: containers and long texts."""
    if type(old) is not type(new):
        return False
    if isinstance(old, str):
        return min(len(old), len(new)) >= _MIN_TEXT
    return isinstance(old, dict | list | tuple)
