"""One WebSocket to a resources server of ours, which is one set of environments there."""

import os
from contextlib import suppress
from typing import Any

from sensorium.core import EnvError, require
from sensorium.core.frames import FrameError, pack, unpack

PATH = "/vector"
"""Of the WebSocket."""
_MAX_REPLY_BYTES = 1024 * 1024 * 1024
_CLOSE_TIMEOUT_S = 5.0
_PING_S = 30.0
_PONG_S = 300.0
"""A server may be busy so long, e.g. compiling, without being thought gone."""


class RemoteError(EnvError):
    """The server answered with an error; with most kinds the environments go on.

    Args:
        message: Its own.
        kind: One word for programs, e.g. ``invalid_request``, ``session_limit`` or ``env_failed``.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message, kind)
        self.message, self.kind = message, kind

    def __str__(self) -> str:
        return self.message


class Connection:
    """Asks one question after another.

    Args:
        url: Of the server, ``http://host:port``.
        api_key: That the server wants; by default what the environment variable ``SENSORIUM_API_KEY`` holds.
        timeout_s: Of connecting, and of each answer.

    Raises:
        EnvError: The server cannot be reached or refuses the connection.
        MissingDependencyError: `websockets` is not installed.
    """

    def __init__(self, url: str, *, api_key: str | None = None, timeout_s: float = 300.0) -> None:
        self._client = require("websockets.sync.client", extra="serve", purpose="a remote environment")
        self._errors = require("websockets.exceptions", extra="serve", purpose="a remote environment")
        self._url, self._timeout_s = url.rstrip("/"), timeout_s
        key = api_key or os.environ.get("SENSORIUM_API_KEY") or None
        self._socket: Any = self._connected(key)

    def _connected(self, key: str | None) -> Any:
        address = "ws" + self._url.removeprefix("http") if self._url.startswith("http") else self._url
        try:
            return self._client.connect(
                address + PATH,
                additional_headers={"Authorization": f"Bearer {key}"} if key else None,
                compression=None,  # costs more than it saves
                max_size=_MAX_REPLY_BYTES,
                open_timeout=self._timeout_s,
                close_timeout=_CLOSE_TIMEOUT_S,
                ping_interval=_PING_S,
                ping_timeout=_PONG_S,
                proxy=None,
            )
        except self._errors.InvalidStatus as error:
            body = bytes(error.response.body or b"").decode("utf-8", "replace")[:500]
            status = error.response.status_code
            raise RemoteError(f"{self._url} refused the connection ({status}): {body}", "refused") from error
        except (OSError, TimeoutError, ValueError, self._errors.WebSocketException) as error:
            raise EnvError(
                f"No resources server can be reached at {self._url} ({error}). Is `sensorium serve` running "
                "there, and is it the address of an environment?"
            ) from error

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message; returns the answer.

        Raises:
            RemoteError: The answer is an error.
            EnvError: There is no answer, or it cannot be read; the connection is closed then.
        """
        socket = self._socket
        if socket is None:
            raise EnvError(f"The connection to {self._url} is closed; make a new environment.")
        asked = pack(message)
        try:
            socket.send(asked)
            reply = unpack(socket.recv(self._timeout_s, decode=False))
        except TimeoutError as error:
            self.close()
            raise EnvError(f"{self._url} did not answer within {self._timeout_s:g} s.") from error
        except self._errors.ConnectionClosed as error:
            self.close()
            raise EnvError(f"{self._url} closed the connection ({error}); make a new environment.") from error
        except FrameError as error:
            self.close()
            raise EnvError(f"{self._url} answered what cannot be read: {error}") from error
        except BaseException:  # Ctrl-C: the answer that still comes belongs to no question
            self.close()
            raise
        if not isinstance(reply, dict):
            self.close()
            raise EnvError(f"{self._url} answered what is no message of a resources server.")
        if reply.get("type") == "error":
            raise RemoteError(str(reply.get("message")), str(reply.get("kind")))
        return reply

    def close(self) -> None:
        """Hang up: the server closes the environments. May be called again."""
        socket, self._socket = self._socket, None
        if socket is not None:
            with suppress(OSError, self._errors.WebSocketException):
                socket.close()
