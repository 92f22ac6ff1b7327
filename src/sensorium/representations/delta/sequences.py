"""Which elements of two sequences are the same: what every difference is made from, in bounded time.

Common ends are skipped first. What lies between is cut at elements that occur once on both sides, in the
longest order they share (patience); stretches without such elements go through the greedy algorithm of Myers.
Work is counted, and a stretch for which there is no work left is reported as all changed: the answer is
always right, only not always the shortest.
"""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import NamedTuple

_CHUNK = 512
"""Elements compared at once."""
_MAX_EDITS = 256
"""Insertions and removals that one stretch without unique elements is searched for."""
_FREE_WORK = 200_000
"""Elements that are looked at beyond a fixed number of times the length of the sequences."""
_NARROWED_CHARS = 400_000
"""Limit of `Work.chars`."""


class Work:
    """How much may still be looked at; shared by comparisons that belong together."""

    def __init__(self, size: int) -> None:
        self.left = size + _FREE_WORK
        self.chars = _NARROWED_CHARS
        """Characters of replaced stretches that may still be searched for words that stay."""


class Block(NamedTuple):
    """A stretch that both sequences share."""

    old: int
    """Where it begins in the old sequence."""
    new: int
    """Where it begins in the new one."""
    length: int


class Gap(NamedTuple):
    """A stretch between two blocks: ``old[old_start:old_end]`` became ``new[new_start:new_end]``."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def common_prefix(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """Number of leading elements that are equal; works for lists, tuples, texts and bytes."""
    limit = min(len(old), len(new))
    start, step = 0, _CHUNK
    while start < limit and old[start : start + step] == new[start : start + step]:
        start += step
        step *= 2
    if start >= limit:
        return limit
    low, high = start, min(start + step, limit)
    while low < high:  # the first difference is in [low, high]
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(old: Sequence[Hashable], new: Sequence[Hashable], limit: int) -> int:
    """Number of trailing elements that are equal, at most `limit`."""
    first, second, start, step = len(old), len(new), 0, _CHUNK
    while start < limit:
        end = min(start + step, limit)
        if old[first - end : first - start] != new[second - end : second - start]:
            break
        start, step = end, step * 2
    low, high = start, min(start + step, limit)
    while low < high:
        middle = (low + high + 1) // 2
        if old[first - middle : first - low] == new[second - middle : second - low]:
            low = middle
        else:
            high = middle - 1
    return low


def matching_blocks(
    old: Sequence[Hashable], new: Sequence[Hashable], work: Work | None = None
) -> list[Block]:
    """Stretches that two sequences share, in order, as long as they can be; adjacent ones are joined.

    Args:
        old: The sequence before.
        new: The sequence now.
        work: Limit of what is looked at, lowered by what was; by default O(n + m) with a factor that does not
            depend on the content.
    """
    return _Search(old, new, work or Work(8 * (len(old) + len(new)))).run()


def gaps(blocks: Sequence[Block], num_old: int, num_new: int) -> list[Gap]:
    """What lies between blocks, where something does."""
    found, i, j = [], 0, 0
    for block in [*blocks, Block(num_old, num_new, 0)]:
        if block.old > i or block.new > j:
            found.append(Gap(i, block.old, j, block.new))
        i, j = block.old + block.length, block.new + block.length
    return found


class _Search:
    """One comparison of two sequences."""

    def __init__(self, old: Sequence[Hashable], new: Sequence[Hashable], work: Work) -> None:
        self.old, self.new, self.work = old, new, work
        self.blocks: list[Block] = []

    def run(self) -> list[Block]:
        stack = [Gap(0, len(self.old), 0, len(self.new))]
        while stack:
            gap = self._trim(stack.pop())
            i, i_end, j, j_end = gap
            self.work.left -= (i_end - i) + (j_end - j)
            if i == i_end or j == j_end or self.work.left < 0:
                continue
            places_old, places_new = _places(self.old, i, i_end), _places(self.new, j, j_end)
            anchors = _anchors(places_old, places_new)
            if not anchors:
                rest_old = [at for at in range(i, i_end) if self.old[at] in places_new]
                rest_new = [at for at in range(j, j_end) if self.new[at] in places_old]
                self._myers(rest_old, rest_new)
                continue
            for block in _stretches(anchors):
                self.blocks.append(block)
                if i < block.old and j < block.new:
                    stack.append(Gap(i, block.old, j, block.new))
                i, j = block.old + block.length, block.new + block.length
            stack.append(Gap(i, i_end, j, j_end))
        return self._joined()

    def _trim(self, gap: Gap) -> Gap:
        i, i_end, j, j_end = gap
        if i == i_end or j == j_end:
            return gap
        old, new = self.old[i:i_end], self.new[j:j_end]
        head = common_prefix(old, new)
        tail = common_suffix(old, new, min(len(old), len(new)) - head)
        if head:
            self.blocks.append(Block(i, j, head))
        if tail:
            self.blocks.append(Block(i_end - tail, j_end - tail, tail))
        return Gap(i + head, i_end - tail, j + head, j_end - tail)

    def _myers(self, rest_old: list[int], rest_new: list[int]) -> None:
        """Shortest edit script between places of both sides, when the work left is enough to find it."""
        old, new = [self.old[at] for at in rest_old], [self.new[at] for at in rest_new]
        n, m = len(old), len(new)
        reach = {1: 0}
        trace: list[dict[int, int]] = []
        for edits in range(min(n + m, _MAX_EDITS) + 1 if n and m else 0):
            trace.append(dict(reach))
            for k in range(-edits, edits + 1, 2):
                x = start = _step(reach, edits, k)
                while x < n and x - k < m and old[x] == new[x - k]:
                    x += 1
                self.work.left -= 2 + x - start
                reach[k] = x
                if k == n - m and x >= n:
                    self._walk_back(rest_old, rest_new, trace)
                    return
            if self.work.left < 0:
                return

    def _walk_back(self, rest_old: list[int], rest_new: list[int], trace: list[dict[int, int]]) -> None:
        x, y = len(rest_old), len(rest_new)
        for edits in range(len(trace) - 1, -1, -1):
            k = x - y
            start = _step(trace[edits], edits, k)
            self.blocks.extend(Block(rest_old[at], rest_new[at - k], 1) for at in range(start, x))
            is_insert = _is_insert(trace[edits], edits, k)
            x = start if is_insert else start - 1
            y = x - (k + 1 if is_insert else k - 1)

    def _joined(self) -> list[Block]:
        joined: list[Block] = []
        begin_old = begin_new = end_old = end_new = 0
        for old, new, length in sorted(self.blocks):
            if (old, new) != (end_old, end_new):
                if end_old > begin_old:
                    joined.append(Block(begin_old, begin_new, end_old - begin_old))
                begin_old, begin_new = old, new
            end_old, end_new = old + length, new + length
        if end_old > begin_old:
            joined.append(Block(begin_old, begin_new, end_old - begin_old))
        return joined


def _is_insert(reach: dict[int, int], edits: int, k: int) -> bool:
    return k == -edits or (k != edits and reach[k - 1] < reach[k + 1])


def _step(reach: dict[int, int], edits: int, k: int) -> int:
    """Farthest place of the old side on diagonal `k` after one more edit."""
    return reach[k + 1] if _is_insert(reach, edits, k) else reach[k - 1] + 1


def _anchors(places_old: dict[Hashable, int], places_new: dict[Hashable, int]) -> list[tuple[int, int]]:
    """Elements that occur once on each side: the longest run of them whose order is the same."""
    pairs = [(i, places_new[key]) for key, i in places_old.items() if i >= 0 and places_new.get(key, -1) >= 0]
    return _longest_increasing(pairs)


def _stretches(anchors: list[tuple[int, int]]) -> list[Block]:
    """Anchors as blocks, each as long as anchors follow each other on both sides."""
    found = []
    start = 0
    for at in range(1, len(anchors) + 1):
        i, j = anchors[at - 1]
        if at == len(anchors) or anchors[at] != (i + 1, j + 1):
            found.append(Block(*anchors[start], at - start))
            start = at
    return found


def _places(sequence: Sequence[Hashable], start: int, end: int) -> dict[Hashable, int]:
    """Element -> its place, or -1 when it occurs several times."""
    places: dict[Hashable, int] = {}
    for place in range(start, end):
        key = sequence[place]
        places[key] = -1 if key in places else place
    return places


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Longest subsequence with increasing second numbers, of pairs sorted by the first."""
    tops: list[int] = []
    top_at: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(top_at[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(j)
            top_at.append(at)
        else:
            tops[pile] = j
            top_at[pile] = at
    found = []
    at = top_at[-1] if top_at else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]
