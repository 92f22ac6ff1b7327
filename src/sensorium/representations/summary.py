"""Summaries without a model: the segments that matter most, in order, with marks for the rest."""

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from sensorium.llm.base import TokenCounter
from sensorium.representations.base import Document, Level
from sensorium.representations.documents import Measured
from sensorium.representations.packing import MARK_TOKENS, Packing
from sensorium.representations.scoring import Relevance, scores

SHARES = (0.6, 0.35, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01)
"""Sizes of the summaries that are tried, as shares of the whole part, as far as `compression_ratio` allows.
What is left of the budget afterwards goes to the chosen ones, so that steps may be coarse."""
SMALLEST = 40
"""A part of so many tokens or fewer is sent whole or not at all: a summary would not be shorter."""
SMALLEST_BODY = 16
"""Tokens that a summary has at least, its heading not counted."""
PINNED_GAIN = 5.0
"""A pinned segment counts so many times: only what the task asks for by name goes before it."""
_PLACE = re.compile(r"(?P<word>[a-z]+?)s? (?P<low>\d+)(?:-(?P<high>\d+))?")
"""Places that can be joined: ``line 12``, ``lines 12-41``."""


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
        measured: The document, where it is in a `DocumentCache`.
    """

    def __init__(
        self,
        label: str,
        document: Document,
        counter: TokenCounter,
        relevance: Relevance,
        measured: Measured | None = None,
    ) -> None:
        self.document = document
        self._counter, self._relevance = counter, relevance
        self._measured = measured or Measured(document, counter)
        title = document.title.removeprefix(f"{label.rpartition('/')[2]}: ")
        self.heading = f"### {label}: {title}" if title else f"### {label}"
        self.full_text = self._written(None)
        self._last_draft: Draft | None = None

    @cached_property
    def full_tokens(self) -> int:
        """Tokens of `full_text`."""
        return self._counter.text(self.full_text)

    @cached_property
    def values(self) -> list[float]:
        """Value of every segment."""
        return scores(self.document, self._relevance, self._measured.worth)

    @property
    def costs(self) -> list[int]:
        """Tokens of every segment, with its line end."""
        return self._measured.costs

    @property
    def substance(self) -> float:
        """Tokens as far as they are new: see `Measured`."""
        return self._measured.substance if self.can_shrink else self.full_tokens

    @cached_property
    def _overhead(self) -> int:
        return self._counter.text(self.heading) + (6 if self.document.fence is not None else 1)

    @cached_property
    def _order(self) -> list[int]:
        """Positions by value per root of the cost: short telling lines first, pinned ones early."""
        values, pinned = self.values, [segment.is_pinned for segment in self.document.segments]
        least = sum(values) / max(1, len(values))
        ranks = [
            (-(PINNED_GAIN * max(value, least) if is_pinned else value) / cost**0.5, i)
            for i, (value, cost, is_pinned) in enumerate(zip(values, self.costs, pinned, strict=True))
            if value > 0.0 or is_pinned
        ]
        return [i for _, i in sorted(ranks)]

    @cached_property
    def _packing(self) -> Packing:
        return Packing(self.document.segments, self.costs, self._order)

    @cached_property
    def _total(self) -> float:
        return sum(self.values) or 1.0

    def drafts(self, compression_ratio: float, room: int | None = None) -> list[Draft]:
        """The whole document, and summaries from long to short, none below that share of its substance.

        Args:
            compression_ratio: That share.
            room: Tokens that nothing else wants to have: of all summaries only one is made that fits.
        """
        found = [Draft(Level.FULL, self.full_tokens, 1.0, None, "")]
        if not self.can_shrink or compression_ratio >= 1.0:
            return found
        least = max(int(compression_ratio * self.substance), self._overhead + SMALLEST_BODY)
        sizes = {int(share * self.full_tokens) for share in SHARES} | {int(0.5 * self.substance), least}
        sizes.update(self._sizes_of_best())
        sizes = {size for size in sizes if size >= least}
        if room is not None:
            sizes = {max((size for size in sizes if size <= room), default=least)}
        smaller = [self.draft(size) for size in sorted(sizes)]  # rising: see `Packing`
        for draft in reversed(smaller):
            if draft is not None and draft.kept != found[-1].kept:
                found.append(draft)
        return found

    def _sizes_of_best(self) -> list[int]:
        """Tokens for the best one, two and four segments: a smaller summary would be of worse ones."""
        sizes, tokens, kept = [], self._overhead + MARK_TOKENS, set[int]()
        for count, best in enumerate(self._order[:4], start=1):
            at: int | None = best
            while at is not None and at not in kept:
                kept.add(at)
                tokens += self.costs[at]
                parent = self.document.segments[at].parent
                at = parent if parent is not None and 0 <= parent < len(self.costs) else None
            tokens += MARK_TOKENS
            if count in (1, 2, 4):
                sizes.append(tokens)
        return sizes

    @property
    def can_shrink(self) -> bool:
        """Whether there are summaries."""
        return self.full_tokens > SMALLEST and len(self.document.texts) > 1

    def draft(self, limit: int) -> Draft | None:
        """The best summary of about so many tokens; None when not even one segment fits."""
        kept, tokens = self._packing.within(limit - self._overhead)
        last = self._last_draft
        if last is not None and last.kept is kept:
            return last
        count = len(self.document.texts)
        if not kept or len(kept) == count:
            return None
        retained = sum([self.values[i] for i in kept]) / self._total
        why = f"{len(kept):,} of {count:,} {self.document.unit}"
        draft = Draft(Level.SUMMARY, self._overhead + tokens, min(retained, 0.999), kept, why)
        self._last_draft = draft
        return draft

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

    def _written(self, kept: Sequence[int] | None) -> str:
        document = self.document
        if kept is None:
            body = document.separator.join(document.texts)
        else:
            body = document.separator.join(_with_marks(document, kept))
        if document.fence is not None and ("\n" in body or body.startswith(("#", "["))):
            ticks = "```" if "```" not in body else "~~~~"
            body = f"{ticks}{document.fence}\n{body}\n{ticks}"
        return f"{self.heading}\n{body}" if body else self.heading


def _with_marks(document: Document, kept: Sequence[int]) -> list[str]:
    lines: list[str] = []
    expected, texts = 0, document.texts
    for position in (*kept, len(texts)):
        if position > expected:
            lines.append(left_out(document, expected, position))
        if position < len(texts):
            lines.append(texts[position])
        expected = position + 1
    return lines


def left_out(document: Document, start: int, stop: int) -> str:
    """The mark for segments `start` to `stop` (exclusive): ``[... lines 12-41]``, ``[... 3 fields]``.

    Places that are not numbered are not named: they cost more tokens than they tell.
    """
    segments = document.segments
    first, last = segments[start].place, segments[stop - 1].place
    begin, end = _numbered(first), _numbered(last)
    if begin is None or end is None or begin[0] != end[0]:
        count, unit = stop - start, document.unit
        named, space, _ = first.partition(" ")
        if space and named.isalpha() and last.startswith(f"{named} "):
            unit = f"{named}s"
        return f"[... {count:,} {unit.removesuffix('s') if count == 1 else unit}]"
    word, low, high = begin[0], begin[1], end[2]
    return f"[... {word} {low}]" if low == high else f"[... {word}s {low}-{high}]"


@lru_cache(maxsize=16_384)
def _numbered(place: str) -> tuple[str, str, str] | None:
    """Word, first and last number of a place such as ``line 12`` or ``lines 12-41``; None for others."""
    match = _PLACE.fullmatch(place)
    return (match["word"], match["low"], match["high"] or match["low"]) if match else None
