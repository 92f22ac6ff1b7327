"""Between the two dialects of models: a request of the responses API as one of chat completions, and back."""

import json
import re
from collections.abc import Mapping
from typing import Any

from sensorium.core import ModelError
from sensorium.llm.messages import Message, chat
from sensorium.llm.replies import read_completion
from sensorium.servers.errors import ServerError
from sensorium.servers.foreign import chat_tools, check_prompt
from sensorium.servers.items import TOKEN_KEYS, finished_items, response_object

_UNSUPPORTED = ("previous_response_id", "conversation", "prompt", "background")
_NOT_PASSED = frozenset(
    {
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "max_output_tokens",
        "metadata",
        "model",
        "stream",
        "reasoning",
    }
    | {
        "text",
        "top_logprobs",
        "store",
        "include",
        "truncation",
        "max_tool_calls",
        "stream_options",
        "moderation",
    }
    | {"context_management", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", *_UNSUPPORTED}
)
_TOKEN = re.compile(r"token_id:(\d+)")


def chat_request(params: Mapping[str, Any], *, token_ids: bool = False) -> dict[str, Any]:
    """A request of the responses API as one of chat completions.

    Args:
        params: The request; what is not known of it is passed on under its own name.
        token_ids: Ask for ids and log-probabilities of tokens.

    Raises:
        ServerError: It asks for what cannot be done, or cannot be read.
    """
    for name in _UNSUPPORTED:
        if params.get(name) not in (None, False):
            raise ServerError(400, "unsupported", f"{name} is not supported: send the whole conversation.")
    messages = check_prompt(params, status=400)
    if not messages:
        raise ServerError(400, "invalid_request", "The input is empty.")
    body = {k: v for k, v in params.items() if k not in _NOT_PASSED and v is not None}
    body["messages"] = [_developer_as_system(one) for one in chat(messages)]
    tools = chat_tools(params.get("tools"))
    if tools:
        body["tools"] = tools
        if params.get("tool_choice") is not None:
            body["tool_choice"] = _choice(params["tool_choice"])
    else:
        body.pop("parallel_tool_calls", None)
    if params.get("max_output_tokens") is not None:
        body["max_tokens"] = params["max_output_tokens"]
    reasoning, text = params.get("reasoning"), params.get("text")
    if isinstance(reasoning, Mapping) and reasoning.get("effort"):
        body["reasoning_effort"] = reasoning["effort"]
    if isinstance(text, Mapping) and (form := _response_format(text.get("format"))):
        body["response_format"] = form
    if params.get("top_logprobs"):
        body |= {"logprobs": True, "top_logprobs": params["top_logprobs"]}
    body |= _extra_body(params)
    if token_ids:
        body |= {"logprobs": True, "return_token_ids": True}
    return body


def response_of_chat(
    answer: Mapping[str, Any], params: Mapping[str, Any], *, token_ids: bool = False
) -> dict[str, Any]:
    """An answer of chat completions as one of the responses API.

    Raises:
        ServerError: It is none.
    """
    try:
        choice = answer["choices"][0]
        completion = read_completion(json.dumps(answer), "chat")
    except (ModelError, KeyError, IndexError, TypeError) as error:
        raise ServerError(
            502, "provider_failed", f"The endpoint answered what is no completion: {error}"[:500]
        ) from error
    items = _items(completion.message)
    evidence = _token_evidence(answer, choice) if token_ids else {}
    if evidence and items:
        items[-1] |= evidence
    usage = answer.get("usage")
    return response_object(
        items,
        model=str(answer.get("model") or ""),
        tools=chat_tools(params.get("tools")),
        finish_reason=completion.finish_reason,
        usage=_usage(usage) if isinstance(usage, Mapping) else None,
        metadata=params["metadata"] if isinstance(params.get("metadata"), Mapping) else None,
    )


def _items(message: Message) -> list[dict[str, Any]]:
    items = finished_items([message])
    thoughts = message.extra.get("reasoning_content") or message.extra.get("reasoning")
    if isinstance(thoughts, str) and thoughts:
        summary = [{"type": "summary_text", "text": thoughts}]
        items = [{"type": "reasoning", "id": "rs_0", "summary": summary}, *items]
    return items


def _token_evidence(answer: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    """Ids and log-probabilities of the tokens, all or none."""
    content = (choice.get("logprobs") or {}).get("content") or []
    ids = choice.get("token_ids")
    if not ids:
        found = [_TOKEN.fullmatch(str(token.get("token"))) for token in content]
        ids = [int(one[1]) for one in found if one is not None]
    prompt = answer.get("prompt_token_ids") or choice.get("prompt_token_ids")
    probabilities = [token["logprob"] for token in content]
    if not prompt or not ids or len(ids) != len(probabilities):
        return {}
    return dict(zip(TOKEN_KEYS, (list(prompt), list(ids), probabilities), strict=True))


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    read, written = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": read + written,
    }


def _developer_as_system(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "role": "system"} if message["role"] == "developer" else message


def _choice(choice: Any) -> Any:
    if isinstance(choice, Mapping) and choice.get("type") == "function" and "name" in choice:
        return {"type": "function", "function": {"name": choice["name"]}}
    return choice


def _response_format(form: Any) -> dict[str, Any] | None:
    if not isinstance(form, Mapping) or form.get("type") in (None, "text"):
        return None
    if form["type"] == "json_schema":
        inner = {key: value for key, value in form.items() if key != "type"}
        return {"type": "json_schema", "json_schema": inner}
    return dict(form)


def _extra_body(params: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the engine that travel as JSON text in ``metadata.extra_body``."""
    metadata = params.get("metadata")
    text = metadata.get("extra_body") if isinstance(metadata, Mapping) else None
    if text is None:
        return {}
    try:
        body = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise ServerError(400, "invalid_request", "metadata.extra_body is no JSON object in text.")
    return {key: value for key, value in body.items() if key not in ("messages", "tools", "model", "stream")}
