"""Several processes behind one address: a request goes to the one that owns its session."""

import asyncio
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from sensorium.core import require
from sensorium.servers.apps import build_app
from sensorium.servers.config import ResourcesConfig
from sensorium.servers.errors import ServerError
from sensorium.servers.guard import OPEN_PATHS, read_json
from sensorium.servers.identity import MCP_HEADER, SESSION_HEADER, worker_of
from sensorium.servers.security import build_access

if TYPE_CHECKING:
    import aiohttp

_OF_ONE_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailers"}
    | {"transfer-encoding", "upgrade", "content-length", "host", "origin", "expect", "content-encoding"}
)
_WITH_NAMES = ("/seed_session", "/close_session")
"""Routes whose body names the session."""


class Router:
    """Picks the worker of a request.

    Args:
        urls: Where the workers are, by their number.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = tuple(urls)
        self._next = itertools.count()

    def pick(self, path: str, headers: Headers, body: bytes) -> int:
        """Number of the worker that a request belongs to.

        Cookie, token and the name of a picture say it; from a name that the client chose it is a hash; all
        other requests go to one after the other.
        """
        named = headers.get(SESSION_HEADER)
        if named:
            return self._of_name(named)
        if path.startswith("/media/"):
            number = path.removeprefix("/media/").partition("-")[0]
            return int(number) % len(self.urls) if number.isdigit() and len(number) < 6 else 0
        if path in _WITH_NAMES:
            value = read_json(body)
            name = value.get("resources_session_id") if isinstance(value, Mapping) else None
            if isinstance(name, str):
                return self._of_name(name)
        for token in [headers.get(MCP_HEADER), *_cookie_values(headers.get("cookie"))]:
            number_of = worker_of(token) if token else None
            if number_of is not None and number_of < len(self.urls):
                return number_of
        return next(self._next) % len(self.urls)

    def _of_name(self, name: str) -> int:
        return int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:4], "big") % len(
            self.urls
        )


class Proxy:
    """An ASGI app that passes requests on to workers.

    Args:
        router: Picks the worker.
        timeout_s: Of an answer.
    """

    def __init__(self, router: Router, timeout_s: float) -> None:
        self._aiohttp = require("aiohttp", extra="serve", purpose="routing to workers")
        self._router, self._timeout_s = router, timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass messages on as long as a connection lasts; see ASGI."""
        if scope["type"] == "websocket":
            await self._relay(WebSocket(scope, receive, send))
            return
        request = Request(scope, receive)
        response = await self.forward(request)
        await response(scope, receive, send)

    async def forward(self, request: Request) -> Response:
        """The answer of the worker that owns the session.

        Raises:
            ServerError: It is gone (502), and with it the session.
        """
        body = await request.body()
        path = request.scope["path"]
        number = self._router.pick(path, request.headers, body)
        query = request.url.query
        url = f"{self._router.urls[number]}{path}{'?' + query if query else ''}"
        headers = [(k, v) for k, v in request.headers.items() if k.lower() not in _OF_ONE_HOP]
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._connected().request(
                    request.method, url, data=body or None, headers=headers, allow_redirects=False
                ) as reply,
            ):
                answer = Response(await reply.read(), reply.status)
                kept = [
                    (name.lower().encode("latin-1"), value.encode("latin-1"))
                    for name, value in reply.headers.items()
                    if name.lower() not in _OF_ONE_HOP
                ]
                answer.raw_headers = [*kept, (b"content-length", str(len(answer.body)).encode())]
                return answer
        except (self._aiohttp.ClientError, OSError) as error:
            said = "The worker of this session does not answer; what was in it is lost."
            raise ServerError(502, "session_lost", said) from error

    async def _relay(self, socket: WebSocket) -> None:
        """Connect a client with the next worker, for as long as both are there.

        Raises:
            ServerError: The worker does not answer (502).
        """
        path = socket.scope["path"]
        url = f"{self._router.urls[self._router.pick(path, socket.headers, b'')]}{path}"
        headers = [(k, v) for k, v in socket.headers.items() if _travels(k)]
        try:
            worker = await self._connected().ws_connect(url, headers=headers, max_msg_size=0, compress=0)
        except (self._aiohttp.ClientError, OSError) as error:
            raise ServerError(502, "transport_unreachable", "The worker does not answer.") from error
        async with worker:
            await socket.accept()
            pumps = [asyncio.ensure_future(one) for one in (_up(socket, worker), self._down(worker, socket))]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)

    async def _down(self, worker: "aiohttp.ClientWebSocketResponse", socket: WebSocket) -> None:
        """What a worker says, for the client; and that it hung up."""
        async for message in worker:
            if message.type is self._aiohttp.WSMsgType.BINARY:
                await socket.send_bytes(message.data)
        await socket.close(worker.close_code or 1011)

    async def close(self) -> None:
        """Close connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _connected(self) -> "aiohttp.ClientSession":
        if self._session is None or self._session.closed:
            self._session = self._aiohttp.ClientSession(
                timeout=self._aiohttp.ClientTimeout(total=None),
                cookie_jar=self._aiohttp.DummyCookieJar(),
                connector=self._aiohttp.TCPConnector(limit=0),
                auto_decompress=False,
            )
        return self._session


def build_router_app(config: ResourcesConfig, name: str, router: Router) -> FastAPI:
    """The app in front of the workers of a resources server.

    Raises:
        ConfigError: The address needs a key.
    """
    proxy = Proxy(router, config.limits.request_timeout_s)
    app = build_app(
        f"{name} ({len(router.urls)} workers)", config, build_access(config, name), stops=[proxy.close]
    )
    app.router.routes[:] = [one for one in app.router.routes if getattr(one, "path", "") in OPEN_PATHS]
    app.mount("/", proxy)
    return app


async def _up(socket: WebSocket, worker: "aiohttp.ClientWebSocketResponse") -> None:
    """What a client says, for the worker; until it goes away."""
    while (message := await socket.receive())["type"] == "websocket.receive":
        data = message.get("bytes")
        await (worker.send_bytes(data) if data is not None else worker.send_str(message.get("text") or ""))


def _travels(header: str) -> bool:
    """Whether a header of a handshake is the client's and not the connection's."""
    return header.lower() not in _OF_ONE_HOP and not header.lower().startswith("sec-websocket-")


def _cookie_values(header: str | None) -> list[str]:
    return [value for name, value in cookie_parser(header or "").items() if "___" in name]
