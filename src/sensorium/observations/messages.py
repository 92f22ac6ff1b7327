"""Conversations: chat messages of the usual APIs become turns; their pictures and sounds are handed out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import decode
from sensorium.observations.values import MessagesValue, ProblemValue, Turn

Role = Literal["system", "developer", "user", "assistant", "tool"]
Encoding = Literal["url", "base64", "object"]
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
}
_MAX_NESTING = 8
"""Blocks inside blocks (results of tools) that are followed."""


class MediaItem(NamedTuple):
    """A picture or sound inside a message, still to be read."""

    part_id: str
    """Id that its part should get: ``chat/message-3/image-0``."""
    kind: Literal["image", "audio"]
    raw: Any
    """What the message holds: a ``data:`` URL, an address, base64 text, bytes, an object such as a Pillow
    image or an array; None when it holds nothing."""
    encoding: Encoding
    """How `raw` is to be read."""


class Conversation(NamedTuple):
    """A conversation that was read."""

    parts: list[Part]
    """A part with a `MessagesValue`, and parts with problems."""
    media: list[MediaItem]
    """Pictures and sounds; where they stood, the text says ``[image: chat/message-3/image-0]``."""


def read_messages(raw: Any, *, part_id: str, config: ReadConfig | None = None) -> Conversation:
    """Read chat messages.

    Args:
        raw: Messages with ``role`` and ``content``, oldest first, or an object with ``messages``. Content is
            text, or a list of blocks as in the chat-completions, Responses and Anthropic APIs; tool calls
            become text.
        part_id: Id of the part.
        config: `max_bytes` limits the text of the whole, `max_items` the number of messages.

    Returns:
        The parts, and pictures and sounds for the readers of their kind. Never raises for bad content.
    """
    messages = _messages(raw)
    if messages is None:
        problem = ProblemValue(
            what=f"not a conversation: {type(raw).__name__} without messages",
            where=part_id,
            mend="give a list of objects with role and content",
        )
        return Conversation([Part(id=part_id, modality=Modality.TEXT, value=problem)], [])
    config = config or ReadConfig()
    reader = _Reader(part_id, config)
    for message in messages[: config.max_items]:
        reader.add(message)
    if len(messages) > config.max_items:
        reader.notes.append(f"first {config.max_items:,} of {len(messages):,} messages")
    notes = tuple(dict.fromkeys(reader.notes))
    value = MessagesValue(turns=tuple(reader.turns))
    parts = [Part(id=part_id, modality=Modality.TEXT, value=value, notes=notes)]
    if reader.broken:
        places = ", ".join(str(index) for index in reader.broken[:10])
        problem = ProblemValue(
            what=f"{len(reader.broken):,} of {len(messages):,} messages lack a known role or are no objects",
            where=f"{part_id}: messages {places}",
            mend="give each message a role and a content",
        )
        parts.append(Part(id=f"{part_id}/problem", modality=Modality.TEXT, value=problem))
    return Conversation(parts, reader.media)


def looks_like_messages(raw: Any) -> bool:
    """Whether an object is a conversation: a list of objects with known roles and a content."""
    messages = _messages(raw) or []
    return bool(messages) and all(
        isinstance(message, Mapping)
        and isinstance(message.get("role"), str)
        and message["role"] in _ROLES
        and ("content" in message or "tool_calls" in message)
        for message in messages[:50]
    )


def _messages(raw: Any) -> list[Any] | None:
    if isinstance(raw, Mapping):
        raw = raw.get("messages", [raw] if "role" in raw else None)
    if isinstance(raw, Sequence) and not isinstance(raw, str | bytes | bytearray):
        return list(raw)
    return None


class _Reader:
    def __init__(self, part_id: str, config: ReadConfig) -> None:
        self.part_id = part_id
        self.left = config.max_bytes
        self.turns: list[Turn] = []
        self.media: list[MediaItem] = []
        self.notes: list[str] = []
        self.broken: list[int] = []
        self.index = 0

    def add(self, message: Any) -> None:
        index = self.index
        self.index += 1
        if not isinstance(message, Mapping):
            self.broken.append(index)
            return
        role = message.get("role")
        known = _ROLES.get(role.lower()) if isinstance(role, str) else None
        if known is None:
            self.broken.append(index)
            known = "user"
        place = f"{self.part_id}/message-{index}"
        pieces = [*self._texts(message.get("content"), place, 0), *_calls(message)]
        name = message.get("name") or (message.get("tool_call_id") if known == "tool" else None)
        text = self._clean("\n".join(piece for piece in pieces if piece))
        speaker = self._clean(_short(name)) if name else None
        self.turns.append(Turn(role=known, content=text, name=speaker))

    def _clean(self, text: str) -> str:
        decoded = decode(text, max_bytes=max(self.left, 0))
        self.left -= len(text)
        self.notes.extend(decoded.notes)
        return decoded.text

    def _texts(self, content: Any, place: str, depth: int) -> list[str]:
        if content is None:
            return []
        if isinstance(content, str):
            return [content]
        if isinstance(content, Mapping):
            content = [content]
        if (
            not isinstance(content, Sequence)
            or isinstance(content, bytes | bytearray)
            or depth > _MAX_NESTING
        ):
            return [_short(content)]
        texts: list[str] = []
        for block in content:
            texts += self._block(block, place, depth)
        return texts

    def _block(self, block: Any, place: str, depth: int) -> list[str]:
        if not isinstance(block, Mapping):
            return [_short(block)]
        kind = str(block.get("type"))
        for key in ("text", "refusal", "thinking", "reasoning"):  # text, input_text, output_text have "text"
            if isinstance(block.get(key), str):
                return [block[key]]
        if kind in ("image_url", "input_image", "image"):
            return self._medium("image", _source(block, "image_url", "source", "image"), place)
        if kind in ("input_audio", "audio", "audio_url"):
            return self._medium("audio", _source(block, "input_audio", "audio_url", "source", "audio"), place)
        if kind == "tool_use":
            return [f"calls {block.get('name', '?')}({_short(block.get('input', {}))})"]
        if kind == "tool_result":
            return self._texts(block.get("content"), place, depth + 1)
        return [_short(block)]

    def _medium(self, kind: Literal["image", "audio"], source: tuple[Any, Encoding], place: str) -> list[str]:
        count = sum(item.part_id.startswith(f"{place}/{kind}-") for item in self.media)
        item = MediaItem(f"{place}/{kind}-{count}", kind, *source)
        self.media.append(item)
        return [f"[{kind}: {item.part_id}]"]


def _source(block: Mapping[str, Any], *keys: str) -> tuple[Any, Encoding]:
    """What a block holds of a picture or sound, under the first key that it has, and how that is read."""
    source = next((block[key] for key in keys if key in block), None)
    if isinstance(source, Mapping):
        url, data = source.get("url"), source.get("data")
        if url is None:
            return data, "base64" if isinstance(data, str) else "object"
        source = url
    return source, "url" if isinstance(source, str) else "object"


def _calls(message: Mapping[str, Any]) -> list[str]:
    """Calls of tools, a line each."""
    calls = message.get("tool_calls") or ()
    if isinstance(message.get("function_call"), Mapping):
        calls = [{"function": message["function_call"]}]
    texts = []
    for call in calls if isinstance(calls, list | tuple) else [calls]:
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            texts.append(f"calls {function.get('name', '?')}({_short(function.get('arguments', ''))})")
        else:
            texts.append(f"calls {_short(call)}")
    return texts


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"
