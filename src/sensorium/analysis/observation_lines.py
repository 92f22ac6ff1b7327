"""Which lines and rows of a part were sent, and which lines of that stand for something that was not."""

import re
from collections.abc import Sequence
from typing import Any

LEFT_OUT = re.compile(
    r"\s*(?:#|//)?\s*\[(?:\.\.\. |ref:|\d+ more not shown)|\W*\.{3}.*\b(?:left out|not shown|not read)\b"
)
"""Beginning of a line that stands for what is left out, e.g. ``[... lines 12-41]``."""

_NUMBER = re.compile(r"^\s*\S?\s*\d+\s*[:|│>.)\t]?\s?")
_ROW = re.compile(r"(\d+)(?: [^|]*)? \||row (\d+)(?: [^|:]*)?:")
"""Beginning of a line that holds a row of a table: ``12 | ...``, ``12 label | ...``, ``row 12: a=1``."""
_MIN_PIECE = 12
_MAX_PIECES = 400


def left_out_lines(text: str) -> list[int]:
    """Positions (from 0) of the lines that stand for what is left out."""
    return [i for i, line in enumerate(text.split("\n")) if LEFT_OUT.match(line)]


def sent_lines(raw: Sequence[str], sent: str) -> list[bool]:
    """For each line of the raw text whether it was sent, as a whole or in pieces such as sentences.

    Lines are matched in order, ignoring surrounding spaces and a line number in front; a line that was sent
    in another order counts, too.

    Args:
        raw: Lines of a part.
        sent: All text that was sent of the part.

    Returns:
        One flag per raw line; empty lines go with the line before them.
    """
    places: dict[str, list[int]] = {}
    for i, line in enumerate(raw):
        places.setdefault(line.strip(), []).append(i)
    flags = [False] * len(raw)
    position, pieces = 0, []
    for line in sent.split("\n"):
        found = _place(line, places, position)
        if found is not None:
            flags[found] = True
            position = found + 1
        elif len(line.strip()) >= _MIN_PIECE:
            pieces.append(line.strip())
    for i, line in enumerate(raw):
        if not line.strip():
            flags[i] = i == 0 or flags[i - 1]
        elif not flags[i] and len(line) > _MIN_PIECE:
            flags[i] = any(piece in line for piece in pieces[:_MAX_PIECES])
    return flags


def sent_rows(numbers: Sequence[int], sent: str) -> list[bool]:
    """For each row of a table whether it was sent, be it in part.

    Args:
        numbers: Of the rows in the source, with which their lines begin.
        sent: All text that was sent of the table.
    """
    found = {int(match[1] or match[2]) for line in sent.split("\n") if (match := _ROW.match(line))}
    return [number in found for number in numbers]


def mark_sent(views: Sequence[dict[str, Any]], sent: str) -> None:
    """Give each text view, and each view of numbered rows, its ``sent`` flags, as a string of 0 and 1."""
    for view in views:
        if view["t"] == "text":
            flags = sent_lines(view["lines"], sent)
        elif "numbers" in view:
            flags = sent_rows(view["numbers"], sent)
        else:
            continue
        view["sent"] = "".join("01"[flag] for flag in flags)


def _place(line: str, places: dict[str, list[int]], position: int) -> int | None:
    """The next raw line at or after `position` that reads like `line`, or else the first one."""
    for text in (line.strip(), _NUMBER.sub("", line).strip()):
        candidates = places.get(text) if text else None
        if candidates:
            return next((i for i in candidates if i >= position), candidates[0])
    return None
