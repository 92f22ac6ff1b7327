"""Which segments are kept within a limit: taken in order of rank, each with its parents, while they fit."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import compress
from operator import attrgetter
from typing import NamedTuple

from sensorium.representations.base import Segment

MARK_TOKENS = 9
"""What a mark for left-out segments costs, about."""
_MISSES = 60
"""So many segments in a row that do not fit end the search for smaller ones."""


class _Stop(NamedTuple):
    """Where a run met the first segment that did not fit."""

    limit: int
    """Of the run."""
    rank: int
    """Of that segment."""
    used: int
    kept: bytes


_limit_of = attrgetter("limit")


class _Done(NamedTuple):
    """What came of a run, which holds for all limits from its own up to the next at which a segment fits."""

    limit: int
    next_limit: float
    kept: tuple[int, ...]
    used: int


class Packing:
    """Packs the segments of one document into any number of limits.

    Runs for different limits go the same way up to the first segment that does not fit. Where that was is
    remembered, and a run for a larger limit begins there; a limit too little larger for any segment that did
    not fit needs no run at all.

    Args:
        segments: All of the document.
        costs: Tokens of each.
        order: Positions in the order in which they are tried; others are only kept as parents.
    """

    def __init__(self, segments: Sequence[Segment], costs: Sequence[int], order: Sequence[int]) -> None:
        self._count = count = len(segments)
        # Places are positions from 1 on. Place 0 and the one behind the last are always kept: nothing is
        # left out beyond them, and they need no parents.
        self._costs = (0, *costs, 0)
        self._parents = [0] * (count + 2)
        for place, segment in enumerate(segments, start=1):
            parent = segment.parent
            if parent is not None and 0 <= parent < count:
                self._parents[place] = parent + 1
        self._order = [position + 1 for position in order]
        self._stops: list[_Stop] = []
        """One per limit that was run, by rising limits."""
        self._done: _Done | None = None
        """The last run."""

    def within(self, limit: int) -> tuple[tuple[int, ...], int]:
        """Take segments while they and the marks between them fit into `limit` tokens.

        Returns:
            Positions of the kept ones, ascending, and the tokens of them and the marks.
        """
        done = self._done
        if done is None or not done.limit <= limit < done.next_limit:
            done = self._done = self._run(limit)
        return done.kept, done.used

    def _run(self, limit: int) -> _Done:
        order, costs, parents = self._order, self._costs, self._parents
        at = bisect_right(self._stops, limit, key=_limit_of)
        if at == 0:
            start, used, kept = 0, MARK_TOKENS, bytearray(self._count + 2)
            kept[0] = kept[-1] = 1
        else:
            _, start, used, before = self._stops[at - 1]
            kept = bytearray(before)
        misses, has_stopped, next_limit = 0, False, math.inf
        for rank in range(start, len(order)):
            place = order[rank]
            if kept[place]:
                continue
            if kept[parents[place]]:
                # A segment between two kept ones closes a gap, one beside none opens another.
                price = costs[place] + MARK_TOKENS * (1 - kept[place - 1] - kept[place + 1])
                if used + price <= limit:
                    kept[place] = 1
                    used, misses = used + price, 0
                    continue
            else:
                price = self._take_with_parents(place, kept, limit - used)
                if used + price <= limit:
                    used, misses = used + price, 0
                    continue
            next_limit = min(next_limit, used + price)
            if not has_stopped:
                self._stops.insert(at, _Stop(limit, rank, used, bytes(kept)))
                has_stopped = True
            misses += 1
            if misses > _MISSES:
                break
        return _Done(limit, next_limit, tuple(compress(range(self._count), kept[1:])), used)

    def _take_with_parents(self, place: int, kept: bytearray, room: int) -> int:
        """Keep a segment and what it needs if they fit; what that costs."""
        price, taken = 0, []
        while not kept[place]:
            price += self._costs[place] + MARK_TOKENS * (1 - kept[place - 1] - kept[place + 1])
            kept[place] = 1
            taken.append(place)
            place = self._parents[place]
        if price > room:
            for place in taken:
                kept[place] = 0
        return price
