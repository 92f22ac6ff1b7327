"""A change of a part as an agent reads it."""

import math
from collections import Counter
from collections.abc import Sequence

from sensorium.observations.array import array_of
from sensorium.observations.base import Part
from sensorium.observations.values import (
    AnyValue,
    ArrayValue,
    CaseResult,
    CellValue,
    CodeFault,
    CodeValue,
    ImageValue,
    MessagesValue,
    OutputValue,
    ProprioValue,
    StackTrace,
    StructuredValue,
    TableValue,
    TextValue,
    Value,
)
from sensorium.representations.base import Document, Segment
from sensorium.representations.delta.arrays import changed_places
from sensorium.representations.delta.base import AnyDelta, PartDelta
from sensorium.representations.delta.fields import plain, same
from sensorium.representations.delta.images import changed_rectangles
from sensorium.representations.delta.render_data import clipped, data_changes, seen, shown
from sensorium.representations.delta.render_table import table_changes
from sensorium.representations.delta.render_text import quoted, text_changes
from sensorium.representations.layout.code_state import describe_frame

_TEXT_FIELD = {TextValue: "text", CodeValue: "text", CellValue: "source", OutputValue: "text"}
_MAX_NUMBERS = 20
"""Changed numbers of an array that are named one by one."""
_PINNED_CHARS = 300

Told = tuple[str, list[Segment]]
"""A summary of a few words, and segments."""


def render_delta(delta: PartDelta, old: Part, new: Part, *, since: int | None = None) -> Document:
    """Lay out what changed in a part.

    Args:
        delta: The change, as `make_delta` or `diff` give it.
        old: The part before; the agent has seen it.
        new: The part now.
        since: Step at which it was seen, for the title; None leaves that out.

    Returns:
        Title: part, since when, and how much. A segment per changed line, row, test, variable or place; what
        is newly wrong is pinned. Pictures and sounds are described, not contained: see `tells_all`.
    """
    when = "" if since is None else f" since step {since}"
    summary = ""
    segments: list[Segment] = []
    if delta.change is not None:
        summary, segments = _value(old.value, new.value, delta.change)
    if old.notes != new.notes:
        segments.extend(_came_and_went("note", old.notes, new.notes))
    if not same(old.importance, new.importance) and not segments:
        segments.append(Segment(f"importance: {old.importance:g} -> {new.importance:g}", 0.3))
    renamed = "" if old.id == new.id else f", was {old.id}"
    about = summary or ("" if segments else "only its time")
    title = f"{new.id}{renamed}: changed{when}{f' ({about})' if about else ''}"
    return Document(title=title, segments=tuple(segments), unit="changes")


def tells_all(old: Part, new: Part) -> bool:
    """Whether what `render_delta` says, together with the old part, is all of the new one.

    Not so for pictures, sounds, arrays with many changes, and values that became another kind.
    """
    if old.value.kind != new.value.kind:
        return False
    match old.value, new.value:
        case ArrayValue() as before, ArrayValue() as after:
            places = () if before.data == after.data else changed_places(before, after)
            return places is not None and len(places) <= _MAX_NUMBERS
        case _:
            return new.value.kind not in ("image", "audio")


def _value(old: AnyValue, new: AnyValue, change: AnyDelta) -> Told:
    match old, new:
        case ((TextValue() | CellValue() | OutputValue() | CodeValue()), _) if type(old) is type(new):
            return _text_value(old, new)
        case TableValue(), TableValue():
            return table_changes(old, new, change)
        case ImageValue(), ImageValue():
            return _image(old, new)
        case ArrayValue(), ArrayValue():
            return _array(old, new)
        case ProprioValue(), ProprioValue() if old.names == new.names and len(old.values) == len(new.values):
            return _proprio(old, new)
        case MessagesValue(), MessagesValue() if new.turns[: len(old.turns)] == old.turns:
            added = enumerate(new.turns[len(old.turns) :], len(old.turns) + 1)
            segments = [
                Segment(f"+ turn {at}, {turn.name or turn.role}: {turn.content}", place=f"turn {at}")
                for at, turn in added
            ]
            return f"{len(segments)} new turns", segments
        case StructuredValue(), StructuredValue():
            places = data_changes("", old.data, new.data)
            return f"{len(places)} places", [*places, *_fields(old, new, frozenset({"data"}))]
        case _ if type(old) is type(new):
            return "", _fields(old, new)
        case _:
            return f"was {old.kind}, is {new.kind} now", [Segment(f"{new.kind} instead of {old.kind}")]


def _fields(old: Value, new: Value, leave_out: frozenset[str] = frozenset()) -> list[Segment]:
    return [
        segment
        for name in type(new).model_fields
        if name not in leave_out
        for segment in data_changes(name, plain(getattr(old, name)), plain(getattr(new, name)))
    ]


def _text_value(old: Value, new: Value) -> Told:
    field = next(name for kind, name in _TEXT_FIELD.items() if isinstance(new, kind))
    before, after = getattr(old, field), getattr(new, field)
    summary, segments = ("", []) if before == after else text_changes(before, after)
    told = {field}
    if isinstance(old, CodeValue) and isinstance(new, CodeValue):
        state = [
            *_tests(old.tests, new.tests),
            *_faults(old.faults, new.faults),
            *_stack(old.stack, new.stack),
            *_variables(old.variables, new.variables),
            *_came_and_went("tool", old.tools, new.tools),
        ]
        segments = [*state, *segments]
        told |= {"tests", "faults", "stack", "variables", "tools"}
    elif isinstance(old, OutputValue) and isinstance(new, OutputValue):
        segments = [*_stack(old.error, new.error, with_frames=not new.text), *segments]
        told |= {"error"}
    elif isinstance(old, CellValue) and isinstance(new, CellValue) and new.index != old.index:
        segments.insert(0, Segment(f"moved from place {old.index} to {new.index}", 0.5))
        told |= {"index"}
    return summary, [*segments, *_fields(old, new, frozenset(told))]


def _tests(old: Sequence[CaseResult], new: Sequence[CaseResult]) -> list[Segment]:
    """Newly failing, newly passing, and all other changes of tests."""
    if old == new:
        return []
    before, after = ({test.name: test for test in tests} for tests in (old, new))
    failing = sum(test.status in ("failed", "error") for test in new)
    failed = sum(test.status in ("failed", "error") for test in old)
    segments = [
        Segment(f"tests: {failing} of {len(new)} fail (before {failed} of {len(old)})", 2.0, is_pinned=True)
    ]
    groups: dict[str, list[str]] = {}
    for name, test in after.items():
        was = before[name].status if name in before else None
        about = f"{name}: {test.message}" if test.message else name
        if test.status != was:
            bad = test.status in ("failed", "error")
            if bad:
                text = f"newly failing ({test.status}): {about}"
                segments.append(Segment(text, 3.0, place=name, is_pinned=len(text) <= _PINNED_CHARS))
            else:
                kind = f"newly {test.status}" if was is not None else f"new, {test.status}"
                groups.setdefault(kind, []).append(about)
        elif test.message != before[name].message:
            segments.append(Segment(f"still {test.status}, now: {about}", 2.0, place=name))
    gone = [name for name in before if name not in after]
    segments.extend(Segment(f"{kind}: {', '.join(names)}", 1.5) for kind, names in groups.items())
    if gone:
        segments.append(Segment(f"tests gone: {', '.join(gone)}", 1.5))
    return segments


def _faults(old: Sequence[CodeFault], new: Sequence[CodeFault]) -> list[Segment]:
    if old == new:
        return []
    if not new:
        return [Segment("it parses now", 2.0, is_pinned=True)]
    known = {fault.message for fault in old}
    return [
        Segment(
            f"line {fault.line}, column {fault.column} does not parse: {fault.message}"
            f"{' (as before)' if fault.message in known else ''}",
            1.0 if fault.message in known else 3.0,
            place=f"line {fault.line}",
            is_pinned=fault.message not in known and len(fault.message) <= _PINNED_CHARS,
        )
        for fault in new
    ]


def _stack(old: StackTrace | None, new: StackTrace | None, *, with_frames: bool = True) -> list[Segment]:
    if old == new:
        return []
    if new is None:
        return [Segment(f"no exception any more (before {old.type if old else ''})", 2.0, is_pinned=True)]
    if old is not None and (old.type, old.message) == (new.type, new.message):
        first = Segment(f"exception {new.type} comes from elsewhere now", 1.5)
    else:
        text = f"exception now {new.type}: {new.message}"
        first = Segment(text, 3.0, is_pinned=len(text) <= _PINNED_CHARS)
    frames = new.frames if with_frames and (old is None or old.frames != new.frames) else ()
    return [first, *(Segment(describe_frame(frame), 1.0) for frame in frames)]


def _variables(old: dict[str, str], new: dict[str, str]) -> list[Segment]:
    if old == new:
        return []
    segments = [Segment(f"variable {name} is gone", 0.7) for name in old if name not in new]
    for name, value in new.items():
        if name not in old:
            segments.append(Segment(f"new variable {name} = {value}", 1.0))
        elif old[name] != value:
            segments.append(Segment(f"variable {name}: {clipped(old[name])} -> {value}", 1.2))
    return segments


def _came_and_went(what: str, old: Sequence[str], new: Sequence[str]) -> list[Segment]:
    came, went = Counter(new) - Counter(old), Counter(old) - Counter(new)
    segments = [Segment(f"- {what}: {clipped(text)}", 0.5) for text in went.elements()]
    segments.extend(Segment(f"+ {what}: {text}", 0.8) for text in came.elements())
    return segments or (
        [] if list(old) == list(new) else [Segment(f"{what}s now: {quoted(', '.join(new))}", 0.3)]
    )


def _image(old: ImageValue, new: ImageValue) -> Told:
    if old.data == new.data:
        return "", _fields(old, new, frozenset({"data"}))
    change = changed_rectangles(old, new)
    others = _fields(old, new, frozenset({"data", "sha256"}))
    if change is None:
        sizes = [f"{one.width or '?'}x{one.height or '?'}" for one in (old, new)]
        return "another picture" + ("" if sizes[0] == sizes[1] else f", {sizes[0]} -> {sizes[1]}"), others
    boxes = [
        Segment(
            f"changed from ({one.left}, {one.top}), {one.width}x{one.height} pixels", one.width * one.height
        )
        for one in change.rectangles
    ]
    largest = max((box.weight for box in boxes), default=1.0)
    boxes = [box._replace(weight=0.5 + box.weight / largest) for box in boxes]
    return f"{len(boxes)} places, {_percent(change.share)} of the pixels", [*boxes, *others]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _array(old: ArrayValue, new: ArrayValue) -> Told:
    others = _fields(old, new, frozenset({"data"}))
    if old.data == new.data:
        return "", others
    places = changed_places(old, new)
    if places is None:
        return "other numbers", others
    summary = f"{len(places):,} of {math.prod(new.shape):,} numbers"
    try:
        before, after = array_of(old), array_of(new)
    except (TypeError, ValueError):
        before = after = None
    if before is None or after is None:
        return summary, others
    if len(places) <= _MAX_NUMBERS:
        told = [
            Segment(f"{place}: {before[tuple(place)]!s} -> {after[tuple(place)]!s}", place=str(place))
            for place in places.tolist()
        ]
        return summary, [*told, *others]
    start, end = places.min(axis=0).tolist(), (places.max(axis=0) + 1).tolist()
    region = ", ".join(f"{low}:{high}" for low, high in zip(start, end, strict=True))
    return summary, [Segment(f"all of them in [{region}]"), *others]


def _proprio(old: ProprioValue, new: ProprioValue) -> Told:
    segments = [
        Segment(f"{name}: {seen(before)} -> {shown(after)}{f' {unit}' if unit else ''}", place=name)
        for name, before, after, unit in zip(
            new.names, old.values, new.values, [*new.units, *[""] * len(new.values)], strict=False
        )
        if not same(before, after)
    ]
    return f"{len(segments)} of {len(new.values)} values", [
        *segments,
        *_fields(old, new, frozenset({"values"})),
    ]
