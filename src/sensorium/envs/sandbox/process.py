"""Programs inside a sandbox, from the host's side: their pipes and their end."""

import asyncio
import contextlib
import os
from dataclasses import dataclass

from sensorium.envs.sandbox.base import KilledBy, Process
from sensorium.envs.sandbox.channel import Channel
from sensorium.envs.sandbox.output import OutputProtocol


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    returncode: int
    killed_by: KilledBy | None


class Pipes:
    """Three pipes to a program: the host's ends and, until they are passed on, the program's."""

    def __init__(self) -> None:
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        self.stdin, self.stdout, self.stderr = stdin[1], stdout[0], stderr[0]
        self.theirs = [stdin[0], stdout[1], stderr[1]]
        for fd in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(fd, False)

    def close_theirs(self) -> None:
        """Close the program's ends here."""
        for fd in self.theirs:
            os.close(fd)
        self.theirs = []

    def close(self) -> None:
        """Close everything; for when the program did not start."""
        self.close_theirs()
        for fd in (self.stdin, self.stdout, self.stderr):
            os.close(fd)


async def collect(fd: int, protocol: OutputProtocol) -> asyncio.ReadTransport:
    """Read a pipe until it ends or the transport is closed."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(fd, "rb", buffering=0))
    return transport


async def open_writer(fd: int) -> asyncio.StreamWriter:
    """A writer to a pipe."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(fd, "wb", buffering=0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def open_reader(fd: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """A reader of a pipe that holds the program back when nobody reads."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", buffering=0)
    )
    return reader, transport


async def feed(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write `data` and close; a program that does not read it is no error."""
    with contextlib.suppress(OSError):
        writer.write(data)
        await writer.drain()
    writer.close()


class GuestProcess(Process):
    """A long-lived program; see `Process`."""

    def __init__(self, channel: Channel, job: int, end: "asyncio.Future[Ended]") -> None:
        self._channel, self._job, self._end = channel, job, end
        self._transports: list[asyncio.BaseTransport] = []

    async def attach(self, pipes: Pipes) -> None:
        """Open its three streams."""
        self.stdin = await open_writer(pipes.stdin)
        self.stdout, out = await open_reader(pipes.stdout)
        self.stderr, err = await open_reader(pipes.stderr)
        self._transports = [self.stdin.transport, out, err]
        self._end.add_done_callback(lambda _: self.stdin.transport.close())

    def detach(self) -> None:
        """Close its streams."""
        for transport in self._transports:
            transport.close()

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return not self._end.done()

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._end.result().returncode if self._end.done() else None

    @property
    def killed_by(self) -> KilledBy | None:
        """The limit that ended it, if one did."""
        return self._end.result().killed_by if self._end.done() else None

    async def wait(self) -> int:
        """Wait for its end and return the exit status."""
        return (await asyncio.shield(self._end)).returncode

    async def interrupt(self) -> None:
        """Send SIGINT to its process group."""
        await self._tell("interrupt")

    async def kill(self) -> None:
        """End it and everything it started."""
        await self._tell("kill")
        await self.wait()

    async def _tell(self, op: str) -> None:
        if self.alive and self._channel.is_open:
            await self._channel.request(op, job=self._job)
