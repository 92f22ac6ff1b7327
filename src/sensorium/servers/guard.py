"""What stands in front of every server: who calls, how often, how much, and that every error has one form."""

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sensorium.servers.config import RequestLimits
from sensorium.servers.errors import ServerError, error_response
from sensorium.servers.security import Access, host_name

_log = logging.getLogger(__name__)
_PREFIX = re.compile(r"^/ng-rollout/([A-Za-z0-9][A-Za-z0-9._-]*)(?:/training-token-capture)?(?=/)")
OPEN_PATHS = ("/", "/health", "/healthz", "/livez", "/readyz")
"""Answer without a key: they tell nothing."""
_MAX_ADDRESSES = 10_000
_MB = 1024 * 1024


class Buckets:
    """How many requests each address may still send; refilled with time.

    Args:
        per_s: Refilled each second.
        burst: Held at most.
    """

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s, self._burst = per_s, float(burst)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str, now: float) -> float:
        """Take one; returns the seconds to wait when there is none, else 0."""
        left, then = self._left.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_s)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self._per_s
        self._left[address] = (left - 1.0 if wait == 0.0 else left, now)
        if len(self._left) > _MAX_ADDRESSES:
            self._left.popitem(last=False)
        return wait


class Guard:
    """ASGI middleware around a whole app.

    It takes the prefix ``/ng-rollout/<id>`` off paths (kept in ``scope["state"]["rollout_id"]``), checks
    Host, Origin and key, limits rate, body and time, and turns every exception into JSON.

    Args:
        app: What is guarded.
        access: Who may call.
        limits: How much.
        open_prefixes: Beginnings of paths that need no key, e.g. of pictures with unguessable names.
    """

    def __init__(
        self, app: ASGIApp, access: Access, limits: RequestLimits, open_prefixes: tuple[str, ...] = ()
    ) -> None:
        self._app, self._access, self._limits, self._open = app, access, limits, open_prefixes
        self._buckets = Buckets(limits.requests_per_s, limits.burst)
        self._max_bytes = int(limits.max_body_mb * _MB)
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; see ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send)
            return
        outgoing = _Outgoing(send)
        self._in_flight += 1
        try:
            self._admit(scope)
            body = _Limited(receive, self._max_bytes)
            async with asyncio.timeout(self._limits.request_timeout_s) as limit:
                await self._app(scope, body, outgoing)
        except TimeoutError as error:
            expired = limit.expired()
            late = ServerError(
                504, "request_timeout", f"No answer within {self._limits.request_timeout_s:g} s."
            )
            await outgoing.fail(late if expired else error, scope, receive)
        except Exception as error:
            await outgoing.fail(error, scope, receive)
        finally:
            self._in_flight -= 1

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A connection that stays open: admitted like a request; each of its messages counts as one."""
        socket = _Socket(receive, send, self._buckets, _address(scope))
        self._in_flight += 1
        try:
            self._admit(scope)
            await self._app(scope, socket.receive, socket.send)
        except Exception as error:
            if not socket.accepted:
                await error_response(error)(scope, receive, send)
                return
            _log.error("a connection to %s failed", scope["path"], exc_info=error)
            await socket.send({"type": "websocket.close", "code": 1011})
        finally:
            self._in_flight -= 1

    def _admit(self, scope: Scope) -> None:
        found = _PREFIX.match(scope["path"])
        state = scope.setdefault("state", {})
        if found:
            state["rollout_id"] = found[1]
            path = scope["path"][found.end() :]
            scope["path"], scope["raw_path"] = path, path.encode()
        headers = Headers(scope=scope)
        address = _address(scope)
        check_site(self._access, headers, over_socket=address != "testclient")  # that of Starlette's client
        if scope["path"] not in OPEN_PATHS and not scope["path"].startswith(self._open):
            check_key(self._access, headers)
        if self._in_flight > self._limits.max_in_flight:
            raise ServerError(503, "overloaded", "Too many requests are under way.", {"Retry-After": "1"})
        check_rate(self._buckets, address)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._max_bytes:
            raise _too_large(self._max_bytes)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "testclient"


def check_site(access: Access, headers: Mapping[str, str], *, over_socket: bool = True) -> None:
    """Pages in a browser may not call, neither as another site nor under a name that was rebound.

    Args:
        access: Who may call.
        headers: Of the request, found whatever their case.
        over_socket: Whether it came over a network, where its Host header counts.

    Raises:
        ServerError: The server is not called so (421), or the page is of another site (403).
    """
    host = headers.get("host", "")
    if over_socket and not access.admits_host(host):
        said = f"This server is not called {host_name(host)[:100]!r}; add it to allowed_hosts if it is."
        raise ServerError(421, "wrong_host", said)
    origin = headers.get("origin")
    if origin is None or access.origins & {origin, "*"}:
        return
    if origin.partition("://")[2].lower() != host.lower():
        raise ServerError(403, "wrong_origin", "Pages of other sites may not call this server.")


def check_key(access: Access, headers: Mapping[str, str]) -> None:
    """Whether a request has the key.

    Raises:
        ServerError: It has not (401).
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else None
    if not access.admits_key(bearer, headers.get("x-api-key")):
        said = "Send the server's key as bearer token or X-API-Key."
        raise ServerError(401, "unauthorized", said, {"WWW-Authenticate": "Bearer"})


def check_rate(buckets: Buckets, address: str) -> None:
    """Count a request.

    Raises:
        ServerError: The address sent too many (429).
    """
    wait = buckets.take(address, time.monotonic())
    if wait > 0.0:
        raise ServerError(429, "rate_limit", "Too many requests.", {"Retry-After": f"{max(1, round(wait))}"})


class _Limited:
    """Receives a body up to a limit, also when its length was not announced."""

    def __init__(self, receive: Receive, max_bytes: int) -> None:
        self._receive, self._max_bytes, self._seen = receive, max_bytes, 0

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
            if self._seen > self._max_bytes:
                raise _too_large(self._max_bytes)
        return message


class _Socket:
    """A connection whose messages wait for their turn: who sends too many is slowed down."""

    def __init__(self, receive: Receive, send: Send, buckets: Buckets, address: str) -> None:
        self._receive, self._send, self._buckets, self._address = receive, send, buckets, address
        self.accepted = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "websocket.receive":
            wait = self._buckets.take(self._address, time.monotonic())
            if wait > 0.0:
                await asyncio.sleep(wait)
                self._buckets.take(self._address, time.monotonic())
        return message

    async def send(self, message: Message) -> None:
        self.accepted |= message["type"] == "websocket.accept"
        await self._send(message)


class ErrorReplies:
    """ASGI middleware that turns exceptions into answers, inside of what adds cookies to answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; see ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        outgoing = _Outgoing(send, is_outermost=False)
        try:
            await self._app(scope, receive, outgoing)
        except Exception as error:
            await outgoing.fail(error, scope, receive)


class _Outgoing:
    """Sends an answer, or an error in its place as long as nothing was sent."""

    def __init__(self, send: Send, *, is_outermost: bool = True) -> None:
        self._send, self._is_outermost, self._begun = send, is_outermost, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            if self._is_outermost:
                headers = MutableHeaders(scope=message)
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Cache-Control", "no-store")
        await self._send(message)

    async def fail(self, error: BaseException, scope: Scope, receive: Receive) -> None:
        if self._begun:  # too late to say it: the broken connection does
            raise error
        await error_response(error)(scope, receive, self)


def _too_large(max_bytes: int) -> ServerError:
    return ServerError(
        413, "body_too_large", f"The body is longer than {max_bytes:,} bytes.", {"Connection": "close"}
    )


def read_json(body: bytes) -> Any:
    """A body as JSON; strictly: no NaN, no text that is not Unicode, bounded nesting.

    Raises:
        ServerError: It is something else.
    """
    if not body.strip():
        return None
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ServerError(400, "invalid_json", f"The body is not valid JSON: {error}.") from error
