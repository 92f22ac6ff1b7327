"""A chat model behind an OpenAI-compatible endpoint, over HTTP."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakKeyDictionary

from sensorium.core import ConfigError, ModelError, require
from sensorium.llm.base import Completion, ContextLengthError, RequestRefusedError
from sensorium.llm.config import ChatModelConfig
from sensorium.llm.messages import Message, chat
from sensorium.llm.replies import error_text, read_completion, says_too_long
from sensorium.llm.responses import responses, responses_tool
from sensorium.llm.retries import MayPassError, ask_repeatedly, retry_after_s

if TYPE_CHECKING:
    import aiohttp

_REPEATED = frozenset({408, 409, 429})
_MAX_REPLY_BYTES = 64 * 1024 * 1024


class OpenAIChatModel:
    """Asks a chat model behind an endpoint that speaks OpenAI's protocol (vLLM, llama.cpp, Ollama, OpenAI).

    In ``async with`` connections are kept between calls; outside of it every call opens and closes its own.
    One model may be used from several event loops.

    Requests are repeated after a lost connection and after status 408, 409, 429 and 5xx, with exponential
    pauses or the pause that ``Retry-After`` asks for; never once a successful answer has begun.

    Args:
        base_url: Up to and with the version, e.g. ``http://localhost:8000/v1``.
        model: Name under which the endpoint serves it.
        api_key: Sent as bearer token; appears in no message and no repr.
        timeout_s: Of one call with all its repetitions.
        max_retries: Repetitions.
        max_concurrency: Requests under way at the same time, per event loop.
        dialect: ``chat`` speaks ``/chat/completions``, ``responses`` speaks ``/responses``.
        backoff_s: First pause; each further one is twice as long, up to 30 s, with random jitter.

    Raises:
        ConfigError: The address is not one of HTTP.
        MissingDependencyError: ``aiohttp`` is not installed.

    Example:
        >>> model = OpenAIChatModel("http://localhost:8000/v1", "qwen2-vl")
        >>> answer = model.complete_sync([text_message("user", "Hello")])  # doctest: +SKIP
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        timeout_s: float = 120.0,
        max_retries: int = 3,
        max_concurrency: int = 16,
        dialect: Literal["chat", "responses"] = "chat",
        backoff_s: float = 0.5,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"{base_url!r} is no address of an endpoint. Expected e.g. http://localhost:8000/v1."
            )
        self._aiohttp: ModuleType = require("aiohttp", extra="observe", purpose="asking a chat model")
        path = parts.path.rstrip("/") + ("/responses" if dialect == "responses" else "/chat/completions")
        self._url = urlunsplit(parts._replace(path=path, fragment=""))
        self.address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
        """Where requests go, without user names, keys and query."""
        self.model = model
        self.dialect = dialect
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._max_concurrency = max_concurrency
        self._backoff_s = backoff_s
        self._session: aiohttp.ClientSession | None = None
        self._session_loop: asyncio.AbstractEventLoop | None = None
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @classmethod
    def from_config(cls, config: ChatModelConfig) -> "OpenAIChatModel":
        """Make the client that `config` describes; the key is read from its environment variable.

        Raises:
            ConfigError: The environment variable is not set.
            MissingDependencyError: ``aiohttp`` is not installed.
        """
        key = None
        if config.api_key_env is not None and not (key := os.environ.get(config.api_key_env)):
            raise ConfigError(
                f"The key of {config.model} is read from the environment variable {config.api_key_env}, "
                "which is not set. Set it, or leave api_key_env out for an endpoint without keys."
            )
        return cls(
            config.base_url,
            config.model,
            api_key=key,
            timeout_s=config.timeout_s,
            max_retries=config.max_retries,
            max_concurrency=config.max_concurrency,
            dialect=config.dialect,
        )

    def __repr__(self) -> str:
        return f"OpenAIChatModel({self.address!r}, {self.model!r})"

    async def __aenter__(self) -> Self:
        await self.close()
        self._session, self._session_loop = self._new_session(), asyncio.get_running_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close kept connections; may be called again."""
        session, self._session, self._session_loop = self._session, None, None
        if session is not None:
            await session.close()

    def complete_sync(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Completion:
        """As `complete`, for code without an event loop.

        Raises:
            ModelError: As `complete`; also when an event loop runs in this thread, where it would block.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.complete(messages, tools, **sampling))
        raise ModelError(
            "complete_sync was called inside an event loop. Use `await model.complete(...)` there."
        )

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Completion:
        """Answer a conversation; see `ChatModel.complete`.

        Raises:
            ContextLengthError: The conversation is longer than the model's context.
            ModelError: The message says which address, which status and what the body said.
        """
        payload = self._payload(messages, tools, sampling)
        if self._session is not None and self._session_loop is asyncio.get_running_loop():
            return await self._answer(self._session, payload)
        async with self._new_session() as session:
            return await self._answer(session, payload)

    async def _answer(self, session: "aiohttp.ClientSession", payload: dict[str, Any]) -> Completion:
        return await ask_repeatedly(
            lambda: self._send(session, payload),
            self.address,
            timeout_s=self._timeout_s,
            max_retries=self._max_retries,
            backoff_s=self._backoff_s,
            slot=self._slot(),
        )

    async def _send(self, session: "aiohttp.ClientSession", payload: dict[str, Any]) -> Completion:
        """Send once.

        Raises:
            MayPassError: It failed before an answer began, in a way that may pass.
            ModelError: It failed for good.
        """
        begun = False
        try:
            async with session.post(self._url, json=payload, allow_redirects=False) as response:
                begun = True
                body = await self._body(response)
                status, asked = response.status, response.headers.get("Retry-After")
        except (self._aiohttp.ClientError, ValueError) as error:
            what = self._hidden(f"{type(error).__name__}: {error}")
            if begun:
                raise ModelError(f"{self.address} broke off in the middle of its answer ({what}).") from error
            if not isinstance(error, self._aiohttp.ClientConnectionError):
                raise ModelError(f"{self.address} could not be asked ({what}).") from error
            raise MayPassError(f"no connection ({what})") from error
        if status == HTTPStatus.OK:
            try:
                return read_completion(body, self.dialect)
            except ModelError as error:
                raise ModelError(self._hidden(f"{self.address} answered, but {error}")) from error
        said = self._hidden(f"status {_status_name(status)}, saying: {error_text(body)}")
        if says_too_long(status, body):
            raise ContextLengthError(f"The prompt does not fit {self.model} at {self.address}: {said}")
        if status in _REPEATED or status >= 500:
            raise MayPassError(said, retry_after_s(asked))
        hint = " Is the API key right?" if status in (401, 403) else ""
        kind = ModelError if hint else RequestRefusedError
        raise kind(f"{self.address} refused with {said}.{hint}")

    async def _body(self, response: "aiohttp.ClientResponse") -> str:
        data = bytearray()
        async for piece in response.content.iter_chunked(1 << 16):
            data += piece
            if len(data) > _MAX_REPLY_BYTES:
                raise ModelError(
                    f"{self.address} sent over {_MAX_REPLY_BYTES:,} bytes; no completion is so long."
                )
        return data.decode("utf-8", "replace")

    def _payload(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None,
        sampling: Mapping[str, Any],
    ) -> dict[str, Any]:
        if sampling.get("stream"):
            raise ModelError("Answers are not streamed here; leave `stream` out.")
        payload: dict[str, Any] = {"model": self.model, **sampling}
        if self.dialect == "chat":
            payload["messages"] = chat(messages)
            if tools:
                payload["tools"] = [dict(tool) for tool in tools]
            return payload
        payload["input"] = responses(messages)
        if tools:
            payload["tools"] = [responses_tool(tool) for tool in tools]
        if "max_tokens" in payload:
            payload["max_output_tokens"] = payload.pop("max_tokens")
        return payload

    def _new_session(self) -> "aiohttp.ClientSession":
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        made: aiohttp.ClientSession = self._aiohttp.ClientSession(
            headers=headers,
            timeout=self._aiohttp.ClientTimeout(total=None),  # the call as a whole has a limit
            cookie_jar=self._aiohttp.DummyCookieJar(),
            connector=self._aiohttp.TCPConnector(limit=0),  # requests are limited, so connections are, too
        )
        return made

    def _slot(self) -> asyncio.Semaphore:
        return self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._max_concurrency))

    def _hidden(self, text: str) -> str:
        """A text without the key, in case a server repeats what it was sent."""
        return text.replace(self._api_key, "***") if self._api_key else text


def _status_name(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
