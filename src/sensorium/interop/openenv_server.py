"""Environments of ours for OpenEnv's clients (`GenericEnvClient`), over its WebSocket and over HTTP.

An action is what an agent does: ``{"text": ..., "calls": [{"name": ..., "arguments": {...}}]}``, or one call
in OpenEnv's own form ``{"tool_name": ..., "arguments": {...}}``. An observation has ``text`` for any reader,
``content`` with pictures (parts of the chat-completions API), ``results`` of the calls, and ``tools`` after a
reset. OpenEnv has no truncation: it is ``done`` with ``truncated`` in the metadata.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import WSMsgType, web
from pydantic import BaseModel, Field, ValidationError

from sensorium.envs.episode import EpisodeError
from sensorium.interop.openenv_wire import (
    ActionBody,
    ObservationBody,
    ResetBody,
    StateBody,
    error_data,
    opened,
    read_message,
    state_of,
    stepped,
)
from sensorium.interop.served import Play, ServedConfig, ServedTasks
from sensorium.servers.errors import ServerError, error_response
from sensorium.servers.guard import Buckets, check_key, check_rate, check_site, read_json
from sensorium.servers.replies import json_bytes
from sensorium.servers.runtime import Runtime
from sensorium.servers.security import Access, build_access
from sensorium.servers.sessions import Hosted

__all__ = ["OpenEnvServerConfig", "build_openenv_app", "serve_openenv"]

_TASKS = web.AppKey("tasks", ServedTasks)
_MB = 1024 * 1024
_OPEN_PATHS = ("/health",)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OpenEnvServerConfig(ServedConfig):
    """A server for OpenEnv's clients."""

    port: int = Field(default=8000, ge=0, le=65535)
    """OpenEnv's own is 8000."""


def build_openenv_app(config: OpenEnvServerConfig, runtime: Runtime | None = None) -> web.Application:
    """The app, for `aiohttp.web`; clients send the key in ``X-API-Key`` or as bearer token.

    Raises:
        ConfigError: The environment does not exist, its settings do not fit, or the address needs a key.
    """
    served = ServedTasks(config, runtime)
    access = build_access(config, config.environment)
    routes = _Routes(served)
    app = web.Application(
        middlewares=[_guard(access, config)], client_max_size=int(config.limits.max_body_mb * _MB)
    )
    app[_TASKS] = served
    app.add_routes(
        [
            web.get("/health", routes.health),
            web.get("/schema", routes.schema),
            web.get("/metadata", routes.metadata),
            web.get("/state", routes.state),
            web.post("/reset", routes.reset),
            web.post("/step", routes.step),
            web.post("/close", routes.close),
            web.get("/ws", routes.socket),
        ]
    )

    async def start(app: web.Application) -> None:
        await served.table.start()

    async def stop(app: web.Application) -> None:
        await routes.hang_up()
        await served.table.shut()

    app.on_startup.append(start)
    app.on_shutdown.append(stop)
    return app


def serve_openenv(config: OpenEnvServerConfig) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    web.run_app(build_openenv_app(config), host=config.host, port=config.port, print=None)


class _Routes:
    def __init__(self, served: ServedTasks) -> None:
        self._served = served
        self._sockets: set[web.WebSocketResponse] = set()

    async def health(self, request: web.Request) -> web.Response:
        """Whether the server is up."""
        return _json({"status": "healthy"})

    async def schema(self, request: web.Request) -> web.Response:
        """What actions, observations and the state look like."""
        models: dict[str, type[BaseModel]] = {
            "action": ActionBody,
            "observation": ObservationBody,
            "state": StateBody,
        }
        return _json({name: model.model_json_schema() for name, model in models.items()})

    async def metadata(self, request: web.Request) -> web.Response:
        """What the environment is."""
        definition = self._served.definition
        return _json({"name": definition.name, "description": definition.summary})

    async def reset(self, request: web.Request) -> web.Response:
        """Begin an episode that the next steps name by its ``episode_id``."""
        session, reply = await self._begin(None, await _body(request))
        session.notes["episode_id"] = session.id
        reply["metadata"]["episode_id"] = session.id
        return _json(reply)

    async def step(self, request: web.Request) -> web.Response:
        """Act in the episode that the body names."""
        body = await _body(request)
        session = self._named(body.get("episode_id"))
        return _json(await self._act(session, body.get("action")))

    async def state(self, request: web.Request) -> web.Response:
        """Where an episode is."""
        return _json(state_of(self._named(request.query.get("episode_id"))))

    async def close(self, request: web.Request) -> web.Response:
        """End an episode."""
        session = self._named((await _body(request)).get("episode_id"))
        return _json({"closed": await self._served.table.close(session.id)})

    async def socket(self, request: web.Request) -> web.StreamResponse:
        """One session for as long as the connection lasts."""
        if len(self._sockets) >= self._served.config.limits.max_in_flight:
            raise ServerError(503, "overloaded", "Too many connections are open.", {"Retry-After": "1"})
        longest = int(self._served.config.limits.max_body_mb * _MB)
        socket = web.WebSocketResponse(max_msg_size=longest, heartbeat=30.0)
        await socket.prepare(request)
        self._sockets.add(socket)
        session: Hosted[Play] | None = None
        try:
            async for message in socket:
                if message.type is not WSMsgType.TEXT:
                    continue
                try:
                    said = read_message(message.data)
                    if said["type"] == "close":
                        break
                    session, reply = await self._answer(said, session)
                except Exception as error:
                    reply = {"type": "error", "data": error_data(error)}
                await socket.send_str(json_bytes(reply).decode())
        except ConnectionError:
            pass  # it went away meanwhile
        finally:
            self._sockets.discard(socket)
            if session is not None:
                await self._served.table.close(session.id)
            await socket.close()
        return socket

    async def hang_up(self) -> None:
        """Close all connections, since the server stops."""
        await asyncio.gather(*(one.close(code=1001) for one in tuple(self._sockets)))

    async def _answer(
        self, said: Mapping[str, Any], session: Hosted[Play] | None
    ) -> tuple[Hosted[Play] | None, dict[str, Any]]:
        kind, data = said["type"], said.get("data") or {}
        if kind == "reset":
            session, reply = await self._begin(session, data)
            return session, {"type": "observation", "data": reply}
        if kind == "state":
            nothing = {"episode_id": None, "step_count": 0, "task_id": None}
            return session, {"type": "state", "data": state_of(session) if session else nothing}
        if kind == "step":
            if session is None:
                raise ServerError(409, "session_lost", "No episode was begun; send a reset first.")
            known = self._named(session.id)  # it may have expired
            return session, {"type": "observation", "data": await self._act(known, data)}
        raise ServerError(422, "UNKNOWN_TYPE", f"Unknown message type: {str(kind)[:100]}")

    async def _begin(
        self, session: Hosted[Play] | None, data: Mapping[str, Any]
    ) -> tuple[Hosted[Play], dict[str, Any]]:
        asked = ResetBody.model_validate(dict(data))
        wanted = asked.task_id is not None or asked.task_index is not None
        open_before = session is not None and self._served.table.find(session.id) is session
        if session is None or not open_before:
            task = await self._served.task(asked.task_index, asked.task_id)
            # Others may not guess the name of an episode that is named over HTTP, so it is ours.
            session = await self._served.open(task)
        else:
            task = await self._served.task(asked.task_index, asked.task_id) if wanted else session.held.task
        held = session
        try:
            opening = await self._served.run(held, lambda play: play.reset(task, asked.seed))
        except EpisodeError:
            await self._served.table.close(held.id)
            raise
        held.notes["episode_id"] = asked.episode_id or str(uuid.uuid4())
        return held, opened(opening, held)

    async def _act(self, session: Hosted[Play], data: Any) -> dict[str, Any]:
        action = ActionBody.model_validate(data).action()
        turn = await self._served.run(session, lambda play: play.act(action))
        return stepped(turn)

    def _named(self, id: Any) -> Hosted[Play]:
        session = self._served.table.find(id if isinstance(id, str) else None)
        if session is None:
            said = "There is no such episode; it was closed, expired, or never begun."
            raise ServerError(409, "session_lost", said)
        return session


async def _body(request: web.Request) -> dict[str, Any]:
    body = read_json(await request.read())
    if body is not None and not isinstance(body, dict):
        raise ServerError(422, "invalid_request", "The body is no JSON object.")
    return body or {}


def _guard(access: Access, config: ServedConfig) -> Any:
    """Who may call, how often, and errors in one form."""
    buckets = Buckets(config.limits.requests_per_s, config.limits.burst)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            check_site(access, request.headers)
            if request.path not in _OPEN_PATHS:
                check_key(access, request.headers)
            check_rate(buckets, request.remote or "")
            return await handler(request)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            return _failed(ServerError(error.status, "invalid_request", error.reason))
        except ValidationError as error:
            return _failed(ServerError(422, "invalid_request", error_data(error)["message"]))
        except Exception as error:
            return _failed(error)

    return guard


def _json(value: Any) -> web.Response:
    return web.Response(body=json_bytes(value), content_type="application/json")


def _failed(error: BaseException) -> web.Response:
    reply = error_response(error)
    extra = {name: value for name, value in reply.headers.items() if name.lower() == "retry-after"}
    body = bytes(reply.body)
    return web.Response(status=reply.status_code, body=body, headers=extra, content_type="application/json")
