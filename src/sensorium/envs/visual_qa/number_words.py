"""Numbers in running text: digits with separators and units, and words."""

import re
import unicodedata
from typing import NamedTuple

MAX_CHARS = 4000
"""More of an answer is not looked at."""


class Mention(NamedTuple):
    """A number that a text mentions."""

    value: float
    """Without its multiplier."""
    multiplier: float
    """1e6 for ``1.2 million``."""
    is_percent: bool
    start: int
    """Where it begins in the text, characters."""
    end: int


_UNITS = {
    word: value
    for value, word in enumerate((
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    ))
}  # fmt: skip
_TENS = {
    word: 10 * value
    for value, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
_ORDINALS = {
    word: value
    for value, word in enumerate((
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
        "eleventh", "twelfth",
    ), start=1)
}  # fmt: skip
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SHORT_SCALES = {
    "k": 1e3,
    "m": 1e6,
    "mn": 1e6,
    "mio": 1e6,
    "b": 1e9,
    "bn": 1e9,
    "thousand": 1e3,
    "thousands": 1e3,
    "million": 1e6,
    "millions": 1e6,
    "billion": 1e9,
    "billions": 1e9,
    "trillion": 1e12,
}
_WORD = "|".join(
    sorted([*_UNITS, *_TENS, *_SCALES, *_ORDINALS, "dozen", "none", "nil"], key=len, reverse=True)
)
_DIGITS = re.compile(
    r"(?<![\w.,])"
    r"(?P<sign>[-+](?=[$€£]?[\d.]))?(?:[$€£]\s?)?(?P<sign2>[-+](?=[\d.]))?"
    r"(?P<number>\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?(?![\d])"  # 1,234,567.8
    r"|\d{1,3}(?:\.\d{3})+,\d+"  # 1.234,5
    r"|\d{1,3}(?:\.\d{3}){2,}"  # 1.234.567
    r"|\d+(?:[.,]\d+)?|\.\d+)"
    r"(?P<exponent>e[-+]?\d{1,3}(?!\w)|\s?(?:x|\*)\s?10\s?\^\s?[-+]?\d{1,3})?"
    r"(?P<ordinal>(?:st|nd|rd|th)(?!\w))?"
    r"(?:\s?(?P<percent>%|percent(?!\w)|per cent(?!\w)|percentage points?(?!\w)))?"
    r"(?:\s?(?P<scale>k|m|mn|mio|bn|b|thousands?|millions?|billions?|trillion)(?![\w/]))?"
)
_WORDS = re.compile(
    rf"(?<!\w)(?:(?P<minus>minus|negative)\s)?(?P<words>(?:{_WORD})(?:[\s-](?:and\s)?(?:{_WORD}))*)(?!\w)"
)
_MINUS = re.compile(r"(?<!\w)(?:minus|negative)\s+(?=[\d.])")


def normalise(text: str) -> str:
    """A text in a plain form: compatibility characters replaced, lower case, one kind of blank and dash."""
    text = unicodedata.normalize("NFKC", text[:MAX_CHARS]).casefold()
    text = re.sub("[\u2010-\u2015\u2212\ufe63]", "-", text)
    text = re.sub("[\u2018\u2019\u02bc]", "'", text)
    return re.sub(r"\s+", " ", text).strip()


def mentions(text: str) -> list[Mention]:
    """Every number in a text that `normalise` has passed, in order.

    Example:
        >>> [m.value * m.multiplier for m in mentions("1,234.5 kg, 12 %, minus three and 2.5 million")]
        [1234.5, 12.0, -3.0, 2500000.0]
    """
    text = _MINUS.sub(lambda match: "-".rjust(len(match[0])), text)
    found = [_of_digits(match) for match in _DIGITS.finditer(text)]
    found += [mention for match in _WORDS.finditer(text) if (mention := _of_words(match)) is not None]
    return sorted(found, key=lambda mention: mention.start)


def _of_digits(match: re.Match[str]) -> Mention:
    digits = match["number"]
    if re.fullmatch(r"\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?", digits):
        digits = re.sub("[,' ]", "", digits)
    elif re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}", digits):
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.replace(",", ".")
    value = float(digits)
    if match["exponent"]:
        power = int(re.split(r"e|\^", match["exponent"].replace(" ", ""))[-1])
        value *= 10.0**power if abs(power) < 300 else 0.0
    if "-" in (match["sign"], match["sign2"]):
        value = -value
    scale = _SHORT_SCALES[match["scale"]] if match["scale"] else 1.0
    return Mention(value, scale, bool(match["percent"]), match.start(), match.end())


def _of_words(match: re.Match[str]) -> Mention | None:
    words = [word for word in re.split(r"[\s-]", match["words"]) if word != "and"]
    total, part, last = 0.0, 0.0, ""
    for word in words:
        if word in ("none", "nil"):
            part = 0.0
        elif word in _UNITS or word in _ORDINALS:
            if last in _UNITS or last in _ORDINALS:  # "two three" are two numbers
                return None
            part += _UNITS.get(word, _ORDINALS.get(word, 0))
        elif word in _TENS:
            if last in _TENS or last in _UNITS:
                return None
            part += _TENS[word]
        elif word == "dozen":
            part = max(part, 1.0) * 12
        elif word == "hundred":
            part = max(part, 1.0) * 100
        else:
            total += max(part, 1.0) * _SCALES[word]
            part = 0.0
        last = word
    if len(words) == 1 and last in _SCALES:
        return None  # "in thousand dollars" is a unit
    value = total + part
    return Mention(-value if match["minus"] else value, 1.0, False, match.start(), match.end())
