"""How much a segment of text matters: to the task, beside its neighbours, and by what it says."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from sensorium.representations.base import Document, Lowered, Segment

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_SNAKE = re.compile(r"[^\W_]+(?:_[^\W_]+)+")
_MAX_CHARS = 2_000
"""Characters of a line that are looked at for what it says."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DIGITS = re.compile(r"\d+")
_HARD = re.compile(
    r"(?:[a-z]++(?![A-Z_])[^\dA-Za-z\"']*+)++|"  # plain words are stepped over at once, as an empty group
    r"(\d[\d.,:/eE+-]*|[A-Za-z]++_\w+|[a-z]++[A-Z]\w*|\b[A-Z]{2,}\b|(?<=[a-z,;] )[A-Z][a-z]+"
    r"|\"[^\"]{1,60}\"|'[^']{1,60}')"
)
_SAYS_ANYTHING = re.compile(r"[^\W_]")
_ALARM = re.compile(
    r"\b(?:error|exception|traceback|fail(?:ed|ure|s)?|fatal|critical|warn(?:ing)?|assert(?:ion)?\w*|panic|abort(?:ed)?|"
    r"denied|refused|timed? ?out|cannot|can't|unable|invalid|missing|undefined|not found|nan|deprecated)\b",
)
"""Matched in lower case."""
_ALARM_BEGINNINGS = (
    *("error", "exception", "traceback", "fail", "fatal", "critical", "warn", "assert", "panic", "abort"),
    *("denied", "refused", "timeout", "timedout", "time out", "timed out", "cannot", "can't", "unable"),
    *("invalid", "missing", "undefined", "not found", "nan", "deprecated"),
)
"""One of them is in everything that `_ALARM` matches."""
_NONE: frozenset[str] = frozenset()
_COMMON = frozenset(
    _WORD.findall(
        "a an and are as at be but by can did do does for from had has have how i if in is it its me my "
        "no not of on or our please s so t than that the their them then there these they this to was we "
        "were what when where which who why will with would you your"
    )
)

RELEVANCE_GAIN = 8.0
"""A segment that shares words with the task counts up to 1 + this many times as much as one with none ..."""
ERROR_SHARE = 0.5
"""Relevance of a text that has every word of the observation's errors."""
MATCH_GAIN = 60.0
"""... and up to this many times more when it has nearly all of them: it is what the task asks for."""
ALARM_GAIN = 2.5
"""A line that speaks of an error or a warning, unless its document gave it weight for that already."""
_STRONG = 2.0


def terms(text: str) -> frozenset[str]:
    """Words of a text for comparing: lower case, identifiers also taken apart, common words left out."""
    found = frozenset(chain.from_iterable(map(_forms, _WORD.findall(text))))
    if "_" not in text:
        return found
    return found | {
        _stem(name.replace("_", "").lower()) for name in _SNAKE.findall(text)
    }  # bed_rooms, bedrooms


@lru_cache(maxsize=65_536)
def _forms(word: str) -> tuple[str, ...]:
    """What one word is compared as: its stem, and those of the words that an identifier is made of."""
    low = word.lower()
    if low in _COMMON:
        return ()
    pieces = [] if word.islower() or word.isdigit() else _CAMEL.split(word)
    return (_stem(low), *(_stem(piece.lower()) for piece in pieces if len(pieces) > 1))


def _stem(word: str) -> str:
    """Endings off, so that ``residuals`` meets ``residual`` and ``fitted`` ``fitting``; crude on purpose."""
    if len(word) < 5:
        return word.removesuffix("s") if len(word) == 4 and not word.endswith("ss") else word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("xes", "zes", "ches", "shes", "sses")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word.removesuffix("e") if len(word) > 3 else word


def _begin(stem: str) -> str:
    """What every word with this stem contains."""
    return stem[:-1] if stem.endswith("y") and len(stem) > 1 else stem  # ``y`` may have been ``ies``


@lru_cache(maxsize=65_536)
def information(text: str) -> float:
    """What a line says beside words everybody knows, in [0.2, 1]: numbers, names, identifiers, quotations."""
    if _SAYS_ANYTHING.search(text) is None:
        return 0.05 if text.strip() else 0.02
    return min(1.0, 0.2 + 0.2 * len(set(_HARD.findall(text[:_MAX_CHARS])) - {""}))


@lru_cache(maxsize=65_536)
def shape_of(text: str) -> str:
    """A line with its numbers blanked: lines of one log statement have one shape."""
    return _DIGITS.sub("0", text.strip())[:200]


class Relevance:
    """How much a text has to do with the task: the rarer the words they share, the more.

    Args:
        task: The instruction; empty text makes everything equally relevant (0).
        texts: All texts of the observation; the words of the task are weighted by how few of them have them
            (inverse document frequency, ``ln(1 + N / df)``).
        documents: The same as documents, whose texts count like `texts`.
        errors: What errors in the observation say. Having all of their words counts as much as having
            `ERROR_SHARE` of the task's; the two are not added.
    """

    def __init__(
        self, task: str, texts: Sequence[str] = (), *, documents: Sequence[Document] = (), errors: str = ""
    ) -> None:
        asked, failed = terms(task), terms(errors)
        self._begins = {word: _begin(word) for word in sorted(asked | failed)}
        self._wanted = frozenset(self._begins)
        self._found: dict[str, frozenset[str]] = {}
        """Text -> words of the task that it has; only of texts that contain the beginning of one."""
        self._near_in: dict[int, tuple[Lowered, list[int]]] = {}
        """Identity of texts -> they, and the positions of those."""
        groups = [*(document.lowered for document in documents), *([Lowered(texts)] if texts else [])]
        total = sum(len(group.texts) for group in groups)
        near = [group.texts[at] for group in groups for at in self._near(group)]
        counts = Counter(chain.from_iterable(map(self._words, near)))
        self._idf = {
            word: math.log(1.0 + max(1, total) / max(1, counts[word]))
            for word in self._begins
            if counts[word] or not total
        }
        self._groups = [
            (own, factor / sum(own.values()))
            for words, factor in ((asked, 1.0), (failed, ERROR_SHARE))
            if (own := {word: idf for word, idf in self._idf.items() if word in words})
        ]
        self._shares: dict[frozenset[str], float] = {_NONE: 0.0}

    @property
    def is_empty(self) -> bool:
        """Whether no word of the task or the errors occurs anywhere."""
        return not self._groups

    def __call__(self, text: str) -> float:
        """Share of the task's words, weighted by rarity, that the text has: in [0, 1]."""
        return self._share(self._words(text))

    def of_part(self, heading: str, document: Document) -> float:
        """Relevance of a whole part: of all its texts together, and above all of the best of them."""
        near = [document.texts[at] for at in self._near(document.lowered)]
        words = [found for text in (heading, *near) if (found := self._words(text))]
        return 0.4 * self._share(_NONE.union(*words)) + 0.6 * max(map(self._share, words), default=0.0)

    def of_lines(self, document: Document) -> dict[int, float]:
        """Position -> relevance, of the segments where that is not 0."""
        shares = {at: self(document.texts[at]) for at in self._near(document.lowered)}
        return {at: share for at, share in shares.items() if share}

    def _near(self, texts: Lowered) -> list[int]:
        """Positions of texts that contain the beginning of a word of the task: few in most observations."""
        known = self._near_in.get(id(texts))
        if known is None:
            positions = texts.containing(self._begins.values()) if self._begins else []
            known = self._near_in[id(texts)] = texts, positions
        return known[1]

    def _words(self, text: str) -> frozenset[str]:
        """Words of the task that a text has."""
        found = self._found.get(text)
        if found is None:
            low = text.lower()
            is_near = any(begin in low for begin in self._begins.values())
            found = self._found[text] = terms(text) & self._wanted if is_near else _NONE
        return found

    def _share(self, words: frozenset[str]) -> float:
        share = self._shares.get(words)
        if share is None:
            share = max(
                (
                    factor * sum(idf for word, idf in own.items() if word in words)
                    for own, factor in self._groups
                ),
                default=0.0,
            )
            self._shares[words] = share
        return share


class Shapes(NamedTuple):
    """The shape of every segment of a document, and how many have it."""

    each: list[str]
    counts: Counter[str]

    @classmethod
    def of(cls, document: Document) -> "Shapes":
        """Shapes of the segments."""
        each = list(map(shape_of, document.texts))
        return cls(each, Counter(each))


def worth(document: Document, shapes: Shapes | None = None) -> list[float]:
    """Value of every segment before the task is considered: ``weight * information * novelty * alarm``.

    Novelty is ``count ** -0.7`` for a line whose shape occurs `count` times in the document, and
    ``count ** -0.2`` for the first of them.

    Args:
        document: Whose segments.
        shapes: Those of its segments, where they are known.
    """
    segments = document.segments
    found = [s.weight * information(s.text) if s.weight > 0.0 else 0.0 for s in segments]
    for at, novelty in _novelties(segments, shapes or Shapes.of(document)):
        found[at] *= novelty
    if not document.fence:  # in code ``error`` is a name like any other
        for at in document.lowered.containing(_ALARM_BEGINNINGS):
            if segments[at].weight < _STRONG and _is_alarm(segments[at].text):
                found[at] *= ALARM_GAIN
    return found


def scores(document: Document, relevance: Relevance, worth_of: Sequence[float] | None = None) -> list[float]:
    """Value of every segment: ``worth * (1 + 8 r + 60 r^4)`` with its relevance r to the task.

    Args:
        document: Whose segments.
        relevance: To the task.
        worth_of: What `worth` says of the document, where that is known.
    """
    found = list(worth(document) if worth_of is None else worth_of)
    if not relevance.is_empty:
        for at, share in relevance.of_lines(document).items():
            found[at] *= 1.0 + RELEVANCE_GAIN * share + MATCH_GAIN * share**4
    return found


def _novelties(segments: Sequence[Segment], shapes: Shapes) -> Iterator[tuple[int, float]]:
    """Positions of segments that say in much the same way what others of their document say, with factors."""
    if len(shapes.counts) == len(shapes.each):
        return
    seen: set[str] = set()
    for at, shape in enumerate(shapes.each):
        count = shapes.counts[shape]
        if count > 1:
            yield at, count**-0.7 if shape in seen else count**-0.2
            if segments[at].weight > 0.0:
                seen.add(shape)


@lru_cache(maxsize=65_536)
def _is_alarm(text: str) -> bool:
    return _ALARM.search(text.lower()) is not None
