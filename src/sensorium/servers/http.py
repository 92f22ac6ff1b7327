"""Calls between servers: bounded in time, repeated where that is harmless, with errors that say why."""

import asyncio
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json
from starlette.types import ASGIApp

from sensorium.core import require
from sensorium.envs.episode import EpisodeError, Failure, Stage
from sensorium.llm.replies import error_text
from sensorium.llm.retries import retry_after_s
from sensorium.rollouts.failures import known_stage
from sensorium.servers.in_process import InProcessCalls
from sensorium.servers.replies import json_bytes

if TYPE_CHECKING:
    import aiohttp

_MAX_REPLY_BYTES = 256 * 1024 * 1024
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    cookies: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            ValueError: It is none.
        """
        try:
            return from_json(self.body)
        except ValueError:  # stricter: no half of a surrogate pair, no deep nesting
            return json.loads(self.body)

    @property
    def retry_after_s(self) -> float | None:
        """Seconds that the server asks to wait."""
        return retry_after_s(self.headers.get("Retry-After"))


class TransportError(Exception):
    """No answer came.

    Args:
        kind: Of the vocabulary of failures.
        reason: For people.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind, self.reason = kind, reason


class HttpClient:
    """Connections to servers, kept open and shared by everything in one event loop.

    Args:
        api_key: Sent to our own servers.
        attempts: Tries of a request that may be repeated.
        max_connections: At the same time.
        apps: Servers of this process by their origins, which need no connections.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        attempts: int = 5,
        max_connections: int = 2048,
        apps: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        self._aiohttp = require("aiohttp", extra="serve", purpose="talking to servers")
        self._api_key, self._attempts, self._max_connections = api_key, attempts, max_connections
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._in_process = InProcessCalls(apps if apps is not None else {})

    async def close(self) -> None:
        """Close all connections; may be called again."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(
        self,
        url: str,
        body: Any = None,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        cookies: Mapping[str, str] | None = None,
        repeat: bool = False,
        api_key: str | None = None,
    ) -> Reply:
        """Send JSON.

        Args:
            url: Where to.
            body: What JSON can hold; None sends no body.
            timeout_s: Of all tries together.
            headers: Further headers.
            cookies: Sent as they are.
            repeat: Whether the request may be sent again when the connection breaks.
            api_key: Instead of the client's own.

        Raises:
            TransportError: No answer came.
        """
        sent = {"Content-Type": "application/json", **(headers or {})}
        if cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        if key := api_key or self._api_key:
            sent["Authorization"] = f"Bearer {key}"
        data = None if body is None else json_bytes(body)
        return await self._repeated("POST", url, data, sent, timeout_s, self._attempts if repeat else 1)

    async def get(self, url: str, *, timeout_s: float, api_key: str | None = None) -> Reply:
        """Fetch.

        Raises:
            TransportError: No answer came.
        """
        key = api_key or self._api_key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return await self._repeated("GET", url, None, headers, timeout_s, self._attempts)

    async def _repeated(
        self,
        method: str,
        url: str,
        data: bytes | None,
        headers: Mapping[str, str],
        timeout_s: float,
        attempts: int,
    ) -> Reply:
        try:
            async with asyncio.timeout(timeout_s):
                for attempt in range(attempts):
                    try:
                        return await self._send(method, url, data, headers)
                    except TransportError:
                        if attempt + 1 == attempts:
                            raise
                    pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**attempt)
                    await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        except TimeoutError as error:
            raise TransportError(
                "transport_timeout", f"{url} did not answer within {timeout_s:g} s."
            ) from error
        raise AssertionError("unreachable")

    async def _send(self, method: str, url: str, data: bytes | None, headers: Mapping[str, str]) -> Reply:
        module = self._aiohttp
        try:
            if (app := self._in_process.find(url)) is not None:
                told = await self._in_process.call(app, method, url, data, headers)
                cookies = _cookies(told.headers.getlist("set-cookie"))
                return Reply(told.status, told.body, told.headers, cookies)
            async with self._connected().request(
                method, url, data=data, headers=headers, allow_redirects=False
            ) as response:
                body = bytearray()
                async for piece in response.content.iter_chunked(1 << 18):
                    body += piece
                    if len(body) > _MAX_REPLY_BYTES:
                        raise TransportError(
                            "transport_peer_drop", f"{url} sent over {_MAX_REPLY_BYTES:,} bytes."
                        )
                cookies = _cookies(response.headers.getall("Set-Cookie", []))
                return Reply(response.status, bytes(body), response.headers, cookies)
        except module.ClientConnectorError as error:
            raise TransportError("transport_unreachable", f"{url} cannot be reached ({error}).") from error
        except (module.ClientError, OSError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
            raise TransportError(
                "transport_peer_drop", f"{url} broke the connection off ({what})."
            ) from error

    def _connected(self) -> "aiohttp.ClientSession":
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            self._session = self._aiohttp.ClientSession(
                timeout=self._aiohttp.ClientTimeout(total=None),  # every call has a limit of its own
                cookie_jar=self._aiohttp.DummyCookieJar(),
                connector=self._aiohttp.TCPConnector(limit=self._max_connections),
            )
        return self._session


def is_terminal(status: int) -> bool:
    """Whether an error status says that the same again would fail again."""
    return 400 <= status < 500 and status not in (408, 409, 425, 429)


def failure_of_reply(reply: Reply, stage: Stage, what: str) -> EpisodeError:
    """The error that an answer with an error status is."""
    kind, terminal = f"http_{reply.status}", is_terminal(reply.status)
    try:
        error = reply.json()["error"]
        kind, terminal = str(error["kind"]), bool(error.get("terminal", terminal))
        stage = known_stage(error.get("stage", stage))
    except (ValueError, KeyError, TypeError):
        kind = "agent_request_failed" if reply.status in (429, 502, 503, 504) else "agent_run_error"
    reason = f"{what} answered {reply.status}: {error_text(reply.text)}"
    return EpisodeError(Failure(kind=kind, reason=reason[:2000], stage=stage, terminal=terminal))


def _cookies(headers: list[str]) -> dict[str, str]:
    """Name -> value as it was sent (RFC 6265, 5.2)."""
    pairs = (header.partition(";")[0].partition("=") for header in headers)
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}
