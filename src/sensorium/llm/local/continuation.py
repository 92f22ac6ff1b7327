"""Whether a chat template, when a conversation goes on, continues what it wrote before.

Some templates write earlier messages anew: they leave out thoughts of earlier answers, or show the date or a
reminder beside the last message only. The model then reads another text than the one that it answered.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sensorium.llm.messages import Message, TextBlock, text_message

_SHOWN_CHARS = 80
_CALL = {"id": "call_probe", "type": "function", "function": {"name": "probe", "arguments": "{}"}}


class Rewritten(NamedTuple):
    """The first message that is written anew, and how."""

    number: int
    """In the conversation, from 0."""
    role: str
    before: str
    """As it was written while it was among the last messages, or as the model answered."""
    after: str
    """As it is written once the conversation has gone on."""

    def __str__(self) -> str:
        return f"message {self.number} ({self.role}): {self.before!r} becomes {self.after!r}"


def rewritten(write: Callable[[Sequence[Message]], str], *, with_tools: bool) -> Rewritten | None:
    """The first message of a conversation that a template writes anew as the conversation goes on.

    Args:
        write: Writes a prompt, up to and with the mark that begins the answer.
        with_tools: Whether answers may be calls, with results of tools after them.

    Raises:
        RequestError: The template refuses such a conversation.
    """
    messages = _conversation(with_tools=with_tools)
    whole = write(messages)
    for number, message in enumerate(messages):
        if message.role != "assistant":
            continue
        prompt = write(messages[:number])
        said = prompt + message.text  # a call itself is written in the template's own form
        if not whole.startswith(said):
            return _told(messages[: number + 1], said, whole)
    return None


def _conversation(*, with_tools: bool) -> list[Message]:
    """Answers with and without thoughts, calls and results; every text stands once."""
    thought = "<think>\nFirst thought.\n</think>\n\nFirst answer."
    turns = [
        text_message("system", "The system prompt."),
        text_message("user", "The first question."),
        text_message("assistant", thought),
        text_message("user", "The second question."),
    ]
    if with_tools:
        called = (TextBlock(text="Second answer."),)
        turns += [
            Message(role="assistant", content=called, tool_calls=(_CALL,)),
            Message(role="tool", content=(TextBlock(text="The result."),), tool_call_id="call_probe"),
        ]
    else:
        turns += [text_message("assistant", "Second answer.")]
        turns += [text_message("user", "The third question.")]
    return [*turns, text_message("assistant", "Third answer."), text_message("user", "The last question.")]


def _told(messages: Sequence[Message], said: str, whole: str) -> Rewritten:
    """Where two texts part: the last message that begins before that place."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(said, whole, strict=False))
    shared = sum(1 for _ in pairs)
    begins = [said.find(message.text) for message in messages]
    number = max((n for n, begin in enumerate(begins) if 0 <= begin <= shared), default=0)
    begin = max(0, min(begins[number], shared))
    return Rewritten(
        number=number,
        role=messages[number].role,
        before=said[begin:][:_SHOWN_CHARS],
        after=whole[begin:][:_SHOWN_CHARS],
    )
