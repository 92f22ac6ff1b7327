"""The host's end of the socket to a sandbox's supervisor: requests, replies and events, with descriptors."""

import array
import asyncio
import collections
import contextlib
import json
import os
import socket
from collections.abc import Callable
from typing import Any

from sensorium.envs.sandbox.base import SandboxClosed, SandboxError
from sensorium.envs.sandbox.guest.wire import frame, receive_from

MAX_FRAME = 64 * 1024 * 1024
"""Bytes of the largest reply that is read; a supervisor that announces more has been tampered with."""


class Channel:
    """Numbers requests and hands each reply to whoever waits for it.

    Args:
        end: A connected, non-blocking stream socket; owned from now on.
        on_event: Called with every message that is no reply.
        on_close: Called once when the other end has gone.
    """

    def __init__(
        self, end: socket.socket, on_event: Callable[[dict[str, Any]], None], on_close: Callable[[], None]
    ) -> None:
        self._socket = end
        self._on_event, self._on_close = on_event, on_close
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._descriptors: collections.deque[int] = collections.deque()
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], int | None]]] = {}
        self._number = 0
        self._sending = asyncio.Lock()
        self.is_open = True
        self._loop.add_reader(end.fileno(), self._read)

    async def request(
        self, op: str, descriptors: list[int] | None = None, **fields: Any
    ) -> tuple[int, dict[str, Any], int | None]:
        """Send a request and wait for its reply.

        Args:
            op: Name of the request.
            descriptors: Passed along; they stay open here too.
            fields: Plain values.

        Returns:
            The request's number, the reply, and a descriptor (owned by the caller) where the reply has one.

        Raises:
            SandboxClosed: The other end has gone.
        """
        self._number += 1
        number = self._number
        passed = descriptors or []
        message = {"op": op, "number": number, "descriptors": len(passed), **fields}
        future: asyncio.Future[tuple[dict[str, Any], int | None]] = self._loop.create_future()
        self._waiting[number] = future
        try:
            async with self._sending:
                await self._send(frame(message), passed)
            reply, descriptor = await future
        except OSError as error:
            raise SandboxClosed(f"The sandbox has ended: {error.strerror}.") from error
        finally:
            self._waiting.pop(number, None)
            future.cancel()
        return number, reply, descriptor

    async def _send(self, data: bytes, descriptors: list[int]) -> None:
        if not self.is_open:
            raise SandboxClosed("The sandbox has ended; open a new one.")
        rights = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        )
        sent = 0
        while sent == 0:
            try:
                sent = self._socket.sendmsg([data], rights)
            except BlockingIOError:
                await asyncio.sleep(0.001)
        # A frame that was begun must be finished, or the next one could not be read.
        await asyncio.shield(self._loop.sock_sendall(self._socket, data[sent:]))

    def _read(self) -> None:
        try:
            data, descriptors = receive_from(self._socket, 1 << 18)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, descriptors = b"", []
        self._descriptors.extend(descriptors)
        self._buffer += data
        if not data or not self._deliver():
            self.close()

    def _deliver(self) -> bool:
        """Hand out every whole frame; False where what was read is no frame."""
        while len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big")
            if size > MAX_FRAME:
                return False
            if len(self._buffer) < 4 + size:
                return True
            text = bytes(self._buffer[4 : 4 + size])
            del self._buffer[: 4 + size]
            try:
                message = json.loads(text)
            except ValueError:
                return False
            number = message.get("reply")
            if number is None:
                self._on_event(message)
                continue
            descriptor = self._descriptors.popleft() if message.get("passes") and self._descriptors else None
            future = self._waiting.get(number)
            if future is not None and not future.done():
                future.set_result((message, descriptor))
            elif descriptor is not None:
                os.close(descriptor)
        return True

    def close(self) -> None:
        """Hang up; whoever waits for a reply gets `SandboxClosed`. Harmless when repeated."""
        if not self.is_open:
            return
        self.is_open = False
        with contextlib.suppress(RuntimeError):  # the loop may be closed
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SandboxClosed("The sandbox ended before it answered."))
        self._on_close()


def raise_for(reply: dict[str, Any], what: str, error_type: type[SandboxError] = SandboxError) -> None:
    """Turn an error in a reply into an exception.

    Raises:
        SandboxError: (or `error_type`) The reply tells an error.
    """
    if "error" in reply:
        raise error_type(f"{what}: {reply['error']} ({reply.get('kind', 'error')}).")
