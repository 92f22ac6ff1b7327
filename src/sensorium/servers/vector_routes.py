"""Environments that clients step by arrays: one connection, one set of environments.

Each message is answered by one. Both are of `sensorium.core.frames`, objects with a ``type``: ``open``
(``num_envs``, ``settings``, ``as``), ``reset``, ``step``, ``close``; or, of bare worlds, ``advance``,
``render`` and ``describe``. An answer of the type ``error`` has ``kind`` and ``message``. A message that does
not fit changes nothing; environments that raise are closed, and others may be opened on the same connection.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from sensorium.core import ConfigError, EnvError, MissingDependencyError
from sensorium.core.frames import FrameError, pack, unpack
from sensorium.envs.hosted import HostedEnvs, MessageError
from sensorium.servers.errors import ServerError, error_response
from sensorium.servers.hosting import EpisodeHost
from sensorium.servers.sessions import Hosted, SessionTable

VECTOR_PATH = "/vector"
_HUNG_UP = 4408
"""Close code: nothing was heard for too long, the environments lived too long, or the server stops."""
_CLOSE_TIMEOUT_S = 30.0
_log = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")


class VectorPlay:
    """Environments of one client, in a thread of their own: engines insist on the one that made them.

    Args:
        socket: Of the client.
        num_envs: How many.
    """

    def __init__(self, socket: WebSocket, num_envs: int) -> None:
        self.num_envs = num_envs
        self._socket: WebSocket | None = socket
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sensorium-vector")
        self._envs: HostedEnvs | None = None

    def leave(self) -> None:
        """Its client needs no word when it is closed."""
        self._socket = None

    async def open(self, make: Callable[[], HostedEnvs]) -> dict[str, Any]:
        """Make the environments; returns what the client must know of them."""

        def making() -> dict[str, Any]:
            self._envs = make()
            return self._envs.opened()

        return await self._run(making)

    async def answer(self, message: Mapping[str, Any]) -> bytes:
        """Do what a message says; returns the answer, packed."""

        def doing() -> bytes:
            assert self._envs is not None, "they are open"
            return pack(self._envs.answer(message))

        return await self._run(doing)

    async def close(self) -> None:
        """Close the environments when what they do is done; a client that is still there is hung up on."""
        socket, self._socket = self._socket, None
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._run(self._shut)
        finally:
            self._thread.shutdown(wait=False)
            if socket is not None:
                with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it went away at the same time
                    await socket.close(_HUNG_UP, "the environments were closed")

    def _shut(self) -> None:
        envs, self._envs = self._envs, None
        if envs is not None:
            envs.close()

    async def _run(self, function: Callable[[], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)


Session = Hosted[VectorPlay]


class VectorRoute:
    """An ASGI app for WebSockets.

    Args:
        host: Knows the environment and its settings.
    """

    def __init__(self, host: EpisodeHost) -> None:
        self._host = host
        self.table: SessionTable[VectorPlay] = SessionTable(host.config.sessions, prefix="v")
        self._closing: set[asyncio.Task[bool]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client as long as it is there; see ASGI."""
        socket = WebSocket(scope, receive, send)
        await socket.accept()
        client = _Client(self, socket)
        try:
            while not client.is_done:
                reply = await client.answer(await socket.receive())
                if reply is not None:
                    await socket.send_bytes(reply)
            await socket.close()
        except (WebSocketDisconnect, RuntimeError):  # it went away, or was hung up on, meanwhile
            return
        finally:
            await client.leave()

    async def shut(self) -> None:
        """Close all environments."""
        if len(self.table):
            _log.warning("%s stops with %d clients at %s", self._host.name, len(self.table), VECTOR_PATH)
        await self.table.shut()

    async def begin(self, socket: WebSocket, message: Mapping[str, Any]) -> tuple[Session, bytes]:
        """Open environments for a client; returns their session, and what the client is told.

        Raises:
            ServerError: It wants too many (422), or there are no more (429).
            ConfigError: There are none of this kind, or its settings do not fit.
        """
        host, (num_envs, kind, settings) = self._host, self._asked(message)
        session = await self.table.open(self.table.new_id(), "", lambda: VectorPlay(socket, num_envs))

        def make() -> HostedEnvs:
            return host.definition.hosted(host.env_config, num_envs, settings, kind)

        try:
            opened = await self.within_limit(session, session.held.open(make))
        except BaseException:
            self.end(session)
            raise
        task = getattr(host.env_config, "task", host.definition.name)
        return session, pack({"type": "opened", "session_id": session.id, "environment": task} | opened)

    async def within_limit(self, session: Session, doing: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Do something in a session, within the time that a request has.

        Raises:
            ServerError: It takes longer (504).
        """
        seconds = self._host.config.limits.request_timeout_s
        try:
            async with asyncio.timeout(seconds):
                return await self.table.run(session, doing)
        except TimeoutError as error:
            raise ServerError(504, "request_timeout", f"No answer within {seconds:g} s.") from error

    def end(self, session: Session) -> None:
        """Close a session whose environments may be busy, without waiting for it."""
        session.held.leave()
        task = asyncio.ensure_future(self.table.close(session.id))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _asked(self, message: Mapping[str, Any]) -> tuple[int, str, Mapping[str, Any]]:
        """Number, kind and settings of environments that a client wants."""
        limits = self._host.config.vector
        num_envs, kind = message.get("num_envs", 1), message.get("as", "vector")
        settings = message.get("settings") or {}
        if type(num_envs) is not int or not 1 <= num_envs <= limits.max_num_envs:
            said = f"num_envs is {str(num_envs)[:40]}; this server gives a client 1 to {limits.max_num_envs}."
            raise ServerError(422, "invalid_request", said)
        if kind not in ("vector", "worlds") or not isinstance(settings, Mapping):
            said = "Environments are opened as vector or worlds; settings are a dict."
            raise ServerError(422, "invalid_request", said)
        in_use = sum(one.held.num_envs for one in self.table.open_sessions())
        if in_use + num_envs > limits.max_total_envs:
            said = f"{in_use} of {limits.max_total_envs} environments are in use; {num_envs} do not fit."
            raise ServerError(429, "session_limit", said)
        return num_envs, str(kind), settings


class _Client:
    """What one connection says, and is told."""

    def __init__(self, route: VectorRoute, socket: WebSocket) -> None:
        self._route, self._socket = route, socket
        self._session: Session | None = None
        self.is_done = False

    async def answer(self, received: Message) -> bytes | None:
        """The answer to a message; None when the client is gone."""
        if received["type"] == "websocket.disconnect":
            self.is_done = True
            return None
        try:
            return await self._answer(_read(received))
        except (ServerError, MessageError, FrameError, ConfigError, MissingDependencyError) as error:
            return _error(error)
        except Exception as error:
            await self.leave()  # nobody knows in which state they are
            return _error(error, "env_failed")

    async def leave(self) -> None:
        """Close the environments."""
        session, self._session = self._session, None
        if session is not None:
            session.held.leave()
            await self._route.table.close(session.id)

    async def _answer(self, message: Mapping[str, Any]) -> bytes:
        kind = message.get("type")
        if kind == "open":
            await self.leave()
            self._session, told = await self._route.begin(self._socket, message)
            return told
        if kind == "close":
            self.is_done = True
            await self.leave()
            return pack({"type": "closed"})
        if self._session is None:
            raise ServerError(409, "session_lost", "No environments are open; send an open first.")
        session = self._route.table.get(self._session.id)
        try:
            return await self._route.within_limit(session, session.held.answer(message))
        except ServerError:
            self._session = None
            self._route.end(session)
            raise
        except FrameError as error:  # it is the answer that cannot be sent; what was asked has happened
            raise EnvError(f"What the environments gave cannot be sent: {error}") from error


def _read(received: Message) -> Mapping[str, Any]:
    data = received.get("bytes")
    message = unpack(data) if data is not None else None
    if not isinstance(message, dict):
        raise MessageError("A message is binary, of the form in sensorium.core.frames, and an object.")
    return message


def _error(error: Exception, kind: str = "invalid_request") -> bytes:
    """An error as an answer; of unexpected ones only a number is told, the rest is logged."""
    if isinstance(error, ServerError):
        return pack({"type": "error", "kind": error.kind, "message": error.message})
    if isinstance(error, MissingDependencyError):
        kind = "environment_unavailable"
    if isinstance(error, MessageError | FrameError | ConfigError | MissingDependencyError):
        return pack({"type": "error", "kind": kind, "message": str(error)})
    told = json.loads(bytes(error_response(error).body))
    return pack({"type": "error", "kind": kind, "message": told["detail"]})
