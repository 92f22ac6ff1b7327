"""A chat model behind a model server, ours or NeMo Gym's, spoken to in the responses dialect."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sensorium.core import ModelError
from sensorium.llm.base import Completion, ContextLengthError, RequestRefusedError
from sensorium.llm.messages import Message
from sensorium.llm.replies import completion_of, error_text, read_completion, says_too_long
from sensorium.llm.retries import MayPassError, ask_repeatedly, retry_after_s
from sensorium.rollouts.rows import row_tool
from sensorium.servers.errors import ServerError, error_body
from sensorium.servers.http import HttpClient, TransportError
from sensorium.servers.items import finished_items
from sensorium.servers.model import ModelAnswers

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
_MAX_RETRIES = 8


class ServedModel:
    """A `ChatModel` that asks a model server.

    Args:
        http: Connections.
        url: Of the server, without ``/v1``.
        name: To ask for; the server's own by default.
        timeout_s: Of one answer with all tries.
        path: Of the route; with a rollout's prefix where calls are recorded.
        api_key: Of the server, where it is not that of `http`.
        answers: Of the server, where it is in this process: they need no request.
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
        answers: ModelAnswers | None = None,
    ) -> None:
        self._http, self._url, self.model = http, url.rstrip("/") + path, name
        self._timeout_s, self._api_key, self._answers = timeout_s, api_key, answers

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
        send = self._send if self._answers is None else self._ask
        return await ask_repeatedly(
            lambda: send(payload), self._url, timeout_s=self._timeout_s, max_retries=_MAX_RETRIES
        )

    async def _ask(self, payload: dict[str, Any]) -> Completion:
        """As `_send`, in this process."""
        assert self._answers is not None
        try:
            answer = await self._answers.respond(payload)
        except ServerError as error:
            said, wait_s = error_body(error.kind, error.message), error.headers.get("Retry-After")
            raise self._refusal(error.status, said.decode(), retry_after_s(wait_s)) from error
        try:
            return completion_of(answer, "responses")
        except ModelError as error:
            raise ModelError(f"{self._url} answered, but {error}") from error

    async def _send(self, payload: dict[str, Any]) -> Completion:
        """Send once; what breaks on the way is sent again by the connection.

        Raises:
            MayPassError: The server asks to come again, or what is behind it failed.
            ModelError: It failed for good.
        """
        try:
            reply = await self._http.post(
                self._url, payload, timeout_s=self._timeout_s, repeat=True, api_key=self._api_key
            )
        except TransportError as error:
            raise ModelError(error.reason) from error
        if reply.status == 200:
            try:
                return read_completion(reply.text, "responses")
            except ModelError as error:
                raise ModelError(f"{self._url} answered, but {error}") from error
        raise self._refusal(reply.status, reply.text, reply.retry_after_s)

    def _refusal(self, status: int, body: str, wait_s: float | None) -> ModelError | MayPassError:
        """What an answer that is an error means."""
        said = f"status {status}, saying: {error_text(body)}"
        if says_too_long(status, body):
            return ContextLengthError(f"{self._url} refused with {said}")
        if status in _AGAIN:
            return MayPassError(said, wait_s)
        is_refused = 400 <= status < 500 and status not in _NO_ACCESS
        return (RequestRefusedError if is_refused else ModelError)(f"{self._url} refused with {said}")


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
