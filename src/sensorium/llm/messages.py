"""Messages as a chat model reads them: text, pictures and sounds, apart from any vendor's wire format."""

import base64
import binascii
import struct
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field

from sensorium.core import ModelError
from sensorium.core.exact_json import Received
from sensorium.llm.image_size import data_url_size

Role = Literal["system", "developer", "user", "assistant", "tool"]
_ROLES = get_args(Role)
SoundFormat = Literal["wav", "mp3", "flac", "ogg"]
SOUND_FORMATS = get_args(SoundFormat)
_SLOWEST_BYTES_PER_S = 1_000
"""A compressed sound of unknown length is counted as if it had 8 kbit/s: hardly any has less."""


class Block(BaseModel):
    """A piece of a message."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, ser_json_inf_nan="strings"
    )


class TextBlock(Block):
    """Text."""

    type: Literal["text"] = "text"
    text: str
    raw: Received | None = None
    """What was received, when there was more in it than is said here; it is sent on instead."""


class ImageBlock(Block):
    """A picture, embedded or by reference."""

    type: Literal["image"] = "image"
    url: str
    """A ``data:`` URL with base64, or an address that the model's server can load."""
    width: int
    """Pixels, for counting tokens; 0 when unknown: then the dearest picture is counted."""
    height: int
    """Pixels; 0 when unknown."""
    detail: Literal["auto", "low", "high"] | None = None
    """Passed on where the endpoint knows it."""
    raw: Received | None = None
    """As in `TextBlock`."""


class AudioBlock(Block):
    """A sound, embedded."""

    type: Literal["audio"] = "audio"
    data: str
    """Base64 of an encoded file."""
    format: SoundFormat = "wav"
    duration_s: float
    """Seconds, for counting tokens."""
    raw: Received | None = None
    """As in `TextBlock`."""


class OtherBlock(Block):
    """A kind of content that is only passed on: a file, a refusal, a trace of reasoning."""

    type: Literal["other"] = "other"
    data: Received
    """As it was received."""


AnyBlock = Annotated[TextBlock | ImageBlock | AudioBlock | OtherBlock, Field(discriminator="type")]


class Message(Block):
    """One turn of a conversation."""

    role: Role
    content: tuple[AnyBlock, ...]
    name: str | None = None
    tool_call_id: str | None = None
    """Which call a tool message answers."""
    tool_calls: tuple[Received, ...] = ()
    """Calls of an assistant message, in the chat-completions form."""
    as_list: bool = False
    """Whether text alone is sent as a list of blocks, too, instead of a plain string."""
    extra: Received = Field(default_factory=dict)
    """Other keys of the wire form, passed on as they are."""

    @property
    def text(self) -> str:
        """Its text blocks, joined by line ends."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    def chat(self) -> dict[str, Any]:
        """The message in the form of the chat-completions API.

        Text alone is a plain string, its blocks joined by line ends; an assistant's message without content
        that calls tools has the content None.
        """
        content: Any
        plain = all(isinstance(block, TextBlock) and block.raw is None for block in self.content)
        if not self.content and self.tool_calls and not self.as_list:
            content = None
        elif plain and not self.as_list:
            content = self.text
        else:
            content = [_chat_block(block) for block in self.content]
        message: dict[str, Any] = {"role": self.role, "content": content}
        if self.name is not None:
            message["name"] = self.name
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        if self.tool_calls:
            message["tool_calls"] = list(self.tool_calls)
        return message | self.extra

    @classmethod
    def from_chat(cls, message: Mapping[str, Any]) -> "Message":
        """Read a message of the chat-completions API; `chat` gives it back with all its keys.

        Sizes of pictures are read from their ``data:`` URL, of sounds from their header.

        Raises:
            ModelError: It has no known role, or its content is neither text, a list of blocks, nor None.
        """
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES:
            raise ModelError(f"A chat message has the role {role!r}. Expected one of: {', '.join(_ROLES)}.")
        blocks: tuple[AnyBlock, ...]
        if content is None:
            blocks = ()
        elif isinstance(content, str):
            blocks = (TextBlock(text=content),)
        elif isinstance(content, list | tuple):
            blocks = tuple(_read_chat_block(block) for block in content)
        else:
            raise ModelError(
                f"The content of a chat message is {type(content).__name__}. "
                "Expected text, a list of blocks or null."
            )
        name, call, calls = (message.get(key) for key in ("name", "tool_call_id", "tool_calls"))
        made = cls(
            role=cast(Role, role),
            content=blocks,
            name=name if isinstance(name, str) else None,
            tool_call_id=call if isinstance(call, str) else None,
            tool_calls=tuple(one for one in calls if isinstance(one, dict))
            if isinstance(calls, list)
            else (),
            as_list=isinstance(content, list | tuple),
        )
        said = made.chat()
        extra = {key: value for key, value in message.items() if key not in said or said[key] != value}
        return made.model_copy(update={"extra": extra}) if extra else made


def text_message(role: Role, text: str) -> Message:
    """A message of text alone."""
    return Message(role=role, content=(TextBlock(text=text),))


def chat(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages in the form of the chat-completions API."""
    return [message.chat() for message in messages]


def _chat_block(block: AnyBlock) -> dict[str, Any]:
    """A block of a message in the form of the chat-completions API."""
    match block:
        case OtherBlock():
            return block.data
        case TextBlock(raw=dict() as raw) | ImageBlock(raw=dict() as raw) | AudioBlock(raw=dict() as raw):
            return raw
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            image: dict[str, Any] = {"url": block.url}
            if block.detail is not None:
                image["detail"] = block.detail
            return {"type": "image_url", "image_url": image}
        case AudioBlock():
            return {"type": "input_audio", "input_audio": {"data": block.data, "format": block.format}}


def _read_chat_block(block: Any) -> AnyBlock:
    """Read a block of the chat-completions API; a kind that is not known is kept as it is.

    Raises:
        ModelError: It is no mapping.
    """
    if not isinstance(block, Mapping):
        raise ModelError(f"A content block is {type(block).__name__}. Expected a mapping with a type.")
    received = dict(block)
    made: AnyBlock
    match received:
        case {"type": "text", "text": str(text)}:
            made = TextBlock(text=text)
        case {"type": "image_url", "image_url": {"url": str(url), **rest}}:
            made = image_block(url, rest.get("detail"))
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(kind)}} if (
            kind in SOUND_FORMATS
        ):
            made = sound_block(data, kind)
        case _:
            return OtherBlock(data=received)
    return made if _chat_block(made) == received else made.model_copy(update={"raw": received})


def image_block(url: str, detail: object = None) -> ImageBlock:
    """A picture behind a URL, its size read from the URL where it is embedded there."""
    width, height = data_url_size(url) or (0, 0)
    known = detail if detail in ("auto", "low", "high") else None
    return ImageBlock.model_validate({"url": url, "width": width, "height": height, "detail": known})


def sound_block(data: str, kind: str) -> AudioBlock:
    """A sound in base64, of one of `SOUND_FORMATS`, with its duration."""
    return AudioBlock.model_validate(
        {"data": data, "format": kind, "duration_s": _sound_duration_s(data, kind)}
    )


def _sound_duration_s(data: str, kind: str) -> float:
    """Seconds of a sound in base64: from the header of a WAV file, else from the size at 8 kbit/s."""
    num_bytes = len(data) * 3 // 4
    if kind == "wav":
        try:
            head = base64.b64decode(data[:64])
            per_second = struct.unpack_from("<I", head, 28)[0] if head[8:12] == b"WAVE" else 0
            if per_second > 0:
                return max(0, num_bytes - 44) / per_second
        except (binascii.Error, ValueError, struct.error):
            pass
    return num_bytes / _SLOWEST_BYTES_PER_S
