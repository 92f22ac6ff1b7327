"""The resources server: hosts episodes of one environment for agents anywhere."""

from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import WebSocketRoute

from sensorium.servers.apps import add_get, build_app
from sensorium.servers.config import ResourcesConfig
from sensorium.servers.errors import ServerError
from sensorium.servers.gymnasium_routes import add_gymnasium_routes
from sensorium.servers.hosting import EpisodeHost
from sensorium.servers.identity import SessionCookies, cookie_name
from sensorium.servers.mcp_routes import McpTools, add_mcp
from sensorium.servers.replies import json_response
from sensorium.servers.runtime import Runtime
from sensorium.servers.security import build_access
from sensorium.servers.tool_routes import add_tool_routes
from sensorium.servers.vector_routes import VECTOR_PATH, VectorRoute

Handler = Callable[..., Awaitable[Response]]


def build_resources_app(config: ResourcesConfig, name: str, runtime: Runtime | None = None) -> FastAPI:
    """The app of a resources server; ``app.state.host`` is its `EpisodeHost`.

    Args:
        config: Its settings.
        name: Of the instance; also the environment's, unless the config names one.
        runtime: What the servers of a process share.

    Raises:
        ConfigError: The environment does not exist, its settings do not fit, or the address needs a key.
    """
    runtime = runtime or Runtime()
    access = build_access(config, name)
    host = EpisodeHost(config, name, runtime)
    cookie = cookie_name(type(host.definition).__name__, name)
    cookies = Middleware(SessionCookies, name=cookie, signer=runtime.signer, worker=runtime.worker)

    vector = VectorRoute(host)
    tools = McpTools(host) if config.expose_tools_over_mcp else None
    app = build_app(
        f"{name}: {host.definition.summary}",
        config,
        access,
        middleware=[cookies],
        starts=[host.table.start, vector.table.start],
        stops=[vector.shut, host.shut],
        around=[tools.running] if tools is not None else [],
        open_prefixes=("/media/",),
    )
    app.state.host = runtime.episodes[name] = host
    add_get(app, "/sensorium", _about(host), summary="What this server is")
    add_get(app, "/media/{file_name}", _media(host), summary="A picture of a prompt")
    if tools is not None:
        add_mcp(app, tools)
    if config.vector.enabled:
        app.router.routes.append(WebSocketRoute(VECTOR_PATH, vector))
    add_gymnasium_routes(app, host)
    add_tool_routes(app, host)
    return app


def _about(host: EpisodeHost) -> Handler:
    async def about() -> Response:
        return json_response(
            {
                "kind": "resources_servers",
                "environment": host.definition.name,
                "summary": host.definition.summary,
                "splits": host.definition.splits,
                "tools": host.tools,
                "sessions": len(host.table),
                "max_sessions": host.config.sessions.max_sessions,
            }
        )

    return about


def _media(host: EpisodeHost) -> Handler:
    async def media(file_name: str, request: Request) -> Response:
        found = host.media.get(file_name)
        if found is None:
            raise ServerError(
                404, "not_found", "There is no such picture, or it was dropped with its session."
            )
        return Response(found[0], 200, {"Cache-Control": "private, max-age=600"}, found[1])

    return media
