"""What was heard against a list of commands: the nearest one, and how near it is."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
_FIGURES = frozenset(str(number) for number in range(len(_NUMBERS)))


class Match(NamedTuple):
    """The command that is nearest to what was heard."""

    command: str
    similarity: float
    """1 is equal but for case, punctuation and digits; 0 has nothing in common."""


def plain_words(text: str) -> tuple[str, ...]:
    """Lower-case words without punctuation; numbers up to eleven are written out."""
    words = _WORD.findall(text.lower())
    return tuple(_NUMBERS[int(word)] if word in _FIGURES else word for word in words)


def nearest_command(text: str, commands: Sequence[str], *, min_similarity: float) -> Match | None:
    """The most similar command, or None when all are less similar than `min_similarity`, or nothing was said.

    Similarity is the mean of two ratios of matching (Ratcliff and Obershelp): over words, and over letters,
    so that one wrong letter counts little and one missing word counts fully.
    """
    heard = plain_words(text)
    if not heard:
        return None
    best: Match | None = None
    for command in commands:
        wanted = plain_words(command)
        letters = SequenceMatcher(None, " ".join(heard), " ".join(wanted), autojunk=False).ratio()
        words = SequenceMatcher(None, heard, wanted, autojunk=False).ratio()
        similarity = round((letters + words) / 2.0, 3)
        if best is None or similarity > best.similarity:
            best = Match(command, similarity)
    return best if best is not None and best.similarity >= min_similarity else None
