"""One WebSocket to an OpenEnv server, which is one session there."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sensorium.core import EnvError, require
from sensorium.envs.episode import EpisodeError, Failure, Stage

_CLOSE_TIMEOUT_S = 5.0
_INVALID = "VALIDATION_ERROR"
_FULL = "CAPACITY_REACHED"
_MAX_ERROR_CHARS = 1000


class OpenEnvRefusedError(EnvError):
    """The server answered with an error, and the session goes on.

    Args:
        message: Its own.
        code: Its own, e.g. ``VALIDATION_ERROR``.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message, code)
        self.message, self.code = message, code

    def __str__(self) -> str:
        return self.message

    @property
    def is_invalid(self) -> bool:
        """Whether it is the message that did not fit."""
        return self.code == _INVALID


class OpenEnvConnection:
    """A session on a server.

    Args:
        url: Address of the server.
        headers: Sent with every request.
        connect_timeout_s: Of connecting, and of asking for a schema.
        timeout_s: Of one answer.
        max_message_mb: Longest answer, megabytes.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        connect_timeout_s: float,
        timeout_s: float,
        max_message_mb: float,
    ) -> None:
        self._aiohttp = require("aiohttp", extra="observe", purpose="an OpenEnv server")
        base = url.rstrip("/").removesuffix("/ws")
        self._base = base.replace("ws", "http", 1) if base.startswith("ws") else base
        self._headers = dict(headers)
        self._connect_timeout_s, self._timeout_s = connect_timeout_s, timeout_s
        self._max_bytes = int(max_message_mb * 2**20)
        self._session: Any = None
        self._socket: Any = None

    async def open(self) -> None:
        """Connect.

        Raises:
            EpisodeError: The server cannot be reached.
        """
        self._session = self._aiohttp.ClientSession(headers=self._headers)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                self._socket = await self._session.ws_connect(
                    f"{self._base}/ws", max_msg_size=self._max_bytes, heartbeat=None
                )
        except (TimeoutError, OSError, self._aiohttp.ClientError) as error:
            await self.close()
            said = f"The OpenEnv server at {self._base} cannot be reached: {error!r}."
            raise _failed("transport_unreachable", said, "seed") from error

    async def get(self, path: str) -> Mapping[str, Any]:
        """What a path answers; empty when the server does not know it.

        Raises:
            EpisodeError: It does not answer.
        """
        try:
            async with (
                asyncio.timeout(self._connect_timeout_s),
                self._session.get(self._base + path) as reply,
            ):
                if reply.status != 200:
                    return {}
                body = b""
                async for chunk in reply.content.iter_chunked(2**16):
                    body += chunk
                    if len(body) > self._max_bytes:
                        return {}
                found = json.loads(body)
                return found if isinstance(found, dict) else {}
        except ValueError:
            return {}
        except (TimeoutError, OSError, self._aiohttp.ClientError) as error:
            said = f"The OpenEnv server did not answer {path}: {error!r}."
            raise _failed("transport_peer_drop", said, "seed") from error

    async def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a message; returns the data of the answer.

        Raises:
            OpenEnvRefusedError: The answer is an error.
            EpisodeError: No answer came, the connection broke or the server is full.
        """
        stage: Stage = "seed" if message["type"] == "reset" else "agent"
        if self._socket is None:
            raise _failed("transport_peer_drop", "The connection to the OpenEnv server is closed.", stage)
        try:
            async with asyncio.timeout(self._timeout_s):
                with suppress(ConnectionError):  # why it was closed may lie there to be read
                    await self._socket.send_str(json.dumps(message))
                received = await self._socket.receive()
        except TimeoutError as error:
            await self.close()  # the answer may come later, and would be taken for the next one
            said = f"The OpenEnv server did not answer within {self._timeout_s:g} s."
            raise _failed("transport_timeout", said, stage) from error
        if received.type is not self._aiohttp.WSMsgType.TEXT:
            what = f"{received.type.name}: {received.data} {received.extra or ''}".strip()
            await self.close()
            said = f"The OpenEnv server closed the connection ({what})."
            raise _failed("transport_peer_drop", said, stage)
        return self._data(received.data, stage)

    async def close(self) -> None:
        """End the session; may be called again."""
        session, socket = self._session, self._socket
        self._session = self._socket = None
        if socket is not None:
            with suppress(TimeoutError, OSError, self._aiohttp.ClientError):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    if not socket.closed:
                        await socket.send_str('{"type": "close"}')
                    await socket.close()
        if session is not None:
            await session.close()

    @staticmethod
    def _data(text: str, stage: Stage) -> Mapping[str, Any]:
        try:
            answer = json.loads(text)
            kind, data = answer["type"], answer["data"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            said = f"The OpenEnv server sent {text[:200]!r}."
            raise _failed("answer_unreadable", said, stage) from error
        if not isinstance(data, dict):
            raise _failed("answer_unreadable", f"The OpenEnv server sent {text[:200]!r}.", stage)
        if kind != "error":
            return data
        code, said = str(data.get("code")), str(data.get("message"))[:_MAX_ERROR_CHARS]
        if code == _FULL:
            raise _failed("agent_request_failed", f"The OpenEnv server is full: {said}", stage)
        problems = data.get("errors")
        if isinstance(problems, list):
            said = "; ".join(_problem(one) for one in problems[:5]) or said
        raise OpenEnvRefusedError(said, code)


def _problem(problem: Any) -> str:
    if not isinstance(problem, dict):
        return str(problem)[:200]
    place = ".".join(map(str, problem.get("loc") or ())) or "action"
    return f"{place}: {problem.get('msg')}"


def _failed(kind: str, reason: str, stage: Stage) -> EpisodeError:
    return EpisodeError(Failure(kind=kind, reason=reason, stage=stage))
