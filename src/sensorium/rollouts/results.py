"""Answers of tools on their way to the agent: as parts of a prompt, or as messages of a conversation."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sensorium.core import Modality
from sensorium.envs.base import ToolResult
from sensorium.llm.base import TokenCounter, count_message
from sensorium.llm.embedded_pictures import content
from sensorium.llm.messages import (
    AnyBlock,
    AudioBlock,
    ImageBlock,
    Message,
    OtherBlock,
    TextBlock,
    text_message,
)
from sensorium.observations import Part, Source, read

_IMPORTANCE = 3.0
"""Of the answers to the last action, beside the parts of the state."""
_PIECE_CHARS = 6_000
"""A long text is cut into parts of about so many characters, so that the best of them can be shown whole."""


class Answers(NamedTuple):
    """What the last action brought, for an agent that keeps the conversation."""

    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    """Answers that are too long for a message; they are shown as parts of the state."""


def result_parts(results: Sequence[ToolResult], notes: Sequence[str]) -> tuple[Part, ...]:
    """What the last action brought, as parts that stand before the state."""
    named: dict[str, Any] = {}
    for number, result in enumerate(results, start=1):
        named |= _sources(_name(number, result), result.content)
    for number, note in enumerate(notes, start=1):
        named[f"note-{number}"] = _text(note)
    return read(named).parts if named else ()


def answer_messages(
    results: Sequence[ToolResult], notes: Sequence[str], counter: TokenCounter, max_tokens: int
) -> Answers:
    """What the last action brought, as messages; an answer of more than `max_tokens` goes to the state."""
    messages: list[Message] = []
    long: dict[str, Source] = {}
    for number, result in enumerate(results, start=1):
        message = result.message()
        if count_message(counter, message) > max_tokens:
            name = _name(number, result)
            long |= _sources(name, result.content)
            text = TextBlock(text=f"The answer is long; it is shown below as {name}.")
            message = message.model_copy(update={"content": (text,)})
        messages.append(message)
    messages += [text_message("user", note) for note in notes]
    return Answers(tuple(messages), read(long).parts if long else ())


def _name(number: int, result: ToolResult) -> str:
    return f"result-{number}/{result.name or 'tool'}"


def _sources(name: str, content: Sequence[AnyBlock]) -> dict[str, Source]:
    named: dict[str, Source] = {}
    for place, block in enumerate(content):
        own = name if len(content) == 1 else f"{name}/{place}"
        if isinstance(block, TextBlock):
            pieces = list(_pieces(block.text))
            named |= {own if len(pieces) == 1 else f"{own}/{which}": _text(text) for which, text in pieces}
        else:
            named[own] = _source(block)
    return named


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Pieces of a text with their places; one piece when it is short."""
    if len(text) <= 2 * _PIECE_CHARS:
        yield "all", text
        return
    piece: list[str] = []
    size, first = 0, 1
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if piece and size + len(line) > _PIECE_CHARS:
            yield f"lines-{first}-{number - 1}", "".join(piece)
            piece, size, first = [], 0, number
        piece.append(line)
        size += len(line)
    yield f"lines-{first}-{first + len(piece) - 1}", "".join(piece)


def _source(block: ImageBlock | AudioBlock | OtherBlock) -> Source:
    match block:
        case ImageBlock(url=url):
            picture = content(url)
            return Source(picture, importance=_IMPORTANCE) if picture else _text(f"picture at {url}")
        case AudioBlock(data=data):
            return Source(base64.b64decode(data), modality=Modality.AUDIO, importance=_IMPORTANCE)
        case OtherBlock(data=data):
            return Source(data, importance=_IMPORTANCE)


def _text(text: str) -> Source:
    return Source(text, importance=_IMPORTANCE)
