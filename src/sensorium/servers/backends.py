"""Who answers behind a model server: another endpoint, or a `ChatModel` in this process."""

import asyncio
import importlib
import inspect
import secrets
import time
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from sensorium.core import ConfigError, ModelError
from sensorium.llm.base import ChatModel, Completion, ContextLengthError
from sensorium.llm.messages import Message
from sensorium.llm.replies import error_text, says_too_long
from sensorium.servers.config import CustomModelConfig, LocalModelConfig, ModelConfig, OpenAIModelConfig
from sensorium.servers.errors import ServerError
from sensorium.servers.http import HttpClient, Reply, TransportError
from sensorium.servers.security import read_secret

_OWN_KEYS = frozenset({"messages", "tools", "model", "stream", "stream_options"})


@runtime_checkable
class Backend(Protocol):
    """Answers requests of the chat-completions API with answers of it."""

    @property
    def name(self) -> str:
        """Of the model."""
        ...

    async def start(self) -> None:
        """Get ready."""
        ...

    async def chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer.

        Raises:
            ServerError: With the status that the client shall see.
        """
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


class EndpointBackend:
    """Passes requests on as they are, and answers as they come.

    Args:
        config: Which endpoint.
    """

    def __init__(self, config: OpenAIModelConfig) -> None:
        self.name = config.model
        self._config = config
        self._url = config.base_url.rstrip("/")
        self._key = config.model_api_key or read_secret(
            config.model_api_key_env, f"the key of {config.model}"
        )
        self._http = HttpClient(attempts=config.max_retries + 1)
        self._places = asyncio.Semaphore(config.max_concurrency)

    async def start(self) -> None:
        """Nothing: connections open when they are needed."""

    async def chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer; see `Backend.chat`."""
        return await self.send("/chat/completions", body)

    async def send(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Pass a request on.

        Raises:
            ServerError: The endpoint refused, or could not be asked.
        """
        async with self._places:
            try:
                reply = await self._http.post(
                    f"{self._url}{path}",
                    {**body, "model": self.name},
                    timeout_s=self._config.timeout_s,
                    repeat=True,
                    api_key=self._key,
                )
            except TransportError as error:
                status = 504 if error.kind == "transport_timeout" else 502
                raise ServerError(status, error.kind, self._hidden(error.reason)) from error
        if reply.status != 200:
            raise self._refused(reply)
        try:
            answer = reply.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ServerError(
                502, "provider_failed", f"The endpoint answered no JSON: {self._hidden(reply.text[:200])}"
            )
        return answer

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()

    def _refused(self, reply: Reply) -> ServerError:
        said = f"The endpoint refused with status {reply.status}: {self._hidden(error_text(reply.text))}"
        if says_too_long(reply.status, reply.text):
            return ServerError(400, "context_length_exceeded", said)
        if reply.status == 429:
            return ServerError(
                429, "rate_limit", said, {"Retry-After": reply.headers.get("Retry-After", "1")}
            )
        if 400 <= reply.status < 500:
            return ServerError(reply.status, "provider_refused", said)
        headers = {"Retry-After": reply.headers["Retry-After"]} if "Retry-After" in reply.headers else None
        return ServerError(502, "provider_failed", said, headers)

    def _hidden(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


class ModelBackend:
    """Asks a `ChatModel` in this process.

    Args:
        make: Makes it; slow where weights are loaded, so it waits for `start`.
        name: To serve it under; its own by default.
    """

    def __init__(self, make: Any, name: str | None = None) -> None:
        self._make, self._name = make, name
        self._model: ChatModel | None = None

    @property
    def name(self) -> str:
        """Of the model."""
        return self._name or (self._model.model if self._model is not None else "model")

    async def start(self) -> None:
        """Load it."""
        if self._model is None:
            made = await asyncio.to_thread(self._make)
            self._model = await made if inspect.isawaitable(made) else made

    async def chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer; see `Backend.chat`."""
        await self.start()
        assert self._model is not None
        try:
            messages = [Message.from_chat(one) for one in body["messages"]]
        except (ModelError, ValueError, TypeError, AttributeError) as error:
            raise ServerError(
                400, "invalid_request", f"The messages cannot be read: {error}"[:500]
            ) from error
        sampling = {key: value for key, value in body.items() if key not in _OWN_KEYS and value is not None}
        try:
            completion = await self._model.complete(messages, body.get("tools") or None, **sampling)
        except ContextLengthError as error:
            raise ServerError(400, "context_length_exceeded", str(error)) from error
        except (ModelError, ConfigError) as error:
            raise _of_model(error) from error
        except (TypeError, ValueError) as error:
            raise ServerError(400, "invalid_request", f"The request does not fit: {error}"[:500]) from error
        return completion_body(completion, self.name)

    async def close(self) -> None:
        """Close it, where it can be closed."""
        closing = getattr(self._model, "close", None)
        if closing is not None:
            done = closing()
            if inspect.isawaitable(done):
                await done


def build_backend(config: ModelConfig) -> Backend:
    """The backend that a config asks for.

    Raises:
        ConfigError: A key or a function is missing.
    """
    match config:
        case OpenAIModelConfig():
            return EndpointBackend(config)
        case LocalModelConfig():
            return ModelBackend(lambda: _load_local(config), config.settings.get("name") or config.model)
        case CustomModelConfig():
            module, _, function = config.factory.partition(":")
            try:
                factory = getattr(importlib.import_module(module), function)
            except (ImportError, AttributeError) as error:
                raise ConfigError(f"factory: {config.factory} cannot be loaded: {error}.") from error
            return ModelBackend(lambda: factory(**config.settings), config.model)


def completion_body(completion: Completion, name: str) -> dict[str, Any]:
    """A completion in the form of the chat-completions API, with everything that is known of its tokens."""
    message = completion.message.chat()
    usage = completion.usage
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "finish_reason": completion.finish_reason or ("tool_calls" if message.get("tool_calls") else "stop"),
        "logprobs": None,
    }
    ids = completion.token_ids
    if completion.logprobs is not None:
        tokens = [f"token_id:{id}" for id in ids] if ids is not None else [""] * len(completion.logprobs)
        choice["logprobs"] = {
            "content": [
                {"token": token, "logprob": value, "bytes": None, "top_logprobs": []}
                for token, value in zip(tokens, completion.logprobs, strict=False)
            ]
        }
    if ids is not None:
        choice["token_ids"] = list(ids)
    read, written = usage.prompt_tokens or 0, usage.completion_tokens or 0
    body: dict[str, Any] = {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": completion.model or name,
        "choices": [choice],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }
    if completion.prompt_token_ids is not None:
        body["prompt_token_ids"] = list(completion.prompt_token_ids)
    return body


def _load_local(config: LocalModelConfig) -> ChatModel:
    from sensorium.core import parse_config
    from sensorium.features import find_model
    from sensorium.llm.local import chat
    from sensorium.llm.local import config as settings

    made = parse_config(settings.LocalModelConfig, {"model": config.model, **config.settings})
    model: ChatModel = chat.LocalChatModel.from_config(made, find_model)
    return model


def _of_model(error: Exception) -> ServerError:
    """What the client shall see of an error of a model in this process."""
    match type(error).__name__:
        case "RequestError":
            return ServerError(400, "invalid_request", str(error))
        case "QueueFullError":
            return ServerError(429, "rate_limit", str(error), {"Retry-After": "1"})
        case "ModelClosedError":
            return ServerError(503, "shutdown", str(error), {"Retry-After": "5"})
    if isinstance(error, ConfigError):
        return ServerError(422, "invalid_request", str(error))
    return ServerError(500, "model_failed", str(error))  # no gateway's error: the same again fails again
