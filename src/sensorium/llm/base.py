"""What the rest of the project asks of a language model: to count tokens, and to answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from sensorium.core import ModelError
from sensorium.llm.messages import AudioBlock, ImageBlock, Message, OtherBlock, TextBlock


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
    """Tokens of one message: overhead, name, content and calls of tools."""
    total = counter.message_overhead
    if message.name is not None:
        total += counter.text(message.name)
    for call in message.tool_calls:
        total += counter.text(json.dumps(call, ensure_ascii=False))
    if all(isinstance(block, TextBlock) for block in message.content):
        return total + counter.text(message.text)  # it is sent as one text
    for block in message.content:
        match block:
            case TextBlock(text=text):
                total += counter.text(text)
            case ImageBlock(width=width, height=height):
                total += counter.image(width, height)
            case AudioBlock(duration_s=duration_s):
                total += counter.audio(duration_s)
            case OtherBlock(data=data):
                total += counter.text(json.dumps(data, ensure_ascii=False))
    return total


def count_messages(counter: TokenCounter, messages: Sequence[Message]) -> int:
    """Tokens of a whole prompt."""
    return sum(count_message(counter, message) for message in messages)


class ContextLengthError(ModelError):
    """The prompt is longer than the model's context; sending it again is of no use, shortening it is."""


class RequestRefusedError(ModelError):
    """The endpoint says that the request itself is wrong; sending it again is of no use."""


class Usage(BaseModel):
    """Tokens that the endpoint counted; None where it did not say."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Completion(BaseModel):
    """An answer of a chat model."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    message: Message
    finish_reason: str | None = None
    """``stop``, ``length`` (cut off), ``tool_calls``, ``content_filter`` or what else the endpoint says."""
    usage: Usage = Usage()
    logprobs: tuple[float, ...] | None = None
    """Natural logarithm of the probability of each token of the answer, when they were asked for."""
    prompt_token_ids: tuple[int, ...] | None = None
    """Tokens that the model read, when they were asked for and the model tells them."""
    token_ids: tuple[int, ...] | None = None
    """Tokens of the answer exactly as sampled, a mark of the end included; as many as `logprobs`."""
    tempered_logprobs: tuple[float, ...] | None = None
    """As `logprobs`, but at the temperature of the sampling."""
    sampled_logprobs: tuple[float, ...] | None = None
    """As `logprobs`, but of the distribution that the tokens were drawn from: after temperature, top_k, top_p
    and constraints; 0 where there was no choice."""
    weights_version: int | None = None
    """Which weights sampled the answer, where they change: an answer is all of one version."""
    model: str | None = None
    """Name under which the endpoint answered."""


@runtime_checkable
class ChatModel(Protocol):
    """Answers messages."""

    @property
    def model(self) -> str:
        """Name of the model."""
        ...

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Completion:
        """Answer a conversation.

        Args:
            messages: The conversation, oldest first.
            tools: Tools that may be called, in the chat-completions form.
            **sampling: Passed to the endpoint by its own names: ``temperature``, ``max_tokens``, ``seed``...

        Raises:
            ContextLengthError: The conversation is longer than the model's context.
            ModelError: The endpoint cannot be reached, refused, took too long or answered nonsense.
        """
        ...
