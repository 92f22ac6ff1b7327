"""How one observation becomes the next: parts that stay in runs, parts that go, come, and change."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from sensorium.core.errors import ObservationError
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import CellValue, Value
from sensorium.representations.delta.base import PartDelta
from sensorium.representations.delta.pairing import content_key, pair_parts
from sensorium.representations.delta.parts import apply_delta, is_same_number, is_same_value, make_delta
from sensorium.representations.delta.renumber import Run, RunBuilder, renumbered, shifted_value


class Added(NamedTuple):
    """A new part."""

    at: int
    """Place among the new parts."""
    part: Part


class Renamed(NamedTuple):
    """A part that stays under another id."""

    at: int
    """Place among the new parts."""
    id: str


class Stamp(NamedTuple):
    """A time of parts that stay, next to each other in the new order."""

    at: int
    """Place of the first among the new parts."""
    length: int
    timestamp_s: float | None


class ObservationDelta(Value):
    """How an observation changed. Parts that stay cost nothing by themselves."""

    base_digest: str
    """`observation_digest` of what it applies to."""
    new_digest: str
    """`observation_digest` of the result."""
    timestamp_s: float | None = None
    """Of the new observation."""
    runs: tuple[Run, ...] = ()
    """Parts that stay, in the new order."""
    added: tuple[Added, ...] = ()
    """New parts, in order."""
    removed: tuple[str, ...] = ()
    """Ids of parts that are gone, as they were."""
    renamed: tuple[Renamed, ...] = ()
    """Ids that follow no rule of their run."""
    stamps: tuple[Stamp, ...] = ()
    """Times that differ from those before."""
    changes: tuple[PartDelta, ...] = ()
    """What else changed, in the new order; they apply to parts with the ids, positions and times of now."""

    @property
    def num_bytes(self) -> int:
        """Size as JSON."""
        return len(self.model_dump_json().encode())


def observation_digest(observation: Observation) -> str:
    """Hash of all parts with ids, times and weights; digests of parts that are known already are used."""
    digest = hashlib.sha256(repr(observation.timestamp_s).encode())
    for part in observation.parts:
        fields = (part.id, part.modality.value, part.digest, part.timestamp_s, part.importance, part.notes)
        digest.update(repr(fields).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


def diff(old: Observation, new: Observation) -> ObservationDelta:
    """How `old` became `new`, without loss: applied to `old`, it gives `new` in every field.

    Time is that of hashing what is not hashed yet, plus O(parts), plus one pass over each changed part.
    """
    pairs = pair_parts(old.parts, new.parts)
    builder = RunBuilder()
    places = sorted(pairs)
    for j in places:
        before, after = old.parts[pairs[j]], new.parts[j]
        builder.add(pairs[j], before, j, after, before is after or content_key(before) == content_key(after))
    stamps = _stamps(old, new, pairs)
    kept = set(pairs.values())
    changes = []
    runs = (run for run in builder.runs for _ in range(run.length))
    for j, run in zip(places, runs, strict=True):
        before, after = old.parts[pairs[j]], new.parts[j]
        if not _follows(before, after, run):
            change = make_delta(_shifted(before, after.id, after.timestamp_s, run), after)
            if change is not None:
                changes.append(change)
    return ObservationDelta(
        base_digest=observation_digest(old),
        new_digest=observation_digest(new),
        timestamp_s=new.timestamp_s,
        runs=tuple(builder.runs),
        added=tuple(Added(j, part) for j, part in enumerate(new.parts) if j not in pairs),
        removed=tuple(part.id for i, part in enumerate(old.parts) if i not in kept),
        renamed=tuple(Renamed(at, part_id) for at, part_id in builder.renamed),
        stamps=stamps,
        changes=tuple(changes),
    )


def apply(old: Observation, delta: ObservationDelta) -> Observation:
    """The new observation; parts that did not change are the same objects.

    Raises:
        ObservationError: The delta was made from another observation, or is damaged.
    """
    digest = observation_digest(old)
    if digest != delta.base_digest:
        raise ObservationError(
            f"A change was made from the observation {delta.base_digest}, but it is applied to {digest}: "
            f"one in between is missing. Ask for a keyframe."
        )
    num_parts = sum(max(run.length, 0) for run in delta.runs) + len(delta.added)
    added = {entry.at: entry.part for entry in delta.added}
    places = [at for at in range(min(num_parts, len(old) + len(added))) if at not in added]
    try:
        moved = _moved(old, delta.runs, places, delta.renamed, delta.stamps)
        parts: dict[int, Part] = {**added, **dict(zip(places, moved, strict=True))}
    except (ValueError, LookupError) as error:
        raise ObservationError(
            f"A change of an observation is damaged ({error}). Ask for a keyframe."
        ) from error
    by_id = {part.id: at for at, part in parts.items()}
    for change in delta.changes:
        if change.part_id not in by_id:
            raise ObservationError(
                f"A change of part {change.part_id!r} has no part to apply to. Ask for a keyframe."
            )
        at = by_id[change.part_id]
        parts[at] = apply_delta(parts[at], change)
    new = Observation(parts=tuple(parts[at] for at in sorted(parts)), timestamp_s=delta.timestamp_s)
    digest = observation_digest(new)
    if digest != delta.new_digest:
        raise ObservationError(
            f"A change gives the observation {digest} instead of {delta.new_digest}: it is damaged. "
            f"Ask for a keyframe."
        )
    return new


def _stamps(old: Observation, new: Observation, pairs: dict[int, int]) -> tuple[Stamp, ...]:
    stamps: list[Stamp] = []
    is_open = False
    for j, part in enumerate(new.parts):
        if j not in pairs:
            continue
        if is_open and is_same_number(part.timestamp_s, stamps[-1].timestamp_s):
            stamps[-1] = stamps[-1]._replace(length=j + 1 - stamps[-1].at)
        elif is_same_number(part.timestamp_s, old.parts[pairs[j]].timestamp_s):
            is_open = False
        else:
            stamps.append(Stamp(j, 1, part.timestamp_s))
            is_open = True
    return tuple(stamps)


def _moved(
    old: Observation,
    runs: Sequence[Run],
    places: Sequence[int],
    renamed: Sequence[Renamed],
    stamps: Sequence[Stamp],
) -> list[Part]:
    """Parts that stay, with the ids, positions and times they have now.

    Args:
        old: The observation before.
        runs: Which stay.
        places: Their places among the new parts.
        renamed: Ids that follow no rule.
        stamps: New times.

    Raises:
        ValueError, IndexError: Runs do not fit.
    """
    names = dict(renamed)
    pending = [(old.parts[i], run) for run in runs for i in _range(run, len(old))]
    if len(pending) != len(places):
        raise ValueError(f"{len(pending)} parts stay, {len(places)} places are left for them")
    moved = []
    stamp_at = 0
    for (part, run), place in zip(pending, places, strict=True):
        while stamp_at < len(stamps) and stamps[stamp_at].at + stamps[stamp_at].length <= place:
            stamp_at += 1
        time = part.timestamp_s
        if stamp_at < len(stamps) and stamps[stamp_at].at <= place:
            time = stamps[stamp_at].timestamp_s
        name = names[place] if place in names else renumbered(part.id, run.group, run.renumber)
        moved.append(_shifted(part, name, time, run))
    return moved


def _range(run: Run, num_parts: int) -> range:
    if run.start < 0 or run.length < 0 or run.start + run.length > num_parts:
        raise IndexError(f"parts {run.start} to {run.start + run.length} of {num_parts}")
    return range(run.start, run.start + run.length)


def _follows(old: Part, new: Part, run: Run) -> bool:
    """Whether a part is what its run, its name and its time make of it, without building that."""
    if old is new:
        return not (isinstance(old.value, CellValue) and (run.reindex or run.recount))
    if old.modality != new.modality or old.notes != new.notes:
        return False
    if not is_same_number(old.importance, new.importance):
        return False
    before, after = old.value, new.value
    if not (isinstance(before, CellValue) and isinstance(after, CellValue)):
        return is_same_value(old, new)
    count = before.execution_count
    return (
        before.source == after.source
        and before.index + run.reindex == after.index
        and (None if count is None else count + run.recount) == after.execution_count
        and (before.cell_type, before.language) == (after.cell_type, after.language)
    )


def _shifted(part: Part, name: str, time: float | None, run: Run) -> Part:
    value = part.value
    if isinstance(value, CellValue) and (run.reindex or run.recount):
        value = shifted_value(value, run.reindex, run.recount)
    if value is part.value and name == part.id and is_same_number(time, part.timestamp_s):
        return part
    shifted = Part(
        id=name,
        modality=part.modality,
        value=value,
        timestamp_s=time,
        importance=part.importance,
        notes=part.notes,
    )
    if value is part.value:  # the same content: its hash need not be computed again
        shifted.__dict__["digest"] = part.digest
    return shifted
