"""Messages as a chat model reads them: text, pictures and sounds, apart from any vendor's wire format."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Block(BaseModel):
    """A piece of a message."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class TextBlock(Block):
    """Text."""

    type: Literal["text"] = "text"
    text: str


class ImageBlock(Block):
    """A picture, embedded or by reference."""

    type: Literal["image"] = "image"
    url: str
    """A ``data:`` URL with base64, or an address that the model's server can load."""
    width: int
    """Pixels, for counting tokens."""
    height: int
    """Pixels."""
    detail: Literal["auto", "low", "high"] | None = None
    """Passed on where the endpoint knows it."""


class AudioBlock(Block):
    """A sound, embedded."""

    type: Literal["audio"] = "audio"
    data: str
    """Base64 of an encoded file."""
    format: Literal["wav", "mp3", "flac", "ogg"] = "wav"
    duration_s: float
    """Seconds, for counting tokens."""


AnyBlock = Annotated[TextBlock | ImageBlock | AudioBlock, Field(discriminator="type")]


class Message(Block):
    """One turn of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: tuple[AnyBlock, ...]
    name: str | None = None
    tool_call_id: str | None = None
    """Which call a tool message answers."""
    tool_calls: tuple[dict[str, Any], ...] = ()
    """Calls of an assistant message, in the chat-completions form."""

    @property
    def text(self) -> str:
        """Its text blocks, joined by line ends."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    def chat(self) -> dict[str, Any]:
        """The message in the form of the chat-completions API; text alone is a plain string."""
        blocks = [_chat_block(block) for block in self.content]
        plain = all(isinstance(block, TextBlock) for block in self.content)
        message: dict[str, Any] = {"role": self.role, "content": self.text if plain else blocks}
        if self.name is not None:
            message["name"] = self.name
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        if self.tool_calls:
            message["tool_calls"] = list(self.tool_calls)
        return message


def text_message(role: Literal["system", "developer", "user", "assistant", "tool"], text: str) -> Message:
    """A message of text alone."""
    return Message(role=role, content=(TextBlock(text=text),))


def chat(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages in the form of the chat-completions API."""
    return [message.chat() for message in messages]


def _chat_block(block: TextBlock | ImageBlock | AudioBlock) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            image: dict[str, Any] = {"url": block.url}
            if block.detail is not None:
                image["detail"] = block.detail
            return {"type": "image_url", "image_url": image}
        case AudioBlock():
            return {"type": "input_audio", "input_audio": {"data": block.data, "format": block.format}}
