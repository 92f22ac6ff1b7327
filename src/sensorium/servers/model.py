"""The model server: both dialects of OpenAI's API over any endpoint or a model in this process."""

import time
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from sensorium.servers.apps import add_get, add_post, build_app
from sensorium.servers.backends import Backend, EndpointBackend, build_backend
from sensorium.servers.config import ModelConfig, OpenAIModelConfig
from sensorium.servers.dialects import chat_request, response_of_chat
from sensorium.servers.errors import ServerError
from sensorium.servers.replies import json_response
from sensorium.servers.runtime import Runtime
from sensorium.servers.security import build_access
from sensorium.servers.streams import chat_stream, response_stream
from sensorium.servers.wire import read_object

_CHAT = {
    "type": "object",
    "description": "a request of the chat-completions API",
    "properties": {"messages": {"type": "array", "items": {"type": "object", "additionalProperties": True}}},
    "required": ["messages"],
    "additionalProperties": True,
}
_RESPONSES = {
    "type": "object",
    "description": "a request of the responses API",
    "properties": {"input": {}},
    "required": ["input"],
    "additionalProperties": True,
}


def build_model_app(
    config: ModelConfig,
    name: str,
    runtime: Runtime | None = None,
    backend: Backend | None = None,
) -> FastAPI:
    """The app of a model server.

    Args:
        config: Its settings.
        name: Of the instance.
        runtime: What the servers of a process share.
        backend: Who answers; by default what the config asks for.

    Raises:
        ConfigError: The address needs a key, or a key is missing.
    """
    backend = backend or build_backend(config)
    access = build_access(config, name)
    app = build_app(f"model {name}", config, access, starts=[backend.start], stops=[backend.close])
    app.state.backend = backend
    answers = ModelAnswers(backend, config)
    if runtime is not None:
        runtime.models[name] = answers
    routes = _Routes(answers)
    add_post(app, "/v1/chat/completions", routes.chat, _CHAT)
    add_post(app, "/v1/responses", routes.respond, _RESPONSES)
    add_get(app, "/v1/models", routes.models)
    return app


class ModelAnswers:
    """Answers of a model in both dialects, whoever asks.

    Args:
        backend: Answers.
        config: Of the server.
    """

    def __init__(self, backend: Backend, config: ModelConfig) -> None:
        self.backend, self._token_ids = backend, config.return_token_id_information
        self._speaks_responses = isinstance(config, OpenAIModelConfig) and config.dialect == "responses"

    async def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of the chat-completions API.

        Raises:
            ServerError: With the status that the client shall see.
        """
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise ServerError(400, "invalid_request", "The request has no messages.")
        if not all(isinstance(one, dict) for one in body["messages"]):
            raise ServerError(400, "invalid_request", "A message is no JSON object.")
        if self._speaks_responses:
            said = "This endpoint speaks the responses dialect alone; use /v1/responses."
            raise ServerError(400, "unsupported", said)
        return await self.backend.chat(body)

    async def respond(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of the responses API.

        Raises:
            ServerError: With the status that the client shall see.
        """
        if not isinstance(params.get("input"), str | list):
            raise ServerError(400, "invalid_request", "The request has no input.")
        if self._speaks_responses and isinstance(self.backend, EndpointBackend):
            sent = {key: value for key, value in params.items() if key not in ("stream", "stream_options")}
            return await self.backend.send("/responses", sent)
        body = chat_request(params, token_ids=self._token_ids)
        return response_of_chat(await self.backend.chat(body), params, token_ids=self._token_ids)


class _Routes:
    def __init__(self, answers: ModelAnswers) -> None:
        self._answers = answers
        self._began = int(time.time())

    async def chat(self, request: Request) -> Response:
        """Answer in the dialect of chat completions."""
        body = await read_object(request)
        stream, options = body.pop("stream", None), body.pop("stream_options", None)
        answer = await self._answers.chat(body)
        if stream:
            usage = isinstance(options, dict) and bool(options.get("include_usage"))
            return chat_stream(answer, usage=usage)
        return json_response(answer)

    async def respond(self, request: Request) -> Response:
        """Answer in the dialect of responses."""
        params = await read_object(request)
        response = await self._answers.respond(params)
        return response_stream(response) if params.get("stream") else json_response(response)

    async def models(self) -> Response:
        """The model that answers."""
        name = self._answers.backend.name
        model = {"id": name, "object": "model", "created": self._began, "owned_by": "sensorium"}
        return json_response({"object": "list", "data": [model]})
