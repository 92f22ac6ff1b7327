"""Judging an answer: what number or category a text gives, and whether it is the right one."""

import math
import re
from typing import Literal

from pydantic import Field

from sensorium.envs.base import Record

_MINUS = str.maketrans(
    {"−": "-", "–": "-", "‐": "-", "‑": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "'": ""}
)
_NUMBER = re.compile(
    r"(?<![\w.,])[-+]?(?:\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?(?!\d)|\d+(?:[.,]\d+)?|\.\d+)"
    r"(?:[eE][-+]?\d+)?(?!\d|[.,_]\d)"
)
_POWER = re.compile(r"\s*(?:[x×*·])\s*10\s*(?:\^|\*\*)?\s*\{?\(?\s*([-+]?\d+)\s*\)?\}?", re.IGNORECASE)
_MARK = re.compile(
    r"(?:=|:|≈|~|\bis\b|\bequals\b|\babout\b|\bapproximately\b)\s*[*`$\"(]*\s*$", re.IGNORECASE
)
_MAX_CHARS = 1_000


class AnswerKey(Record):
    """The right answer of a question, and how near one must come."""

    kind: Literal["number", "category"]
    value: float | str
    """A number, or the name of a category."""
    digits: int = Field(default=4, ge=1, le=15)
    """Significant digits that count; an error of one unit in the last of them is accepted. Whole numbers of a
    count have as many as they have figures: they must be exact."""
    exact: bool = False
    """Whether the number must be met exactly."""
    choices: tuple[str, ...] = ()
    """All categories there are, to find one of them in a sentence."""

    @property
    def tolerance(self) -> float:
        """Largest accepted error of a number."""
        value = abs(float(self.value))
        if self.exact or value == 0.0:
            return 1e-9
        return 10.0 ** (math.floor(math.log10(value)) - self.digits + 1) * (1.0 + 1e-9)

    def is_met(self, given: str | float) -> bool:
        """Whether an answer is right; whatever cannot be understood is wrong."""
        if self.kind == "category":
            return _category(str(given), self.choices or (str(self.value),)) == _plain(str(self.value))
        wanted = float(self.value)
        return any(abs(number - wanted) <= self.tolerance for number in read_numbers(given))


def read_numbers(given: str | float) -> tuple[float, ...]:
    """The number that an answer gives; none when there are several and none of them is marked as the answer.

    Args:
        given: A number, or text such as ``about 1,234.5 kg``, ``1.2 x 10^-3``, ``mean = 3.4`` or ``12 %``.

    Returns:
        Nothing, the number, or for a percentage the number and its hundredth.
    """
    if isinstance(given, bool):
        return ()
    if isinstance(given, int | float):
        return (float(given),) if math.isfinite(given) else ()
    text = re.sub(r"(?<=\d)_(?=\d)", "", given[-_MAX_CHARS:].translate(_MINUS))
    found = []
    position = 0
    while match := _NUMBER.search(text, position):
        power = _POWER.match(text, match.end())
        position = power.end() if power else match.end()
        value = _value(match[0]) * 10.0 ** _exponent(power[1] if power else "0")
        found.append((value, match.start(), position))
    if not found:
        return ()
    value, start, end = found[-1]
    if len({one for one, _, _ in found}) > 1 and not _MARK.search(text[:start]):
        return ()
    if not math.isfinite(value):
        return ()
    return (value, value / 100.0) if re.match(r"\s*(?:%|per ?cent)", text[end:]) else (value,)


def _exponent(text: str) -> int:
    return max(-400, min(300, int(text))) if len(text) < 8 else 0


def _value(text: str) -> float:
    text = text.replace(" ", "")
    mantissa, mark, exponent = text.partition("e") if "e" in text else text.partition("E")
    if "," in mantissa and "." not in mantissa and not re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+", mantissa):
        mantissa = mantissa.replace(",", ".")  # a decimal comma
    return float(mantissa.replace(",", "") + (f"e{exponent}" if mark else ""))


def _plain(text: str) -> str:
    """Lower case, without quotes, marks of Markdown and the full stop at the end."""
    return " ".join(re.sub(r"[*`\"'“”‘’$_\-]+", " ", text.translate(_MINUS)).casefold().split()).strip(
        " .,;:!"
    )


def _category(text: str, choices: tuple[str, ...]) -> str | None:
    """The one category that a text names; None when it names none or several."""
    plain = _plain(text[-_MAX_CHARS:])
    known = {_plain(choice) for choice in choices}
    if plain in known:
        return plain
    named = {one for one in known if one and re.search(rf"(?<!\w){re.escape(one)}(?!\w)", plain)}
    inner = {one for one in named for other in named if one != other and one in other}
    named -= inner  # "new york" names no "york"
    return named.pop() if len(named) == 1 else None
