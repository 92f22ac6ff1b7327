"""What an endpoint answered: completions in two dialects, and errors in many."""

import json
import re
from collections.abc import Mapping
from typing import Any

from sensorium.core import ModelError
from sensorium.llm.base import Completion, Usage
from sensorium.llm.messages import Message
from sensorium.llm.responses import from_responses

_SHOWN_CHARS = 400
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (length|window|size)"
    r"|prompt is too long|input is too long|too many (input )?tokens|max_model_len"
    r"|`inputs` tokens \+ `max_new_tokens`",
    re.IGNORECASE,
)
"""How OpenAI, vLLM, llama.cpp, Anthropic, TGI and their like say that a prompt does not fit."""
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}


def shortened(text: str) -> str:
    """A text on one line, cut to what an error message can bear."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}... ({len(line)} characters)"


def without_thoughts(text: str) -> str:
    """An answer without what stands between ``<think>`` marks; one that is not closed goes on to the end."""
    return _THOUGHTS.sub(" ", text)


def error_text(body: str) -> str:
    """What an error body says: the message inside JSON where there is one, else its beginning."""
    try:
        content = json.loads(body)
    except ValueError:
        return shortened(body) or "nothing"
    error: Any = content
    if isinstance(content, dict):
        error = content.get("error") or content.get("detail") or content.get("message") or content
    if isinstance(error, dict):
        code = error.get("code") or error.get("type")
        text = error.get("message") or json.dumps(error, ensure_ascii=False)
        return shortened(f"{text} ({code})" if code else str(text))
    return shortened(error if isinstance(error, str) else json.dumps(error, ensure_ascii=False))


def says_too_long(status: int, body: str) -> bool:
    """Whether an error says that the prompt does not fit the model's context."""
    return status >= 400 and status != 429 and _TOO_LONG.search(body) is not None


def read_completion(body: str, dialect: str) -> Completion:
    """Read a successful answer.

    Args:
        body: The text of the reply.
        dialect: ``chat`` or ``responses``.

    Raises:
        ModelError: It is no JSON, reports an error, or holds no answer.
    """
    try:
        content = json.loads(body)
    except ValueError as error:
        raise ModelError(f"the answer is no JSON ({error}): {shortened(body) or 'nothing'}") from error
    if not isinstance(content, dict):
        raise ModelError(f"the answer is a JSON {type(content).__name__}, expected an object")
    if content.get("error"):
        raise ModelError(f"the answer reports an error: {error_text(body)}")
    return completion_of(content, dialect)


def completion_of(content: Mapping[str, Any], dialect: str) -> Completion:
    """Read a successful answer that was JSON; see `read_completion`.

    Raises:
        ModelError: It holds no answer.
    """
    try:
        return _read_responses(content) if dialect == "responses" else _read_chat(content)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        what, found = f"{type(error).__name__}: {error}", json.dumps(content, default=str)
        raise ModelError(f"the answer holds no completion ({shortened(what)}): {shortened(found)}") from error


def _read_chat(content: Mapping[str, Any]) -> Completion:
    choice = content["choices"][0]
    usage = content.get("usage") or {}
    tokens = (choice.get("logprobs") or {}).get("content")
    read, said = content.get("prompt_token_ids"), choice.get("token_ids")  # some endpoints tell them
    return Completion(
        message=Message.from_chat({"role": "assistant", **choice["message"]}),
        finish_reason=choice.get("finish_reason"),
        usage=Usage(
            prompt_tokens=usage.get("prompt_tokens"), completion_tokens=usage.get("completion_tokens")
        ),
        logprobs=None if tokens is None else tuple(float(token["logprob"]) for token in tokens),
        prompt_token_ids=None if read is None else tuple(read),
        token_ids=None if said is None else tuple(said),
        model=content.get("model"),
    )


def _read_responses(content: Mapping[str, Any]) -> Completion:
    messages = from_responses(content["output"])
    message = Message(
        role="assistant",
        content=tuple(block for one in messages for block in one.content),
        tool_calls=tuple(call for one in messages for call in one.tool_calls),
    )
    reason = "tool_calls" if message.tool_calls else "stop"
    if content.get("status") == "incomplete":
        why = str((content.get("incomplete_details") or {}).get("reason") or "incomplete")
        reason = _INCOMPLETE.get(why, why)
    usage = content.get("usage") or {}
    tokens = [
        float(token["logprob"])
        for item in content["output"]
        if item.get("type") == "message"
        for part in item.get("content") or ()
        for token in part.get("logprobs") or ()
    ]
    return Completion(
        message=message,
        finish_reason=reason,
        usage=Usage(prompt_tokens=usage.get("input_tokens"), completion_tokens=usage.get("output_tokens")),
        logprobs=tuple(tokens) or None,
        model=content.get("model"),
    )
