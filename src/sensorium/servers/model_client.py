"""A chat model behind a model server, ours or NeMo Gym's, spoken to in the responses dialect."""

import asyncio
import json
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sensorium.core import ModelError
from sensorium.llm.base import Completion, ContextLengthError, RequestRefusedError
from sensorium.llm.messages import Message
from sensorium.llm.replies import error_text, read_completion, says_too_long
from sensorium.rollouts.rows import row_tool
from sensorium.servers.http import HttpClient, Reply, TransportError
from sensorium.servers.items import finished_items

_KNOWN = frozenset(
    {
        "include",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "parallel_tool_calls",
    }
    | {
        "prompt_cache_key",
        "reasoning",
        "service_tier",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "top_logprobs",
    }
    | {"top_p", "truncation", "user"}
)
"""What NeMo Gym's model servers take; everything else goes into ``metadata.extra_body``."""
_AGAIN = frozenset({408, 429, 502, 503, 504})
_NO_ACCESS = frozenset({401, 403})
_LONGEST_PAUSE_S = 30.0


class ServedModel:
    """A `ChatModel` that asks a model server.

    Args:
        http: Connections.
        url: Of the server, without ``/v1``.
        name: To ask for; the server's own by default.
        timeout_s: Of one answer with all tries.
        path: Of the route; with a rollout's prefix where calls are recorded.
        api_key: Of the server, where it is not that of `http`.
    """

    def __init__(
        self,
        http: HttpClient,
        url: str,
        *,
        name: str = "",
        timeout_s: float = 600.0,
        path: str = "/v1/responses",
        api_key: str | None = None,
    ) -> None:
        self._http, self._url, self.model = http, url.rstrip("/") + path, name
        self._timeout_s, self._api_key = timeout_s, api_key

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Completion:
        """Answer a conversation; see `ChatModel.complete`.

        Raises:
            ContextLengthError: The conversation is longer than the model's context.
            ModelError: The message says which address, which status and what it said.
        """
        payload = request_payload(messages, tools, sampling)
        if self.model:
            payload.setdefault("model", self.model)
        until = time.monotonic() + self._timeout_s
        attempt = 0
        while True:
            reply = await self._send(payload, until)
            if reply.status == 200:
                try:
                    return read_completion(reply.text, "responses")
                except ModelError as error:
                    raise ModelError(f"{self._url} answered, but {error}") from error
            said = f"{self._url} refused with status {reply.status}: {error_text(reply.text)}"
            if says_too_long(reply.status, reply.text):
                raise ContextLengthError(said)
            pause = reply.retry_after_s
            if pause is None:
                pause = min(_LONGEST_PAUSE_S, 0.5 * 2.0**attempt) * random.uniform(0.5, 1.0)
            if 400 <= reply.status < 500 and reply.status not in _AGAIN | _NO_ACCESS:
                raise RequestRefusedError(said)
            if reply.status not in _AGAIN or time.monotonic() + pause >= until or attempt >= 8:
                raise ModelError(said)
            attempt += 1
            await asyncio.sleep(pause)

    async def _send(self, payload: Mapping[str, Any], until: float) -> Reply:
        left = max(0.1, until - time.monotonic())
        try:
            return await self._http.post(
                self._url, payload, timeout_s=left, repeat=True, api_key=self._api_key
            )
        except TransportError as error:
            raise ModelError(error.reason) from error


def request_payload(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None, sampling: Mapping[str, Any]
) -> dict[str, Any]:
    """A request in the form that NeMo Gym's strict models take."""
    named = dict(sampling)
    if "max_tokens" in named:
        named["max_output_tokens"] = named.pop("max_tokens")
    payload = {key: value for key, value in named.items() if key in _KNOWN}
    others = {key: value for key, value in named.items() if key not in _KNOWN}
    if others:
        metadata = dict(payload.get("metadata") or {})
        kept = metadata.get("extra_body")
        before = json.loads(kept) if isinstance(kept, str) else {}
        payload["metadata"] = metadata | {"extra_body": json.dumps(before | others)}
    payload["input"] = finished_items(messages)
    if tools:
        payload["tools"] = [row_tool(tool) for tool in tools]
    return payload
