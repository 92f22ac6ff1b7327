"""Output of a program, bounded while it streams: the beginning and the end are kept."""

import asyncio
import collections
from collections.abc import Callable

RUNAWAY = 64
"""A stream that exceeds its bound by this factor is cut off with its program."""


class BoundedOutput:
    """Collects at most `limit` bytes: half of them from the beginning, half from the end."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail: collections.deque[bytes] = collections.deque()
        self._tail_size = 0
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Add what was read."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        return self.total > self._head_limit + self._tail_limit

    def content(self) -> bytes:
        """What was kept, with a line in place of what was not."""
        tail = b"".join(self._tail)[-self._tail_limit :] if self._tail_limit else b""
        missing = self.total - len(self._head) - len(tail)
        if missing <= 0:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n... [{missing} bytes left out] ...\n".encode() + tail


class OutputProtocol(asyncio.Protocol):
    """Feeds a pipe into a `BoundedOutput`; reports a runaway once."""

    def __init__(self, output: BoundedOutput, most: int, on_runaway: Callable[[], None]) -> None:
        self._output, self._most, self._on_runaway = output, most, on_runaway
        self._told = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        """Keep what fits."""
        self._output.feed(data)
        if self._output.total > self._most and not self._told:
            self._told = True
            self._on_runaway()

    def connection_lost(self, exc: Exception | None) -> None:
        """The program's end of the pipe is closed."""
        if not self.ended.done():
            self.ended.set_result(None)
