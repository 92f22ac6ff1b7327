"""How much each line of a printed output or a traceback matters."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from sensorium.observations.values import StackTrace

_BAD = re.compile(
    r"\b(?:error|exception|fail(?:ed|ure|s)?|fatal|critical|assert\w*|denied|cannot|nan|abort\w*)\b", re.I
)
_WARNING = re.compile(r"\bwarn(?:ing)?s?\b|Warning\b|\bdeprecated\b", re.I)
_RESULT = re.compile(r"[:=]\s*[-+]?[\d.]+|\b\d+(?:\.\d+)?\s?%")
_RULE = re.compile(r"\s*[-=_*#~+|. ]{4,}\s*$")
_RULES = frozenset("-=_*#~+|.")
_HEAD = re.compile(
    r"\s*File |Cell In ?\[|Input In |<ipython-input|(?:/|~|[A-Za-z]:\\)\S+ in \S|(?:/|~|[A-Za-z]:\\)\S+:\d+"
)
_ARROW = re.compile(r"-+> ?\d+")
_LIBRARY = re.compile(r"site-packages|dist-packages|[/\\]lib[/\\]python|<frozen|node_modules")


class Line(NamedTuple):
    """A line with its weight."""

    text: str
    weight: float
    is_pinned: bool = False


def weigh_printed(texts: Sequence[str]) -> list[Line]:
    """Weigh lines that were printed: errors 3, warnings 2, results 1.4, rules 0.1."""
    weigh = _Weigher("\n".join(texts))
    count = len(texts)
    lines: list[Line] = []
    for number, text in enumerate(texts):
        weight = weigh(text)
        if number == count - 1 or number == 0:
            weight += 0.6
        elif number >= count - 3:
            weight += 0.3
        lines.append(Line(text, weight))
    return lines


class _Weigher:
    """Weighs line after line; what the whole text does not contain is not looked for in its lines."""

    def __init__(self, text: str) -> None:
        self._has_bad = _BAD.search(text) is not None
        self._has_warning = _WARNING.search(text) is not None
        self._has_result = _RESULT.search(text) is not None

    def __call__(self, text: str) -> float:
        bare = text.lstrip()
        if not bare:
            return 0.05
        if bare[0] in _RULES and _RULE.match(text):
            return 0.1
        if self._has_bad and _BAD.search(text):
            return 3.0
        if self._has_warning and _WARNING.search(text):
            return 2.0
        if self._has_result and _RESULT.search(text):
            return 1.4
        return 1.0


def weigh_traceback(texts: Sequence[str], error: StackTrace) -> list[Line]:
    """Weigh the lines of a traceback, or of an output that contains one.

    The exception's line and the line of the last frame outside of libraries are pinned; own frames weigh
    more than those of libraries, the lines that were running more than those around them.
    """
    weights: list[float] = []
    weigh = _Weigher("\n".join(texts))
    is_own, in_trace = True, False
    last_head = last_arrow = last_own_arrow = last_own_head = -1
    for number, text in enumerate(texts):
        if _HEAD.match(text):
            is_own, in_trace = not _LIBRARY.search(text), True
            last_head = number
            last_own_head = number if is_own else last_own_head
            weights.append(2.0 if is_own else 0.7)
        elif _ARROW.match(text):
            last_arrow = number
            last_own_arrow = number if is_own else last_own_arrow
            weights.append(3.0 if is_own else 1.2)
        elif "Traceback (most recent call last)" in text:
            in_trace = True
            weights.append(0.8)
        elif _RULE.match(text):
            weights.append(0.1)
        elif in_trace:
            is_code = number == last_head + 1
            weights.append((1.5 if is_code else 0.4) if is_own else 0.3)
        else:
            weights.append(weigh(text))
    pinned = {_exception_line(texts, error)}
    if last_arrow >= 0:
        pinned.add(last_own_arrow if last_own_arrow >= 0 else last_arrow)
    elif last_head >= 0:
        head = last_own_head if last_own_head >= 0 else last_head
        pinned |= {head, head + 1}
    return [
        Line(text, 6.0 if number in pinned else weight, number in pinned)
        for number, (text, weight) in enumerate(zip(texts, weights, strict=True))
    ]


def _exception_line(texts: Sequence[str], error: StackTrace) -> int:
    """Where the exception's name and message stand; -1 when they do not."""
    name = error.type.rpartition(".")[2]
    for number in range(len(texts) - 1, -1, -1):
        text = texts[number]
        begin = text.split(":", 1)[0].split("(", 1)[0].strip()
        if begin and begin.rpartition(".")[2] == name:
            return number
    return -1
