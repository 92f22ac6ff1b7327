"""How much a segment of text matters: to the task, beside its neighbours, and by what it says."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from sensorium.representations.base import Document, Segment

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DIGITS = re.compile(r"\d+")
_HARD = re.compile(
    r"\d[\d.,:/eE+-]*|[A-Za-z]+_\w+|[a-z]+[A-Z]\w*|\b[A-Z]{2,}\b|(?<=[a-z,;] )[A-Z][a-z]+"
    r"|\"[^\"]{1,60}\"|'[^']{1,60}'"
)
_ALARM = re.compile(
    r"\b(?:error|exception|traceback|fail(?:ed|ure|s)?|fatal|critical|warn(?:ing)?|assert(?:ion)?\w*|panic|abort(?:ed)?|"
    r"denied|refused|timed? ?out|cannot|can't|unable|invalid|missing|undefined|not found|nan|deprecated)\b",
    re.IGNORECASE,
)
_COMMON = frozenset(
    _WORD.findall(
        "a an and are as at be but by can did do does for from had has have how i if in is it its me my "
        "no not of on or our please s so t than that the their them then there these they this to was we "
        "were what when where which who why will with would you your"
    )
)

RELEVANCE_GAIN = 8.0
"""A segment that shares words with the task counts up to 1 + this many times as much as one with none ..."""
MATCH_GAIN = 60.0
"""... and up to this many times more when it has nearly all of them: it is what the task asks for."""
ALARM_GAIN = 2.5
"""A line that speaks of an error or a warning, unless its document gave it weight for that already."""
_STRONG = 2.0


@lru_cache(maxsize=65_536)
def terms(text: str) -> frozenset[str]:
    """Words of a text for comparing: lower case, identifiers also taken apart, common words left out."""
    found: set[str] = set()
    for word in _WORD.findall(text):
        low = word.lower()
        if low not in _COMMON:
            found.add(_stem(low))
            if not word.islower() and not word.isdigit():
                pieces = _CAMEL.split(word)
                if len(pieces) > 1:
                    found.update(_stem(piece.lower()) for piece in pieces)
    return frozenset(found)


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


@lru_cache(maxsize=65_536)
def information(text: str) -> float:
    """What a line says beside words everybody knows, in [0.2, 1]: numbers, names, identifiers, quotations."""
    if not text or text.isspace():
        return 0.02
    hard = len(set(_HARD.findall(text)))
    return min(1.0, 0.2 + 0.2 * hard) if any(c.isalnum() for c in text) else 0.05


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
    """

    def __init__(self, task: str, texts: Sequence[str] = ()) -> None:
        wanted = terms(task)
        counts: Counter[str] = Counter()
        if wanted:
            for text in texts:
                counts.update(wanted & terms(text))
        present = (
            {word: count for word, count in counts.items() if count} if texts else dict.fromkeys(wanted, 1)
        )
        self._idf = {word: math.log(1.0 + max(1, len(texts)) / count) for word, count in present.items()}
        self._total = sum(self._idf.values())

    @property
    def is_empty(self) -> bool:
        """Whether no word of the task occurs anywhere."""
        return self._total <= 0.0

    def __call__(self, text: str) -> float:
        """Share of the task's words, weighted by rarity, that the text has: in [0, 1]."""
        if self._total <= 0.0:
            return 0.0
        return sum(self._idf[word] for word in self._idf.keys() & terms(text)) / self._total


def scores(document: Document, relevance: Relevance) -> list[float]:
    """Value of every segment: what its document's layout says, times what is found in its text.

    ``weight * information * novelty * (1 + 8 r + 60 r^4) * alarm`` with the relevance r, where novelty is
    ``count ** -0.7`` for a line whose shape occurs `count` times in the document, ``count ** -0.2`` for the
    first of them.
    """
    segments = document.segments
    shapes = Counter(shape_of(segment.text) for segment in segments)
    seen: set[str] = set()
    is_code = bool(document.fence)  # there ``error`` is a name like any other
    return [_score(segment, relevance, shapes, seen, is_code) for segment in segments]


def _score(
    segment: Segment, relevance: Relevance, shapes: Counter[str], seen: set[str], is_code: bool
) -> float:
    text = segment.text
    if segment.weight <= 0.0:
        return 0.0
    value = segment.weight * information(text)
    shape = shape_of(text)
    if shapes[shape] > 1:
        value *= shapes[shape] ** -0.7 if shape in seen else shapes[shape] ** -0.2
        seen.add(shape)
    if not relevance.is_empty:
        share = relevance(text)
        value *= 1.0 + RELEVANCE_GAIN * share + MATCH_GAIN * share**4
    if not is_code and segment.weight < _STRONG and _ALARM.search(text):
        value *= ALARM_GAIN
    return value


def best_relevance(texts: Iterable[str], relevance: Relevance) -> float:
    """Relevance of the most relevant of some texts; 0 for none."""
    return 0.0 if relevance.is_empty else max(map(relevance, texts), default=0.0)
