"""Calls of servers in this process: their apps are called themselves, without sockets between them."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message

_log = logging.getLogger(__name__)


class AppReply(NamedTuple):
    """What an app answered."""

    status: int
    headers: Headers
    body: bytes


class InProcessCalls:
    """Calls apps as a web server would, which is what they notice of it: nothing.

    An app runs in a task of its own. When the caller goes away, it is told so as by a broken connection, and
    ends what it does by itself: a step of an environment is never torn apart.

    Args:
        apps: Origin (``http://127.0.0.1:8001``) -> app; may grow while servers are started.
    """

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = apps
        self._running: set[asyncio.Task[None]] = set()

    def find(self, url: str) -> ASGIApp | None:
        """The app that serves an address; None when it is no one's in this process."""
        if not self._apps:
            return None
        return self._apps.get("/".join(url.split("/", 3)[:3]))

    async def call(
        self, app: ASGIApp, method: str, url: str, data: bytes | None, headers: Mapping[str, str]
    ) -> AppReply:
        """Call an app.

        Raises:
            ConnectionError: It broke its answer off.
        """
        exchange = _Exchange(data or b"")
        scope = _scope(method, url, data, headers)
        task = asyncio.ensure_future(_run(app, scope, exchange))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            exchange.hang_up()
            raise
        if exchange.status is None:
            raise ConnectionError("there was no answer")
        return AppReply(exchange.status, Headers(raw=exchange.headers), b"".join(exchange.pieces))


class _Exchange:
    """One request and its answer, as an app sees them."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []

    def hang_up(self) -> None:
        """Nobody waits for the answer any more."""
        self._gone.set()

    async def receive(self) -> Message:
        """The body; afterwards only that the client is gone."""
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Keep the answer."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        elif body := message.get("body"):
            self.pieces.append(body)


async def _run(app: ASGIApp, scope: dict[str, Any], exchange: _Exchange) -> None:
    try:
        await app(scope, exchange.receive, exchange.send)
    except Exception:
        _log.exception("%s %s broke its answer off", scope["method"], scope["path"])
        exchange.status = None


def _scope(method: str, url: str, data: bytes | None, headers: Mapping[str, str]) -> dict[str, Any]:
    parts = urlsplit(url)
    sent = {"host": parts.netloc, **headers}
    if data is not None:
        sent["content-length"] = str(len(data))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": parts.scheme,
        "path": unquote(parts.path) or "/",
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()
        ],
        "client": ("127.0.0.1", 0),
        "server": (parts.hostname, parts.port),
        "state": {},
    }
