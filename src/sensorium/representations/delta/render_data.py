"""Changes of structured data as an agent reads them: a line per changed place."""

import json
from collections.abc import Iterable
from typing import Any

from sensorium.core.exact_json import from_json
from sensorium.representations.base import Segment
from sensorium.representations.delta.base import BytesDelta, Change, ListDelta, MapDelta, SetDelta, TextDelta
from sensorium.representations.delta.fields import apply_data, data_delta
from sensorium.representations.delta.render_text import text_changes

_MAX_SEEN = 60
"""Characters of old values; the agent has seen them."""


def data_changes(path: str, old: Any, new: Any) -> list[Segment]:
    """A segment per place at which plain data changed."""
    change = data_delta(old, new)
    return [] if change is None else _told(path, old, change)


def shown(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if value is None or isinstance(value, bool | int | float | str | list | tuple | dict):
        try:
            return json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError):
            return repr(value)
    return repr(value)


def seen(value: Any) -> str:
    """A value that the agent has seen, shortened."""
    return clipped(shown(value))


def clipped(text: str) -> str:
    """The ends of a text that the agent has seen."""
    return text if len(text) <= _MAX_SEEN else f"{text[: _MAX_SEEN - 20]}...{text[-15:]}"


def _told(path: str, old: Any, change: Change) -> list[Segment]:
    match change:
        case SetDelta(value=value):
            return [Segment(f"{path}: {seen(old)} -> {shown(from_json(value))}", place=path)]
        case TextDelta():
            return _text(path, old, apply_data(old, change))
        case BytesDelta(at=at, removed=removed, inserted=inserted):
            text = f"{path}: bytes {at:,} to {at + removed:,} of {len(old):,} replaced by {len(inserted):,}"
            return [Segment(text, place=path)]
        case MapDelta():
            return _map(path, old, change)
        case ListDelta():
            return _list(path, old, change)


def _text(path: str, old: str, new: str) -> list[Segment]:
    if "\n" not in old and "\n" not in new and len(new) <= 2 * _MAX_SEEN:
        return [Segment(f"{path}: {seen(old)} -> {shown(new)}", place=path)]
    summary, lines = text_changes(old, new)
    return [Segment(f"{path}: {summary}", place=path), *lines]


def _map(path: str, old: dict[str, Any], change: MapDelta) -> list[Segment]:
    prefix = f"{path}." if path else ""
    added = {name: value for _, name, value in change.added}
    segments = [Segment(f"- {prefix}{name}", place=path) for name in change.removed if name not in added]
    for name, inner in change.changed.items():
        segments.extend(_told(prefix + name, old[name], inner))
    for name, value in added.items():
        if name in change.removed and not data_changes("", old[name], from_json(value)):
            segments.append(Segment(f"{prefix}{name}: moved", 0.3, place=path))
        else:
            segments.append(Segment(f"+ {prefix}{name} = {shown(from_json(value))}", place=path))
    return segments


def _list(path: str, old: Any, change: ListDelta) -> list[Segment]:
    inner = dict(change.changed)
    segments: list[Segment] = []
    shift = 0
    edits = {edit.at: edit for edit in change.edits}
    for at in sorted({*inner, *edits}):
        edit = edits.get(at)
        if edit is None or edit.removed == 0:  # an insertion comes before the element at its place
            segments.extend(_inserted(path, at + shift, edit.inserted if edit else ()))
            shift += len(edit.inserted) if edit else 0
            if at in inner:
                segments.extend(_told(f"{path}[{at + shift}]", old[at], inner[at]))
            continue
        both = min(edit.removed, len(edit.inserted))
        for step in range(both):
            value = shown(from_json(edit.inserted[step]))
            segments.append(
                Segment(f"{path}[{at + shift + step}]: {seen(old[at + step])} -> {value}", place=path)
            )
        if edit.removed > both:
            first, last = at + both, at + edit.removed - 1
            name = f"{first}" if first == last else f"{first}..{last}"
            segments.append(Segment(f"- {path}[{name}] (numbers before)", place=path))
        segments.extend(_inserted(path, at + shift + both, edit.inserted[both:]))
        shift += len(edit.inserted) - edit.removed
    return segments


def _inserted(path: str, at: int, values: Iterable[Any]) -> list[Segment]:
    return [
        Segment(f"+ {path}[{place}] = {shown(from_json(value))}", place=path)
        for place, value in enumerate(values, at)
    ]
