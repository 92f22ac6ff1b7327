"""Code as segments: numbered lines, signatures as parents of bodies, what failed pinned."""

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from typing import Literal

from sensorium.observations.base import Part
from sensorium.observations.comments import without_comments
from sensorium.observations.values import CodeValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import CodeConfig
from sensorium.representations.layout.code_lines import indent_of, is_brace_language, is_signature, weight_of
from sensorium.representations.layout.code_state import state_after, state_before
from sensorium.representations.layout.code_window import anchors_of, window_of
from sensorium.representations.layout.line_count import said_lines
from sensorium.representations.layout.typed import value_of

_PINNED_CHARS = 300
_MAX_SIGNATURE = 12
"""Lines that one signature may span."""


_Line = tuple[int, str]
"""Its number, from 1, and its text."""
_Kind = Literal["line", "signature", "left out"]
_Piece = tuple[int, int, _Kind]
"""What makes one segment: position of the first line, number of lines (blank ones behind excepted), kind."""


def lay_out_code(part: Part, config: CodeConfig | None = None) -> Document:
    """Lay code out with its state: what is wrong, failed tests, numbered lines, variables, tools.

    Args:
        part: A part with a `CodeValue`.
        config: `max_lines`: of a longer file the lines around cursor, faults and stack frames are laid out
            (without those: its beginning), and the rest is named; `include_comments`: False takes comments
            and docstrings out, where the language has a parser.

    Returns:
        The document. Signatures and imports weigh most and signatures are the parents of their bodies; the
        cursor's line, faults, the exception and failed tests are pinned.
    """
    value = value_of(part, CodeValue, "code")
    return code_document(value, config or CodeConfig())


def code_document(
    value: CodeValue, config: CodeConfig, title: str = "", *, is_numbered: bool = True
) -> Document:
    """Like `lay_out_code`, of a value, on request under another title and without numbers of lines."""
    state, after = state_before(value), state_after(value)
    has_state = bool(state or after)
    body = _Body(value, config, is_numbered)
    above: list[Segment] = list(state)
    below: list[Segment] = []
    if has_state and body.texts:
        ticks = "~~~~" if "```" in value.text else "```"
        above.append(Segment(f"{ticks}{value.language or ''}", 1.0, "code", None, True))
        below.append(Segment(ticks, 1.0, "code", None, True))
    start = len(above) + len(body.texts) + len(below)
    below += [s if s.parent is None else s._replace(parent=s.parent + start) for s in after]
    return Document(
        title=title or _title(value),
        segments=lambda: [*above, *body.segments(len(state) + has_state), *below],
        unit="lines",
        fence=None if has_state else value.language or "",
        texts=[*(s.text for s in above), *body.texts, *(s.text for s in below)],
    )


def _title(value: CodeValue) -> str:
    if value.text:
        said = [value.language or "code", said_lines(value.text)]
    else:
        states = {"test results": value.tests, "exception": value.stack, "variables": value.variables}
        said = [name for name, state in states.items() if state] or [value.language or "code", "empty"]
    if value.cursor_line is not None:
        column = f", column {value.cursor_column}" if value.cursor_column is not None else ""
        said.append(f"cursor at line {value.cursor_line}{column}")
    return f"{value.path}: {', '.join(said)}" if value.path else ", ".join(said)


def _nearness(anchors: Iterable[int]) -> dict[int, float]:
    """What a line is worth more because it stands less than five lines from one of some others."""
    worth: dict[int, float] = {}
    for anchor in anchors:
        for distance in range(-4, 5):
            line = anchor + distance
            worth[line] = max(worth.get(line, 0.0), 2.0 - 0.4 * abs(distance))
    return worth


def _gain(
    numbers: Sequence[int], cursor: int | None, telling: Set[int], near: Mapping[int, float]
) -> tuple[float, bool]:
    """What lines gain by the cursor, faults and stack frames in or near them, and whether they are pinned."""
    gain, pinned = 0.0, False
    if cursor is not None:
        distance = min(abs(line - cursor) for line in numbers)
        gain, pinned = max(0.0, 3.0 - distance * 0.25), distance == 0
    for line in numbers:
        if line in telling:
            gain, pinned = gain + 4.0, True
    return (gain, True) if pinned else (gain + near.get(numbers[0], 0.0), False)


class _Body:
    """The lines of the code as segments: their texts, and on request what they are worth."""

    def __init__(self, value: CodeValue, config: CodeConfig, is_numbered: bool) -> None:
        self.value = value
        self.width = len(str(value.text.count("\n") + 1)) if is_numbered else 0
        self.max_lines = config.max_lines
        self.include_comments = config.include_comments
        self.is_brace = is_brace_language(value.language)
        self._numbered_lines = self._lines()
        self._pieces: list[_Piece] = []
        self.texts: list[str] = []
        """Of the segments."""
        self._divide()

    def segments(self, start: int) -> list[Segment]:
        """Segments; parents count from `start`."""
        telling = {fault.line for fault in self.value.faults[:5]}.union(anchors_of(self.value).stack)
        near = _nearness(telling)
        lines, cursor = self._numbered_lines, self.value.cursor_line
        out: list[Segment] = []
        open_signatures: list[tuple[int, int]] = []  # indent, position
        for (begin, count, kind), text in zip(self._pieces, self.texts, strict=True):
            number, first = lines[begin]
            if kind == "left out":
                out.append(Segment(text, 0.8, self._where(begin, count)))
                continue
            is_signature = kind == "signature"
            indent = indent_of(first)
            while open_signatures and open_signatures[-1][0] >= indent:
                open_signatures.pop()
            parent = open_signatures[-1][1] if open_signatures else None
            if is_signature:
                open_signatures.append((indent, start + len(out)))
            weight, pinned = 3.0 if is_signature else weight_of(first), False
            if near or cursor is not None:
                numbers = [line for line, _ in lines[begin : begin + count]]
                gain, pinned = _gain(numbers, cursor, telling, near)
                weight += gain
                pinned = pinned and len(text.rstrip("\n")) <= _PINNED_CHARS
            out.append(Segment(text, weight, f"line {number}", parent, pinned))
        return out

    def _divide(self) -> None:
        """Find the pieces and write their texts; a blank line belongs to the piece before it."""
        lines, width, is_brace = self._numbered_lines, self.width, self.is_brace
        chosen = self._chosen(lines)
        pieces, texts = self._pieces, self.texts
        index, previous = 0, 0
        while index < len(lines):
            if index not in chosen:
                end = index
                while end < len(lines) and end not in chosen:
                    end += 1
                pieces.append((index, end - index, "left out"))
                where = self._where(index, end - index)
                texts.append(f"... {where} not shown (max_lines: {self.max_lines}) ...")
                index = previous = end
                continue
            number, text = lines[index]
            if not text or text.isspace():
                if texts and previous == index:
                    texts[-1] += "\n"
                index = previous = index + 1
                continue
            if is_signature(text, is_brace):
                count = self._signature_length(lines, index, chosen)
                pieces.append((index, count, "signature"))
                block = lines[index : index + count]
                texts.append(
                    "\n".join([f"{str(line).rjust(width)} {own}" if width else own for line, own in block])
                )
            else:
                count = 1
                pieces.append((index, 1, "line"))
                texts.append(f"{str(number).rjust(width)} {text}" if width else text)
            index += count
            previous = index

    def _where(self, begin: int, count: int) -> str:
        first, last = self._numbered_lines[begin][0], self._numbered_lines[begin + count - 1][0]
        return f"line {first}" if first == last else f"lines {first}-{last}"

    def _lines(self) -> list[_Line]:
        text = self.value.text
        if not text.strip():
            return []
        if self.include_comments:
            return list(enumerate(text.rstrip().split("\n"), start=1))
        kept = without_comments(text, self.value.language)
        lines: list[_Line] = []
        for number, line in enumerate(kept, start=1):
            if line is not None and (line.strip() or (lines and lines[-1][1].strip())):
                lines.append((number, line))
        while lines and not lines[-1][1].strip():
            lines.pop()
        return lines

    def _chosen(self, lines: list[_Line]) -> Container[int]:
        """Positions of the lines that are shown: the window, and the signatures that it stands in."""
        if len(lines) <= self.max_lines:
            return range(len(lines))
        numbers = [number for number, _ in lines]
        around: Set[int] = window_of(self.value, numbers, self.max_lines)
        above = self._enclosing(lines, around)[: self.max_lines // 4]
        if not above:
            return around
        return window_of(self.value, numbers, self.max_lines - len(above)) | set(above)

    def _enclosing(self, lines: list[_Line], around: Set[int]) -> list[int]:
        """Signatures outside the window that contain its pieces, the innermost first."""
        found: list[int] = []
        for position in sorted(around):
            if position - 1 in around:
                continue
            indent = indent_of(lines[position][1])
            for above in range(position - 1, -1, -1):
                if indent == 0:
                    break
                text = lines[above][1]
                if text.strip() and indent_of(text) < indent and is_signature(text, self.is_brace):
                    indent = indent_of(text)
                    if above not in around and above not in found:
                        found.append(above)
        return found

    def _signature_length(self, lines: list[_Line], index: int, chosen: Container[int]) -> int:
        """Lines of the signature that begins here."""
        depth, count = 0, 0
        for _, text in lines[index : index + _MAX_SIGNATURE]:
            if index + count not in chosen:  # the window ends within the signature
                break
            depth += text.count("(") - text.count(")") + text.count("[") - text.count("]")
            count += 1
            if depth <= 0:
                return count
        return 1 if depth > 0 else max(count, 1)
