"""Types of columns that come as text: whole numbers, numbers, truth values, dates."""

import datetime
import re
from collections.abc import Sequence
from typing import Any

_MISSING_WORDS = ("na", "n/a", "nan", "null", "none", "<na>", "#n/a", "nil", "missing", "\\n")
MISSING = frozenset(
    {"", "-", "--", "?"}
    | {variant for word in _MISSING_WORDS for variant in (word, word.upper(), word.capitalize())}
    | {"NaN", "#NA"}
)
"""Texts that stand for a missing value."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?$")
_TRUTH = {"true": True, "false": False, "yes": True, "no": False}
_LEADING_ZERO = re.compile(r"[+-]?0\d")
_COMMA_NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+$|[+-]?\d+$")
_MOSTLY = 0.9
"""Share of numbers from which on a column counts as numeric and the rest as errors."""


def typed(values: Sequence[str], *, decimal_comma: bool = False) -> tuple[list[Any], str]:
    """Values of a text column in their own type.

    Args:
        values: Cells as they stand in a file.
        decimal_comma: Whether ``1,5`` may be a number.

    Returns:
        Values (None where missing) and the name of the type: ``int``, ``float``, ``bool``, ``date``,
        ``datetime``, ``string``, ``empty``; ``float (mixed)`` for a numeric column in which some texts are
        no numbers (they stay text).
    """
    plain = [None if v in MISSING else v for v in map(str.strip, values)]
    present = [v for v in plain if v is not None]
    if not present:
        return plain, "empty"
    first = present[0]
    if first[0].isalpha() and first.lower() not in _TRUTH and not is_number(first):
        if len(present) < 4 or not is_number(present[len(present) // 2]):
            return plain, "string"
    elif first.lower() in _TRUTH and all(v.lower() in _TRUTH for v in present):
        return [None if v is None else _TRUTH[v.lower()] for v in plain], "bool"
    elif _DATE.match(first) and (dates := _dates(plain)) is not None:
        return dates
    if decimal_comma and any("," in v for v in present) and all(map(_COMMA_NUMBER.match, present)):
        plain = [None if v is None else v.replace(".", "").replace(",", ".") for v in plain]
        present = [v for v in plain if v is not None]
    return _numbers(plain, present)


def _numbers(plain: list[str | None], present: list[str]) -> tuple[list[Any], str]:
    if any(map(_LEADING_ZERO.match, present)) and not any("." in v for v in present):
        return plain, "string"  # postcodes, telephone numbers
    if any("_" in v for v in present):
        return plain, "string"  # Python would read 1_000 as a number
    try:
        return [None if v is None else int(v) for v in plain], "int"
    except ValueError:
        pass
    try:
        return [None if v is None else float(v) for v in plain], "float"
    except ValueError:
        pass
    if len(present) < 4 or sum(map(is_number, present)) < _MOSTLY * len(present):
        return plain, "string"
    return [float(v) if v is not None and is_number(v) else v for v in plain], "float (mixed)"


def is_number(text: str) -> bool:
    """Whether a text is a number with a decimal point, or the name of one such as ``inf``."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def is_comma_number(text: str) -> bool:
    """Whether a text is a number with a decimal comma, e.g. ``1.234,5``."""
    return "," in text and _COMMA_NUMBER.match(text) is not None


def _dates(plain: list[str | None]) -> tuple[list[Any], str] | None:
    try:
        parsed = [None if v is None else datetime.datetime.fromisoformat(v) for v in plain]
    except ValueError:
        return None
    if all(v is None or len(v) == 10 for v in plain):
        return [None if v is None else v.date() for v in parsed], "date"
    return parsed, "datetime"
