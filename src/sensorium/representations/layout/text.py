"""Running text and conversations as segments: headings carry their paragraphs, errors are pinned."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from sensorium.core.counted import counted
from sensorium.observations.base import Part
from sensorium.observations.text import TextFormat
from sensorium.observations.values import MessagesValue, TextValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import TextConfig
from sensorium.representations.layout.line_count import said_lines
from sensorium.representations.layout.typed import value_of

LONG_LINE = 400
"""Characters from which a line is divided at the ends of its sentences."""
_PIECE = 300
"""Characters at which a line without sentences is divided."""
_PINNED_CHARS = 300
_MAX_PINNED = 3

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+(?=[^\sa-z])")
_HEADING = re.compile(r"(#{1,6}) \S")
_STRONG_WORDS = (
    "error errors exception exceptions fatal critical panic fail failed fails failure failures "
    "traceback assert "
    "assertion denied refused timeout abort aborted crash crashed segfault cannot missing invalid "
    "unexpected must "
    "never important attention danger warning deadline password because therefore conclusion result "
    "note todo "
    "fixme"
)
"""Words that make a line worth more."""
_STRONG = frozenset(
    before + word + after
    for word in _STRONG_WORDS.split()
    for before in ("", "(", "[", '"', "'", "**")
    for after in ("", ":", ",", ".", "!", ";", ")", "]", '"', "'", "**")
)
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|CRITICAL|FATAL|PANIC|SEVERE)\b")
_LEVEL_WEIGHT = {
    "TRACE": 0.3,
    "DEBUG": 0.3,
    "INFO": 0.7,
    "NOTICE": 1.0,
    "WARN": 2.0,
    "WARNING": 2.0,
    "ERROR": 4.0,
    "ERR": 4.0,
    "SEVERE": 4.0,
    "CRITICAL": 5.0,
    "FATAL": 5.0,
    "PANIC": 5.0,
}
_SAYS_ANYTHING = re.compile(r"[^\W_]")
_HAS_FACT = re.compile(r"[\d=:→\"'`A-Z](?:(?<![A-Z])|(?<!\w[A-Z])[A-Z]+\b)")
"""A sign or digit that tells something, or a word in capitals. Every match begins with one of few characters,
so that all others are skipped fast."""
_TAGS = re.compile(r"<[^>]*>")
_FRAME = re.compile(r'^\s*(?:\| )*(?:File "|at |#?\d+[: ]\s|goroutine |\S+:\d+)')
_LIBRARY = re.compile(
    r"site-packages|dist-packages|/lib/python|node_modules|node:internal|/rustc/|\bjava\.|\bsun\.|/usr/"
)
_INDENT = re.compile(r"\s*")


class _Block(NamedTuple):
    """One or several lines that belong together."""

    text: str
    line: int
    """Of its first line, from 1."""


def lay_out_text(part: Part, config: TextConfig | None = None) -> Document:
    """Lay text out: a segment per line, long lines by sentence; blank lines belong to the line before them.

    Args:
        part: A part with a `TextValue`.
        config: `max_chars`: what lies behind is not laid out, and said so.

    Returns:
        The document. Joined, its segments are the text, apart from long lines, which are broken between
        sentences. Weights: errors high and pinned, headings high and parents of what follows.
    """
    value = value_of(part, TextValue, "text")
    return text_document(value.text, value.format, config or TextConfig())


def text_document(text: str, kind: TextFormat, config: TextConfig, title: str = "") -> Document:
    """Like `lay_out_text`, of a text and how it is written; by default that is its title."""
    lines, left_out = _divided(text, config.max_chars)
    more = [f"... {counted(left_out, 'more character')} not read ..."] if left_out else []

    def weighed() -> list[Segment]:
        segments = _WEIGHERS[kind](list(map(_Block, lines.texts, lines.numbers)))
        return segments + [Segment(said, 1.0, is_pinned=True) for said in more]

    fence = "" if kind in ("log", "traceback") else "html" if kind == "html" else None
    title = title or f"{'text' if kind == 'plain' else kind}, {said_lines(text)}"
    unit = "lines" if not lines.texts or lines.numbers[-1] >= len(lines.texts) else "pieces"
    return Document(title, weighed, unit, fence, texts=lines.texts + more)


def lay_out_messages(part: Part, config: TextConfig | None = None) -> Document:
    """Lay a conversation out: each turn begins with a line that names who speaks, parent of what is said.

    Instructions (system, developer) and the last turns weigh most; the last words of the user are pinned.
    """
    value = value_of(part, MessagesValue, "messages")
    segments: list[Segment] = []
    count = len(value.turns)
    last_user = max((i for i, turn in enumerate(value.turns) if turn.role == "user"), default=-1)
    budget = (config or TextConfig()).max_chars
    for index, turn in enumerate(value.turns):
        place = f"turn {index + 1}"
        recent = 2.0 if index >= count - 2 else 1.0 + index / max(1, count)
        base = 2.0 * recent if turn.role in ("system", "developer") or index == last_user else recent
        head = f"[{turn.role}{f' {turn.name}' if turn.name else ''}]"
        parent = len(segments)
        segments.append(Segment(head, base, place, None, False))
        lines, left_out = _divided(turn.content, max(0, budget))
        budget -= len(turn.content)
        for number, segment in enumerate(_plain(list(map(_Block, lines.texts, lines.numbers)))):
            pinned = index == last_user and number == 0 and len(segment.text) <= _PINNED_CHARS
            above = parent if segment.parent is None else segment.parent + parent + 1
            segments.append(Segment(segment.text, segment.weight * base, place, above, pinned))
        if left_out:
            segments.append(
                Segment(f"... {counted(left_out, 'more character')} not read ...", 0.5, place, parent)
            )
    return Document(title=f"conversation, {counted(count, 'turn')}", segments=tuple(segments), unit="lines")


class _Lines(NamedTuple):
    """Texts of blocks, and for each the number of its first line, from 1."""

    texts: list[str]
    numbers: list[int]


def _divided(text: str, max_chars: int) -> tuple[_Lines, int]:
    """Lines, long ones divided; returns how many characters lie behind the limit, too."""
    left_out = max(0, len(text) - max_chars)
    if left_out:
        text = text[:max_chars]
    texts: list[str] = []
    numbers: list[int] = []
    if not text.strip():
        return _Lines(texts, numbers), left_out
    for number, line in enumerate(text.rstrip().split("\n"), start=1):
        if len(line) > LONG_LINE:
            pieces = _sentences(line)
            texts += pieces
            numbers += [number] * len(pieces)
        elif texts and (not line or line.isspace()):
            texts[-1] += "\n" + line
        else:
            texts.append(line)
            numbers.append(number)
    return _Lines(texts, numbers), left_out


def _sentences(line: str) -> list[str]:
    pieces: list[str] = []
    for sentence in _SENTENCE_END.split(line):
        if len(sentence) <= LONG_LINE:
            pieces.append(sentence)
            continue
        begin = 0
        while begin < len(sentence):
            end = begin + _PIECE
            if end < len(sentence):
                space = sentence.rfind(" ", begin + _PIECE // 2, end)
                end = space + 1 if space > 0 else end
            pieces.append(sentence[begin:end].rstrip() if end < len(sentence) else sentence[begin:])
            begin = end
    return [piece for piece in pieces if piece]


def _plain(blocks: list[_Block]) -> list[Segment]:
    segments: list[Segment] = []
    last = len(blocks) - 1
    for index, block in enumerate(blocks):
        weight = _prose_weight(block.text)
        if index == 0:
            weight *= 1.5
        elif index == last:
            weight *= 1.2
        segments.append(Segment(block.text, weight, f"line {block.line}"))
    return segments


def _is_strong(text: str) -> bool:
    return "Error" in text or "Exception" in text or not _STRONG.isdisjoint(text.lower().split())


@lru_cache(maxsize=65_536)
def _prose_weight(text: str) -> float:
    if len(text) < 4 or _SAYS_ANYTHING.search(text, 0, 200) is None:
        return 0.2
    weight = 1.0
    if _HAS_FACT.search(text):
        weight += 0.4
    if _is_strong(text):
        weight += 0.6
    return weight


def _markdown(blocks: list[_Block]) -> list[Segment]:
    segments: list[Segment] = []
    headings: list[tuple[int, int]] = []  # level, position
    fence: str | None = None
    for index, block in enumerate(blocks):
        text, place = block.text, f"line {block.line}"
        bare = text.lstrip()
        if bare[:3] in ("```", "~~~"):
            fence = bare[:3] if fence is None else None if bare.startswith(fence) else fence
            segments.append(Segment(text, 0.6, place, headings[-1][1] if headings else None))
            continue
        match = _HEADING.match(text) if fence is None and text[:1] == "#" else None
        if match:
            level = len(match[1])
            while headings and headings[-1][0] >= level:
                headings.pop()
            parent = headings[-1][1] if headings else None
            headings.append((level, index))
            segments.append(Segment(text, 3.0 - 0.3 * level, place, parent))
            continue
        weight = _prose_weight(text)
        if index and blocks[index - 1].text.startswith("#"):
            weight *= 1.3  # what a section is about stands in its first sentence
        segments.append(Segment(text, weight, place, headings[-1][1] if headings else None))
    return segments


def _log(blocks: list[_Block]) -> list[Segment]:
    """Levels decide; lines without a level belong to the entry above them (a trace, a dump)."""
    segments: list[Segment] = []
    entry: int | None = None
    current = 1.0
    for index, block in enumerate(blocks):
        match = _LEVEL.search(block.text[:200])
        begins = match is not None or block.text[:1].isdigit() or block.text[:1] == "["
        if begins or entry is None:
            entry = index
            current = _LEVEL_WEIGHT.get(match[1], 1.0) if match else 2.5 if _is_strong(block.text) else 1.0
            weight, parent = current, None
        else:
            is_detail = _FRAME.match(block.text) is not None
            weight, parent = current * (0.5 if is_detail else 0.8), entry
            if not is_detail and _is_strong(block.text):
                weight = max(weight, 3.0)
        segments.append(Segment(block.text, weight, f"line {block.line}", parent))
    if segments:
        last = len(segments) - 1
        segments[last] = segments[last]._replace(weight=max(segments[last].weight, 1.5))
    return _pin(segments, at_least=4.0)


def _pin(segments: list[Segment], *, at_least: float) -> list[Segment]:
    """Pin the first and the last of what went wrong: the cause, and what ended it."""
    wrong = [
        i
        for i, s in enumerate(segments)
        if s.weight >= at_least and len(s.text) <= _PINNED_CHARS and s.parent is None
    ]
    for index in {*wrong[: _MAX_PINNED - 1], *wrong[-1:]}:
        segments[index] = segments[index]._replace(is_pinned=True)
    return segments


def _traceback(blocks: list[_Block]) -> list[Segment]:
    """Frames with their line of code; frames in the user's own files weigh more than those of libraries."""
    segments: list[Segment] = []
    frame: int | None = None
    frames = [i for i, block in enumerate(blocks) if _FRAME.match(block.text)]
    last_frame = frames[-1] if frames else -1
    own = [i for i in frames if not _LIBRARY.search(blocks[i].text)]
    last_own = own[-1] if own else last_frame
    for index, block in enumerate(blocks):
        text, place = block.text, f"line {block.line}"
        if _FRAME.match(text):
            frame = index
            weight = 1.0 if _LIBRARY.search(text) else 2.5
            pinned = index == last_own and len(text) <= _PINNED_CHARS
            segments.append(
                Segment(text, weight + 1.5 * (index in (last_own, last_frame)), place, None, pinned)
            )
        elif frame is not None and _INDENT.match(text).end() > 0:  # type: ignore[union-attr]  # it matches any text
            base = segments[frame].weight
            segments.append(
                Segment(text, base * (0.3 if set(text.strip()) <= set("^~") else 0.9), place, frame)
            )
        else:
            frame = None
            is_end = (
                _is_strong(text)
                or index == len(blocks) - 1
                or re.match(r"[\w.]+(?:Error|Exception)?: ", text)
            )
            pinned = bool(is_end) and len(text) <= _PINNED_CHARS and index in (0, len(blocks) - 1)
            segments.append(Segment(text, 4.0 if is_end else 0.8, place, None, pinned))
    return segments


def _html(blocks: list[_Block]) -> list[Segment]:
    segments: list[Segment] = []
    skipped: str | None = None
    for block in blocks:
        lowered = block.text.lower()
        if skipped is None and (match := re.search(r"<(script|style|svg)\b", lowered)):
            skipped = match[1]
        words = _TAGS.sub(" ", block.text).strip()
        if skipped is not None:
            weight = 0.1
            if f"</{skipped}" in lowered:
                skipped = None
        elif not words:
            weight = 0.2
        else:
            weight = _prose_weight(words) * (2.0 if re.search(r"<(?:h[1-6]|title)\b", lowered) else 1.0)
        segments.append(Segment(block.text, weight, f"line {block.line}"))
    return segments


_WEIGHERS: dict[str, Callable[[list[_Block]], list[Segment]]] = {
    "plain": _plain,
    "markdown": _markdown,
    "log": _log,
    "traceback": _traceback,
    "html": _html,
}
