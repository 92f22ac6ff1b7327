"""How much every part matters: user weight x kind x relevance to the task x how new it is."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sensorium.observations.base import Part
from sensorium.representations.subjects import Subject

ERROR_GAIN = 4.0
"""A part that reports an error."""
CAUSE_GAIN = 2.0
"""The part to which an error belongs: the cell whose output it is, the file its stack trace names."""
LISTING_GAIN = 4.0
"""A text in which other parts lie, as files in a directory: it names what is not shown of them."""
CHANGED_GAIN = 2.0
"""A part whose content is not what the agent saw last."""
UNCHANGED_GAIN = 0.5
"""A part that the agent has seen as it is."""
RELEVANCE_GAIN = 3.0
"""A part that has words of the task counts up to 1 + this many times ..."""
MATCH_GAIN = 8.0
"""... and up to this many times more when it has nearly all of them."""
MOST_IMPORTANT = 1e6
"""Greatest user weight: more would leave nothing to compare the others by."""
OLDEST_WEIGHT = 0.5
"""Weight of the oldest part of the observation beside the newest, by timestamp."""


class Weight(NamedTuple):
    """Importance of a part and what made it so."""

    value: float
    why: tuple[str, ...]
    """A few words per reason, only where it differs from the ordinary."""


def part_weights(
    subjects: Sequence[Subject],
    relevance: Sequence[float],
    *,
    seen: Mapping[str, str],
    kinds: Mapping[str, float],
) -> list[Weight]:
    """Weight everything in an observation.

    Args:
        subjects: Parts, or cells with their outputs.
        relevance: For each its relevance to the task, in [0, 1].
        seen: Part id -> digest the agent saw last.
        kinds: Kind of value -> learnt weight (see `adaptive`); 1 for kinds that are not there.
    """
    parts = [member.part for subject in subjects for member in subject.members]
    causes, listings = _causes(parts), _listings(parts)
    ages = _ages([subject.part for subject in subjects])
    return [
        _weight(subject, share, age, _place(subject.part.id, causes, listings), seen, kinds)
        for subject, share, age in zip(subjects, relevance, ages, strict=True)
    ]


def _weight(
    subject: Subject,
    relevance: float,
    age: float,
    place: tuple[float, str] | None,
    seen: Mapping[str, str],
    kinds: Mapping[str, float],
) -> Weight:
    part = subject.part
    value, why = min(part.importance, MOST_IMPORTANT), []
    if part.importance != 1.0:
        why.append(f"user weight {part.importance:g}")
    if part.is_error:
        value *= ERROR_GAIN
        why.append("error")
    elif place is not None:
        value *= place[0]
        why.append(place[1])
    if seen:
        value *= _newness(subject, seen, why)
    if relevance > 0.0:
        value *= 1.0 + RELEVANCE_GAIN * relevance + MATCH_GAIN * relevance**4
        why.append(f"relevance {relevance:.2f}")
    learnt = kinds.get(part.value.kind, 1.0)
    if learnt != 1.0:
        value *= learnt
        why.append(f"learnt weight {learnt:.2f}")
    return Weight(value * age, tuple(why))


def _place(part_id: str, causes: set[str], listings: set[str]) -> tuple[float, str] | None:
    """What a part gains by others that lie in it or point to it, and why."""
    gain = LISTING_GAIN if part_id in listings else CAUSE_GAIN
    if part_id in causes:
        return gain, "belongs to an error"
    return (gain, "lists other parts") if part_id in listings else None


def _newness(subject: Subject, seen: Mapping[str, str], why: list[str]) -> float:
    before = [seen.get(member.part.id) for member in subject.members]
    if all(digest == m.part.digest for digest, m in zip(before, subject.members, strict=True)):
        return UNCHANGED_GAIN
    why.append("new" if before[0] is None else "changed")
    return CHANGED_GAIN


def _causes(parts: Iterable[Part]) -> set[str]:
    """Parts to which errors belong: parents by id, and files that stack traces name."""
    parts = tuple(parts)
    found: set[str] = set()
    files: set[str] = set()
    for part in parts:
        if part.is_error:
            pieces = part.id.split("/")
            found.update("/".join(pieces[:i]) for i in range(1, len(pieces)))
            if part.stack is not None:
                files.update(frame.file for frame in part.stack.frames)
    if files:
        found.update(
            part.id
            for part in parts
            if any(file == part.id or file.endswith(f"/{part.id}") for file in files)
        )
    return found


def _listings(parts: Sequence[Part]) -> set[str]:
    """Texts in which other parts lie."""
    texts, found = {part.id for part in parts if part.value.kind == "text"}, set[str]()
    for part in parts if texts else ():
        above = part.id.rpartition("/")[0]
        while above:
            if above in texts:
                found.add(above)
            above = above.rpartition("/")[0]
    return found


def _ages(parts: Sequence[Part]) -> list[float]:
    """Weight by time, from `OLDEST_WEIGHT` to 1; 1 for parts without a (finite) timestamp."""
    times = [p.timestamp_s if p.timestamp_s is not None else math.nan for p in parts]
    known = [time for time in times if math.isfinite(time)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    if not 0.0 < high - low < math.inf:
        return [1.0] * len(parts)
    return [
        OLDEST_WEIGHT + (1.0 - OLDEST_WEIGHT) * (time - low) / (high - low) if math.isfinite(time) else 1.0
        for time in times
    ]
