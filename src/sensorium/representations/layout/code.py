"""Code as segments: numbered lines, signatures as parents of bodies, what failed pinned."""

from collections.abc import Container, Iterable, Set

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


def code_document(value: CodeValue, config: CodeConfig, *, is_numbered: bool = True) -> Document:
    """Like `lay_out_code`, of a value, on request without numbers in front of the lines."""
    segments = state_before(value)
    after = state_after(value)
    has_state = bool(segments or after)
    body = _Body(value, config, is_numbered).segments(len(segments) + has_state)
    if has_state and body:
        ticks = "~~~~" if "```" in value.text else "```"
        segments.append(Segment(f"{ticks}{value.language or ''}", 1.0, "code", None, True))
        body.append(Segment(ticks, 1.0, "code", None, True))
    segments += body
    segments += [s if s.parent is None else s._replace(parent=s.parent + len(segments)) for s in after]
    return Document(
        title=_title(value),
        segments=tuple(segments),
        unit="lines",
        fence=None if has_state else value.language or "",
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


class _Body:
    """The lines of the code as segments."""

    def __init__(self, value: CodeValue, config: CodeConfig, is_numbered: bool) -> None:
        self.value = value
        self.width = len(str(value.text.count("\n") + 1)) if is_numbered else 0
        self.max_lines = config.max_lines
        self.include_comments = config.include_comments
        self.is_brace = is_brace_language(value.language)
        self.telling = {fault.line for fault in value.faults[:5]}.union(anchors_of(value).stack)
        self.near = _nearness(self.telling)
        self.has_anchors = bool(self.near or value.cursor_line is not None)

    def segments(self, start: int) -> list[Segment]:
        """Segments; parents count from `start`."""
        lines = self._lines()
        out: list[Segment] = []
        open_signatures: list[tuple[int, int]] = []  # indent, position
        chosen = self._chosen(lines)
        index, previous = 0, 0
        while index < len(lines):
            if index not in chosen:
                end = index
                while end < len(lines) and end not in chosen:
                    end += 1
                out.append(self._left_out(lines[index][0], lines[end - 1][0]))
                index = previous = end
                continue
            text = lines[index][1]
            bare = text.lstrip()
            if not bare:
                if out and previous == index:
                    out[-1] = out[-1]._replace(text=out[-1].text + "\n")
                index = previous = index + 1
                continue
            count = self._signature_length(lines, index, chosen) if is_signature(text, self.is_brace) else 0
            block = lines[index : index + max(count, 1)]
            indent = len(text) - len(bare)
            while open_signatures and open_signatures[-1][0] >= indent:
                open_signatures.pop()
            parent = open_signatures[-1][1] if open_signatures else None
            if count:
                open_signatures.append((indent, start + len(out)))
            out.append(self._segment(block, bool(count), parent))
            index += len(block)
            previous = index
        return out

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

    def _segment(self, block: list[_Line], is_signature: bool, parent: int | None) -> Segment:
        number, text = block[0]
        weight = 3.0 if is_signature else weight_of(text)
        if len(block) > 1:
            text = "\n".join([self._numbered(line, written) for line, written in block])
        elif self.width:
            text = self._numbered(number, text)
        if not self.has_anchors:
            return Segment(text, weight, f"line {number}", parent)
        pinned = False
        cursor = self.value.cursor_line
        if cursor is not None:
            distance = min(abs(line - cursor) for line, _ in block)
            weight += max(0.0, 3.0 - distance * 0.25)
            pinned = distance == 0
        for line, _ in block:
            if line in self.telling:
                weight, pinned = weight + 4.0, True
        if not pinned:
            weight += self.near.get(number, 0.0)
        return Segment(text, weight, f"line {number}", parent, pinned and len(text) <= _PINNED_CHARS)

    def _numbered(self, number: int, text: str) -> str:
        return f"{str(number).rjust(self.width)} {text}" if self.width else text

    def _left_out(self, first: int, last: int) -> Segment:
        where = f"line {first}" if first == last else f"lines {first}-{last}"
        return Segment(f"... {where} not shown (max_lines: {self.max_lines}) ...", 0.8, where)
