"""Summaries without a model: the segments that matter most, in order, with marks for the rest."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from sensorium.llm.base import TokenCounter
from sensorium.representations.base import Document, Level
from sensorium.representations.scoring import Relevance, scores

SHARES = (0.6, 0.35, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01)
"""Sizes of the summaries that are tried, as shares of the whole part, as far as `compression_ratio` allows.
What is left of the budget afterwards goes to the chosen ones, so that steps may be coarse."""
SMALLEST = 40
"""A part of so many tokens or fewer is sent whole or not at all: a summary would not be shorter."""
PINNED_GAIN = 5.0
"""A pinned segment counts so many times: only what the task asks for by name goes before it."""
MARK_TOKENS = 9
"""What a mark for left-out segments costs, about."""
_MISSES = 60
"""So many segments in a row that do not fit end the search for smaller ones."""


class Draft(NamedTuple):
    """A way to show a document that was not written out yet."""

    level: Level
    tokens: int
    """Estimate of its cost, heading included."""
    retained: float
    """Share of the segments' value that it keeps, in [0, 1]."""
    kept: tuple[int, ...] | None
    """Positions of the kept segments, ascending; None for all."""
    why: str


class Sheet:
    """A document with what it costs and what its segments are worth.

    Args:
        label: Written in the heading, so that the agent can name and fetch the part.
        document: The part as text.
        counter: Counts tokens.
        relevance: To the task.
    """

    def __init__(self, label: str, document: Document, counter: TokenCounter, relevance: Relevance) -> None:
        self.document = document
        self._counter, self._relevance = counter, relevance
        self.heading = f"### {label} ({document.title})" if document.title else f"### {label}"
        self.full_text = self._written(None)
        self.full_tokens = counter.text(self.full_text)

    @cached_property
    def values(self) -> list[float]:
        """Value of every segment."""
        return scores(self.document, self._relevance)

    @cached_property
    def costs(self) -> list[int]:
        """Tokens of every segment, with its line end."""
        return [self._counter.text(segment.text) + 1 for segment in self.document.segments]

    @cached_property
    def _overhead(self) -> int:
        return self._counter.text(self.heading) + (6 if self.document.fence is not None else 1)

    @cached_property
    def _order(self) -> list[int]:
        """Positions by value per root of the cost: short telling lines first, pinned ones early."""
        segments, values, costs = self.document.segments, self.values, self.costs
        least = sum(values) / max(1, len(values))

        def rank(i: int) -> tuple[float, int]:
            value = PINNED_GAIN * max(values[i], least) if segments[i].is_pinned else values[i]
            return -value / costs[i] ** 0.5, i

        return sorted((i for i in range(len(segments)) if values[i] > 0.0 or segments[i].is_pinned), key=rank)

    def drafts(self, compression_ratio: float) -> list[Draft]:
        """The whole document, and summaries from long to short, none below `compression_ratio` of it."""
        found = [Draft(Level.FULL, self.full_tokens, 1.0, None, "")]
        if not self.can_shrink or compression_ratio >= 1.0:
            return found
        for share in (*(s for s in SHARES if s > compression_ratio), compression_ratio):
            draft = self.draft(int(share * self.full_tokens))
            if draft is not None and draft.kept != found[-1].kept:
                found.append(draft)
        return found

    @property
    def can_shrink(self) -> bool:
        """Whether there are summaries."""
        return self.full_tokens > SMALLEST and len(self.document.segments) > 1

    def draft(self, limit: int) -> Draft | None:
        """The best summary of about so many tokens; None when not even one segment fits."""
        kept, tokens = self._choose(limit - self._overhead)
        count = len(self.document.segments)
        if not kept or len(kept) == count:
            return None
        retained = sum(self.values[i] for i in kept) / (sum(self.values) or 1.0)
        why = f"{len(kept):,} of {count:,} {self.document.unit}"
        return Draft(Level.SUMMARY, self._overhead + tokens, min(retained, 0.999), kept, why)

    def draft_within(self, limit: int) -> Draft | None:
        """The best summary whose text, written out and counted, has at most `limit` tokens."""
        target, best = limit, None
        for _ in range(4):
            draft = self.draft(target)
            if draft is None:
                return best
            tokens = self._counter.text(self.text(draft))
            if tokens <= limit and (best is None or draft.retained > best.retained):
                best = draft._replace(tokens=tokens)
            if 0.96 * limit <= tokens <= limit:
                return best
            target += int(0.9 * (limit - tokens)) if tokens < limit else limit - tokens - 2
        return best

    def text(self, draft: Draft) -> str:
        """Write a draft out."""
        return self.full_text if draft.kept is None else self._written(draft.kept)

    def _choose(self, limit: int) -> tuple[tuple[int, ...], int]:
        """Take segments, each with its parents, while they and the marks between them fit."""
        segments, costs = self.document.segments, self.costs
        kept: set[int] = set()
        used, misses = MARK_TOKENS, 0
        for position in self._order:
            if position in kept:
                continue
            wanted = self._with_parents(position, kept)
            price = sum(costs[i] for i in wanted) + MARK_TOKENS * self._new_gaps(wanted, kept, len(segments))
            if used + price > limit:
                misses += 1
                if misses > _MISSES:
                    break
                continue
            misses = 0
            used += price
            kept.update(wanted)
        return tuple(sorted(kept)), used

    def _with_parents(self, position: int, kept: set[int]) -> list[int]:
        segments = self.document.segments
        wanted: list[int] = []
        at: int | None = position
        while at is not None and at not in kept and at not in wanted:
            wanted.append(at)
            parent = segments[at].parent
            at = parent if parent is not None and 0 <= parent < len(segments) else None
        return wanted

    @staticmethod
    def _new_gaps(wanted: Sequence[int], kept: set[int], count: int) -> int:
        """By how much the number of marks grows when segments are added; it may shrink."""
        change = 0
        added: set[int] = set()
        for i in wanted:
            before = i == 0 or i - 1 in kept or i - 1 in added
            after = i == count - 1 or i + 1 in kept or i + 1 in added
            change += 1 - before - after
            added.add(i)
        return change

    def _written(self, kept: Sequence[int] | None) -> str:
        document = self.document
        if kept is None:
            body = document.separator.join([segment.text for segment in document.segments])
        else:
            body = document.separator.join(_with_marks(document, kept))
        if document.fence is not None and ("\n" in body or body.startswith(("#", "["))):
            ticks = "```" if "```" not in body else "~~~~"
            body = f"{ticks}{document.fence}\n{body}\n{ticks}"
        return f"{self.heading}\n{body}" if body else self.heading


def _with_marks(document: Document, kept: Sequence[int]) -> list[str]:
    lines: list[str] = []
    expected = 0
    for position in (*kept, len(document.segments)):
        if position > expected:
            lines.append(left_out(document, expected, position))
        if position < len(document.segments):
            lines.append(document.segments[position].text)
        expected = position + 1
    return lines


def left_out(document: Document, start: int, stop: int) -> str:
    """The mark for segments `start` to `stop` (exclusive): ``[... lines 12-41]``, ``[... 3 rows]``."""
    first, last = document.segments[start].place, document.segments[stop - 1].place
    word, _, begin = first.partition(" ")
    same, _, end = last.partition(" ")
    if not begin or word != same or not end:
        where = f": {first} to {last}" if first and last and first != last else f": {first}" if first else ""
        return f"[... {stop - start} {document.unit}{where}]"
    return f"[... {first}]" if begin == end else f"[... {word}s {begin}-{end}]"
