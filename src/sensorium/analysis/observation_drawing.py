"""Simple things that the page of an observation can draw: text, table, pairs, picture, sound, note.

A view is a plain mapping with its kind under ``t``. Every view is bounded: what a page does not hold is said
in a note, and stays in the raw state.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from sensorium.analysis.observation_media import Embedded

View = dict[str, Any]
"""One drawable thing; see the functions below for the keys of each kind."""


class Mark(NamedTuple):
    """What is said of a line."""

    kind: Literal["cursor", "bad"]
    text: str


class ViewLimits(NamedTuple):
    """How much of one part a page shows."""

    chars: int = 40_000
    lines: int = 2_000
    rows: int = 100
    columns: int = 40
    cell_chars: int = 200


def note(text: str, tone: str = "") -> View:
    """A line about the content; `tone` is empty or ``bad``."""
    return {"t": "note", "text": text, "tone": tone}


def heading(text: str) -> View:
    """What comes below."""
    return {"t": "heading", "text": text}


def pairs(rows: Iterable[tuple[str, str]], tone: str = "") -> View:
    """Names with values."""
    return {"t": "pairs", "rows": [list(row) for row in rows], "tone": tone}


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]], *, labels: int = 0) -> View:
    """A table of text; the first `labels` columns name the row."""
    return {"t": "table", "columns": list(columns), "rows": [list(row) for row in rows], "labels": labels}


def text_views(text: str, limits: ViewLimits, *, marks: dict[int, Mark] | None = None) -> list[View]:
    """Text with line numbers: the beginning and the end of what is too long, and a note between.

    Args:
        text: Any text.
        limits: How much is shown.
        marks: Line number (from 1) -> what to say of this line.
    """
    if not text:
        return [note("empty")]
    lines = text.split("\n")
    head, tail = _ends([len(line) + 1 for line in lines], limits)
    kept = marks or {}
    if head + tail >= len(lines):
        return [_lines(lines, 1, limits, kept)]
    cut = len(lines) - head - tail
    views = [_lines(lines[:head], 1, limits, kept), note(f"{cut:,} lines are not in this page")]
    return [*views, _lines(lines[-tail:], len(lines) - tail + 1, limits, kept)] if tail else views


def plain_json(data: Any, limits: ViewLimits) -> tuple[str, bool]:
    """Data as indented JSON, and whether it was cut.

    Data that is nested too deep for JSON's writer or is no JSON is told in words.
    """
    pieces: list[str] = []
    num_chars = 0
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, default=str)
    try:
        for piece in encoder.iterencode(data):
            pieces.append(piece)
            num_chars += len(piece)
            if num_chars > limits.chars:
                return "".join(pieces)[: limits.chars], True
    except (RecursionError, ValueError):
        pieces.append("\n... nested too deep, or in a circle ...")
        return "".join(pieces), True
    return "".join(pieces), False


def media_view(kind: str, embedded: Embedded, caption: str, size: tuple[int, int] | None = None) -> View:
    """A picture or a sound."""
    return {
        "t": "media",
        "kind": kind,
        "key": embedded.key,
        "note": embedded.note,
        "caption": caption,
        "size": None if size is None else list(size),
    }


def shorten(text: str, limit: int) -> str:
    """`text`, or its beginning and how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit:,} more characters)"


def _lines(lines: Sequence[str], first: int, limits: ViewLimits, marks: dict[int, Mark]) -> View:
    shown = [shorten(line, limits.chars) for line in lines]
    last = first + len(lines)
    return {
        "t": "text",
        "lines": shown,
        "first": first,
        "marks": {str(line): said for line, said in marks.items() if first <= line < last},
    }


def _ends(sizes: Sequence[int], limits: ViewLimits) -> tuple[int, int]:
    """How many lines at the beginning (three quarters of the room) and at the end are shown; 1 at least."""
    head = _fitting(sizes, limits.chars * 3 // 4, limits.lines * 3 // 4)
    if head == len(sizes):
        return head, 0
    rest = sizes[max(head, 1) :]
    return max(head, 1), _fitting(rest[::-1], limits.chars // 4, limits.lines // 4)


def _fitting(sizes: Sequence[int], chars: int, lines: int) -> int:
    total = 0
    for i, size in enumerate(sizes[:lines]):
        total += size
        if total > chars:
            return i
    return min(len(sizes), lines)
