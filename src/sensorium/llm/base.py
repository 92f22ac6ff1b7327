"""What the rest of the project asks of a language model: to count tokens, and to answer."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sensorium.llm.messages import AudioBlock, ImageBlock, Message, TextBlock


@runtime_checkable
class TokenCounter(Protocol):
    """Counts tokens as one model does."""

    @property
    def identity(self) -> str:
        """Name and hash: counters with the same identity count alike."""
        ...

    @property
    def message_overhead(self) -> int:
        """Tokens a message costs beside its content (role, marks of beginning and end)."""
        ...

    def text(self, text: str) -> int:
        """Tokens of a text."""
        ...

    def image(self, width: int, height: int) -> int:
        """Tokens of a picture of so many pixels."""
        ...

    def audio(self, duration_s: float) -> int:
        """Tokens of a sound of so many seconds."""
        ...


def count_message(counter: TokenCounter, message: Message) -> int:
    """Tokens of one message, overhead included."""
    total = counter.message_overhead
    for block in message.content:
        match block:
            case TextBlock(text=text):
                total += counter.text(text)
            case ImageBlock(width=width, height=height):
                total += counter.image(width, height)
            case AudioBlock(duration_s=duration_s):
                total += counter.audio(duration_s)
    return total


def count_messages(counter: TokenCounter, messages: Sequence[Message]) -> int:
    """Tokens of a whole prompt."""
    return sum(count_message(counter, message) for message in messages)
