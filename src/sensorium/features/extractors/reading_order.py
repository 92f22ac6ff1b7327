"""Words with boxes become lines of text, in the order in which a person reads them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word, or a piece of a line."""

    text: str
    box: Box
    confidence: float
    """How sure the engine is, in [0, 1]."""
    line: tuple[int, ...]
    """Words with the same number belong to one line."""

    def scaled(self, factor: float) -> "Word":
        """The same word in a picture of another size."""
        left, top, right, bottom = (side * factor for side in self.box)
        return replace(self, box=(left, top, right, bottom))

    def as_data(self) -> dict[str, Any]:
        """As plain JSON data."""
        return {
            "text": self.text,
            "box": [round(side) for side in self.box],
            "confidence": round(self.confidence, 3),
        }


@dataclass(frozen=True, slots=True)
class Line:
    """Words side by side."""

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The words with spaces between them."""
        return " ".join(word.text for word in self.words)

    @property
    def box(self) -> Box:
        """Around all words."""
        lefts, tops, rights, bottoms = zip(*(word.box for word in self.words), strict=True)
        return min(lefts), min(tops), max(rights), max(bottoms)

    @property
    def confidence(self) -> float:
        """Mean over the letters, so that an unusual word does not spoil a line; 0 without words."""
        letters = sum(len(word.text) for word in self.words)
        return sum(len(word.text) * word.confidence for word in self.words) / max(1, letters)

    def as_data(self) -> dict[str, Any]:
        """As plain JSON data."""
        return Word(self.text, self.box, self.confidence, ()).as_data()


def group_lines(words: Sequence[Word]) -> tuple[Line, ...]:
    """Join the words that the engine put into one line, left to right; keep the engine's order of lines.

    Lines without any letter or digit are left out.
    """
    by_line: dict[tuple[int, ...], list[Word]] = {}
    for word in words:
        by_line.setdefault(word.line, []).append(word)
    lines = [Line(tuple(sorted(members, key=lambda word: word.box[0]))) for members in by_line.values()]
    return tuple(line for line in lines if any(character.isalnum() for character in line.text))


def order_pieces(pieces: Sequence[Line]) -> tuple[Line, ...]:
    """Put pieces of lines in order, for engines that find them in any order.

    Pieces whose heights overlap by more than half, and that do not overlap sideways, are one row: they are
    joined when the gap between them is less than three times their height, else they follow each other from
    left to right. Rows go from top to bottom.
    """
    lines = []
    for row in _rows(pieces):
        current = row[0]
        for piece in row[1:]:
            left, top, _, bottom = piece.box
            if left - current.box[2] < 3.0 * (bottom - top):
                current = Line(current.words + piece.words)
            else:
                lines.append(current)
                current = piece
        lines.append(current)
    return tuple(lines)


def _rows(pieces: Sequence[Line]) -> list[list[Line]]:
    """Pieces at one height, from left to right; rows from top to bottom."""
    rows: list[list[Line]] = []
    for piece in sorted(pieces, key=lambda line: line.box[1]):
        fitting = (row for row in rows[-8:] if all(_is_beside(piece, other) for other in row))
        row = next(fitting, None)
        if row is None:
            rows.append([piece])
        else:
            row.append(piece)
    for row in rows:
        row.sort(key=lambda line: line.box[0])
    return rows


def _is_beside(one: Line, other: Line) -> bool:
    left, top, right, bottom = one.box
    o_left, o_top, o_right, o_bottom = other.box
    shared = min(bottom, o_bottom) - max(top, o_top)
    is_level = shared > 0.5 * min(bottom - top, o_bottom - o_top)
    return is_level and (right <= o_left or o_right <= left)
