"""What every server's app has: health routes, errors in one form, and the guard around it."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sensorium.servers.config import ServerConfig
from sensorium.servers.errors import ServerError, error_response, problems_text
from sensorium.servers.guard import OPEN_PATHS, ErrorReplies, Guard
from sensorium.servers.replies import json_response
from sensorium.servers.security import Access
from sensorium.servers.wire import body_schema

_NOT_NAME = re.compile(r"[^A-Za-z0-9_]+")
Hook = Callable[[], Awaitable[Any]]


class _OwnBody(APIRoute):
    """A route whose handler takes the request alone: there is nothing to be found out for it."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; see ASGI."""
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        response = await self.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


def build_app(
    title: str,
    config: ServerConfig,
    access: Access,
    *,
    middleware: Sequence[Middleware] = (),
    starts: Sequence[Hook] = (),
    stops: Sequence[Hook] = (),
    around: Sequence[Callable[[], AbstractAsyncContextManager[Any]]] = (),
    open_prefixes: tuple[str, ...] = (),
    request_timeout_s: float | None = None,
) -> FastAPI:
    """An app without routes of its own.

    Args:
        title: For OpenAPI.
        config: Limits.
        access: Who may call.
        middleware: Between guard and routes.
        starts: Awaited when the server starts.
        stops: Awaited when it stops.
        around: Entered while it runs.
        open_prefixes: Beginnings of paths that need no key.
        request_timeout_s: Where requests have longer limits of their own than the config's.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for context in around:
                await stack.enter_async_context(context())
            for hook in starts:
                await hook()
            try:
                yield
            finally:
                for hook in stops:
                    await hook()

    limits = config.limits
    if request_timeout_s is not None and request_timeout_s > limits.request_timeout_s:
        limits = limits.model_copy(update={"request_timeout_s": request_timeout_s})
    guard = Middleware(Guard, access=access, limits=limits, open_prefixes=open_prefixes)
    app = FastAPI(
        title=title,
        lifespan=lifespan,
        docs_url=None,  # the page loads scripts from elsewhere
        redoc_url=None,
        middleware=[guard, *middleware, Middleware(ErrorReplies)],
        exception_handlers={HTTPException: _http_error, RequestValidationError: _validation_error},
        separate_input_output_schemas=False,
    )
    app.state.max_message_bytes = int(limits.max_body_mb * 1024 * 1024)
    for path in OPEN_PATHS:
        add_get(app, path, _health, summary="Whether the server is up")
    return app


def add_post(
    app: FastAPI, path: str, handler: Callable[..., Any], body: Any = None, *, summary: str | None = None
) -> None:
    """Add a route that reads its own body.

    Args:
        app: To add it to.
        path: Of the route.
        handler: Takes the request.
        body: Model or JSON schema of the body, for OpenAPI; None hides the route there.
        summary: One line.
    """
    app.router.add_api_route(
        path,
        handler,
        methods=["POST"],
        route_class_override=_OwnBody,
        summary=summary,
        operation_id="post_" + _NOT_NAME.sub("_", path.strip("/")),
        openapi_extra=body_schema(body) if body is not None else None,
        include_in_schema=body is not None,
        response_model=None,
    )


def add_get(app: FastAPI, path: str, handler: Callable[..., Any], *, summary: str | None = None) -> None:
    """Add a route that reads."""
    app.add_api_route(path, handler, methods=["GET"], summary=summary, response_model=None)


async def _health() -> Response:
    return json_response({"status": "ok"})


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request")
    return error_response(ServerError(error.status_code, kind, str(error.detail), error.headers))


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_response(ServerError(422, "invalid_request", problems_text(error.errors())))
