"""Parts of different rates on one clock: which reading of every source holds when, and in which order."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core import MissingDependencyError, ObservationError
from sensorium.observations.base import Part
from sensorium.observations.values import ImageValue

SAME_LOOK_BITS = 3
"""Frames whose fingerprints differ in no more bits look the same."""

_EXAMINED_PER_FRAME = 8
_EXAMINED_AT_LEAST = 64


class Alignment(NamedTuple):
    """Which part of every source holds at every query time."""

    sources: tuple[str, ...]
    """S names, in the order in which they first appear."""
    parts: tuple[Part, ...]
    """As they were given."""
    position: NDArray[np.int64]
    """(T, S): position in `parts`; -1 where there is none. Of a source with times, never falls with time."""
    present: NDArray[np.bool_]
    """(T, S): whether there is one."""
    age_s: NDArray[np.float64]
    """(T, S): query time minus time of the part; negative for a later part (``nearest``), 0 for a part
    without a time, NaN where there is none."""

    def row(self, step: int) -> dict[str, Part | None]:
        """Source -> the part that holds at one query time, None where there is none."""
        return {
            source: self.parts[position] if position >= 0 else None
            for source, position in zip(self.sources, self.position[step].tolist(), strict=True)
        }


def source_of(part: Part) -> str:
    """Name of a part's source: its id without what follows the last slash (``camera`` of ``camera/12``)."""
    return part.id.rpartition("/")[0] or part.id


def align(
    parts: Sequence[Part],
    *,
    at: Sequence[float] | NDArray[np.float64],
    tolerance_s: float = np.inf,
    method: Literal["previous", "nearest"] = "previous",
    source: Callable[[Part], str] = source_of,
) -> Alignment:
    """Find for every query time the part of each source that holds then.

    Args:
        parts: In any order. A source all of whose parts have no time is constant: its last part holds
            always. In other sources, parts without a finite time are left out. Of parts at the same time, the
            last holds.
        at: T query times in seconds, in any order.
        tolerance_s: Greatest distance in time; older (or, with ``nearest``, later) parts do not hold.
        method: ``previous``, the last part at or before the time (nothing from the future), or ``nearest``,
            the earlier one of two at the same distance.
        source: Names a part's source.

    Returns:
        The alignment; later query times never get earlier parts of a source.

    Raises:
        ValueError: A query time is not finite, `tolerance_s` is negative or not a number, or the method is
            unknown.
    """
    times = np.asarray(at, np.float64).reshape(-1)
    if not np.isfinite(times).all():
        raise ValueError("Query times are finite numbers of seconds; found NaN or infinity.")
    if not tolerance_s >= 0.0:
        raise ValueError(f"tolerance_s is a time of 0 or more, found {tolerance_s}.")
    if method not in ("previous", "nearest"):
        raise ValueError(f"Unknown method {method!r}; known: 'previous', 'nearest'.")
    groups: dict[str, list[int]] = {}
    for position, part in enumerate(parts):
        groups.setdefault(source(part), []).append(position)
    stamps = _times(parts)
    found = np.full((times.size, len(groups)), -1, np.int64)
    age = np.full((times.size, len(groups)), np.nan)
    for column, members in enumerate(groups.values()):
        positions = np.array(members, np.int64)
        timed = positions[np.isfinite(stamps[positions])]
        if not timed.size:
            found[:, column], age[:, column] = positions[-1], 0.0
            continue
        order = timed[np.argsort(stamps[timed], kind="stable")]
        chosen, ages = _choose(stamps[order], times, method)
        holds = (chosen >= 0) & (np.abs(ages) <= tolerance_s)
        found[holds, column] = order[chosen[holds]]
        age[holds, column] = ages[holds]
    return Alignment(tuple(groups), tuple(parts), found, found >= 0, age)


def interleave(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Order parts by time, as a transcript of a recording with frames, sounds and text.

    Parts without a finite time come first; parts of the same time keep their order.
    """
    stamps = _times(parts)
    keys = np.where(np.isfinite(stamps), stamps, -np.inf)
    return tuple(parts[i] for i in np.argsort(keys, kind="stable").tolist())


def sample_frames(frames: Sequence[Part], limit: int) -> tuple[Part, ...]:
    """Pick at most `limit` frames of a stream, so that each differs from the one picked before it.

    Of a long stream, every n-th frame is looked at (`limit` x 8, at least 64). Their fingerprints
    (`media.phash`) say how much each differs from the one before; frames are picked at equal steps of the sum
    of these changes, so that stretches in which much happens get more frames, and frames that look like the
    one picked before are left out. A stream in which nothing changes gives its first frame.

    Args:
        frames: Parts with pictures, in time order; those that cannot be looked at (other kinds, no bytes,
            damaged) are left out.
        limit: Most frames picked.

    Returns:
        Frames in time order, the first that can be looked at among them.

    Raises:
        ValueError: `limit` is negative.
        MissingDependencyError: Pillow is not installed.
    """
    if limit < 0:
        raise ValueError(f"A number of frames is 0 or more, found {limit}.")
    if limit == 0:
        return ()
    ordered = interleave([frame for frame in frames if isinstance(frame.value, ImageValue)])
    examined = max(limit * _EXAMINED_PER_FRAME, _EXAMINED_AT_LEAST)
    if len(ordered) > examined:
        steps = np.unique(np.rint(np.linspace(0, len(ordered) - 1, examined)).astype(np.int64))
        ordered = tuple(ordered[i] for i in steps.tolist())
    seen, prints = _fingerprints(ordered)
    if not seen:
        return ()
    changes = np.bitwise_count(prints[1:] ^ prints[:-1]).astype(np.float64)
    # Sensor noise flips a few bits from frame to frame; it must not add up to a change.
    progress = np.concatenate([[0.0], np.cumsum(np.where(changes > SAME_LOOK_BITS, changes, 0.0))])
    # Drift is slow: frames that differ little one by one still differ from the last picked one.
    drift = np.bitwise_count(prints ^ prints[0]).astype(np.float64)
    progress += 0.5 * np.maximum.accumulate(drift)
    wanted = np.linspace(0.0, progress[-1], limit)
    picked = np.unique(np.searchsorted(progress, wanted - 1e-9, side="left"))
    kept: list[int] = []
    for position in picked.tolist():
        if not kept or np.bitwise_count(prints[position] ^ prints[kept[-1]]) > SAME_LOOK_BITS:
            kept.append(position)
    return tuple(seen[position] for position in kept)


def _times(parts: Sequence[Part]) -> NDArray[np.float64]:
    """(N,) seconds; NaN where there is no time."""
    return np.array([np.nan if p.timestamp_s is None else p.timestamp_s for p in parts], np.float64)


def _choose(
    stamps: NDArray[np.float64], times: NDArray[np.float64], method: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Position in the sorted `stamps` for every time, -1 for none, and the age."""
    before = np.searchsorted(stamps, times, side="right").astype(np.int64) - 1
    chosen = before
    if method == "nearest":
        # The last of those with the next time, as before: of equal times the last holds.
        following = np.minimum(before + 1, stamps.size - 1)
        after = np.searchsorted(stamps, stamps[following], side="right").astype(np.int64) - 1
        gap_before = np.where(before >= 0, times - stamps[np.maximum(before, 0)], np.inf)
        chosen = np.where(np.abs(stamps[after] - times) < gap_before, after, before)
    return chosen, times - stamps[np.maximum(chosen, 0)]


def _fingerprints(frames: Sequence[Part]) -> tuple[list[Part], NDArray[np.uint64]]:
    from sensorium.representations.media.phash import phash

    seen, prints = [], []
    for frame in frames:
        assert isinstance(frame.value, ImageValue)
        try:
            prints.append(phash(frame.value))
        except MissingDependencyError:
            raise
        except ObservationError:
            continue
        seen.append(frame)
    return seen, np.array(prints, np.uint64)
