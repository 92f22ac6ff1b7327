"""What a language model said of a part, each sentence with its source, above the lines that matter most."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sensorium.core.counted import counted
from sensorium.features.extractors.numbered_lines import lines_of
from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import TextBlock
from sensorium.representations.base import Level
from sensorium.representations.subjects import Candidate, Context, Subject
from sensorium.representations.summary import SHARES, Draft, Sheet

_SEVERAL = re.compile(r"(line|row)s (\d{1,7})-(\d{1,7})")
DENSITY = 3.0
"""A sentence is taken to tell as much as so many times its own length of what it cites."""
LARGEST = 0.35
"""Share of a part up to which the model's summary stands above its lines; beyond, lines alone say more."""
_LABEL_TOKENS = 6
"""Of the line between the sentences and the segments."""
MAX_SHARE = 0.8
"""One that would cost more than this share of the whole part is not offered."""


def with_model(subject: Subject, found: Sequence[Candidate], context: Context) -> list[Candidate]:
    """Put what a language model said of a part in place of summaries by segments alone.

    A summary has the model's sentences, all pinned segments (errors, the cursor, a table's names), the
    outputs that are shown with a cell, and as many further segments as its size allows, so that it is not
    shorter than `compression_ratio` says. Summaries by segments alone stay where the sentences would take
    more than half of the room, and above `LARGEST`.

    Its `retained` is ``sum_i v_i c_i / sum_i v_i`` over the values v of all segments, where c is 1 for a
    segment that is shown, and for one that a verified sentence cites ``min(1, DENSITY * t / T)``: t tokens of
    the sentence stand for T tokens of the segments it cites (of several sentences the most).

    Args:
        subject: With a sheet.
        found: Candidates so far; the whole, and summaries by segments.
        context: With `observation.compression_ratio` and `summaries`.

    Returns:
        Candidates; `found` itself where no sentence is verified.
    """
    config, sheet, features = context.config, subject.sheet, subject.summary
    ratio = config.observation.compression_ratio
    if sheet is None or features is None or not sheet.can_shrink or ratio >= 1.0:
        return list(found)
    sentences: list[Mapping[str, Any]] = features.data.get("sentences", [])
    if not any(sentence["verified"] for sentence in sentences):
        return list(found)
    told = _Told(subject, sheet, features.data, context.counter, config.summaries.unverified == "mark")
    low, high = 2 * told.head_tokens, int(LARGEST * sheet.full_tokens)
    summaries: dict[str, Candidate] = {}
    for share in (ratio, *(s for s in reversed(SHARES) if ratio < s <= LARGEST)):
        candidate = told.candidate(sheet.draft_within(int(share * sheet.full_tokens) - told.head_tokens))
        if candidate.tokens <= MAX_SHARE * sheet.full_tokens:
            summaries.setdefault(candidate.why, candidate)
    others = [c for c in found if c.level is not Level.SUMMARY or not low <= c.tokens <= high]
    return [*others, *reversed(summaries.values())]


class _Told:
    """What a model said of a subject, and how it is put together with segments.

    Args:
        subject: Whose first part it is about.
        sheet: Of the subject.
        data: Of the extractor ``summary``.
        counter: Counts tokens.
        is_marking: Whether unverified sentences are shown.
    """

    def __init__(
        self, subject: Subject, sheet: Sheet, data: Mapping[str, Any], counter: TokenCounter, is_marking: bool
    ) -> None:
        self._sheet, self._counter = sheet, counter
        sentences: list[Mapping[str, Any]] = data["sentences"]
        verified = [sentence for sentence in sentences if sentence["verified"]]
        shown = sentences if is_marking else verified
        self._head = "\n".join([f"Summary by {data['model']}:", *map(_line, shown)])
        self.head_tokens = counter.text(self._head) + _LABEL_TOKENS
        self._why = _why(data, len(verified), len(sentences))
        self._covered = _covered(subject, sheet, verified, counter)
        self._fixed = {i for i, segment in enumerate(sheet.document.segments) if segment.is_pinned}
        for member in subject.members[1:]:
            self._fixed.update(range(member.start, member.stop))

    def candidate(self, draft: Draft | None) -> Candidate:
        """The sentences with the segments that must be there and those of a draft."""
        sheet, why = self._sheet, self._why
        kept = self._fixed.union(draft.kept or () if draft is not None else ())
        values = sheet.values
        told = sum([v * (1.0 if i in kept else self._covered[i]) for i, v in enumerate(values)])
        body = sheet.text(Draft(Level.SUMMARY, 0, 0.0, tuple(sorted(kept)), "")).removeprefix(sheet.heading)
        head = self._head
        if kept:
            head += f"\nMost important {sheet.document.unit}:"
            why += f", with {len(kept):,} of {len(values):,} {sheet.document.unit}"
        text = f"{sheet.heading}\n{head}{body}"
        return Candidate(
            Level.SUMMARY,
            self._counter.text(text),
            min(0.999, told / (sum(values) or 1.0)),
            why,
            lambda: (TextBlock(text=text),),
            extend=self._within,
        )

    def _within(self, limit: int) -> Candidate | None:
        candidate = self.candidate(self._sheet.draft_within(limit - self.head_tokens))
        return candidate if candidate.tokens <= limit else None


def _line(sentence: Mapping[str, Any]) -> str:
    where = f" [{sentence['where']}]" if sentence["where"] else ""
    return f"{sentence['text']}{where}{'' if sentence['verified'] else ' (unverified)'}"


def _why(data: Mapping[str, Any], verified: int, count: int) -> str:
    why = f"by {data['model']}, {verified} of {counted(count, 'sentence')} verified"
    if data["num_read"] < data["num_lines"]:
        why += f", {data['num_read']:,} of {data['num_lines']:,} lines read by it"
    return why


def _covered(
    subject: Subject, sheet: Sheet, sentences: Sequence[Mapping[str, Any]], counter: TokenCounter
) -> list[float]:
    """For every segment the share of it that the sentences tell, in [0, 1]."""
    lines = lines_of(subject.part)
    segments: dict[str, list[int]] = {}
    stop = subject.members[0].stop
    for i, segment in enumerate(sheet.document.segments[:stop]):
        for place in _each(segment.place):
            segments.setdefault(place, []).append(i)
    covered = [0.0] * len(sheet.document.segments)
    for sentence in sentences:
        places = {
            place for a, b in sentence["cited"] for line in lines[a - 1 : b] for place in _places(line.place)
        }
        cited = sorted({i for place in places for i in segments.get(place, ())})
        cost = sum(sheet.costs[i] for i in cited)
        share = min(1.0, DENSITY * counter.text(sentence["text"]) / max(1, cost))
        for i in cited:
            covered[i] = max(covered[i], share)
    return covered


def _each(place: str) -> list[str]:
    """Places of a segment: two of ``lines 12-13``, ``row 4`` of ``row 4, columns 1-8``."""
    place = place.partition(", ")[0]
    several = _SEVERAL.fullmatch(place)
    if several is None:
        return [place]
    return [f"{several[1]} {number}" for number in range(int(several[2]), int(several[3]) + 1)]


def _places(place: str) -> Iterator[str]:
    """A place and what lies around it: ``orders[3].price``, ``orders[3]``, ``orders``."""
    yield place
    while (cut := max(place.rfind("."), place.rfind("["))) > 0:
        place = place[:cut]
        yield place
