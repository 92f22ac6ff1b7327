"""The sandbox as its owner uses it: programs and files, through the supervisor inside."""

import asyncio
import contextlib
import os
import posixpath
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sensorium.envs.sandbox.base import (
    Completed,
    FileEntry,
    KilledBy,
    Process,
    Sandbox,
    SandboxClosed,
    SandboxError,
    SandboxFileError,
    SandboxLimits,
    SandboxUnavailable,
)
from sensorium.envs.sandbox.channel import Channel, raise_for
from sensorium.envs.sandbox.launch import Launched, launch_isolated, launch_unsafe
from sensorium.envs.sandbox.output import RUNAWAY, BoundedOutput, OutputProtocol
from sensorium.envs.sandbox.process import Ended, GuestProcess, Pipes, collect, feed, open_writer
from sensorium.envs.sandbox.runtime import find_runtime

_READY_S = 60.0
_LAST_WORDS_S = 5.0
"""How long output may still arrive after its program and all that it started were killed."""
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")


class GuestSandbox(Sandbox):
    """A supervisor process and the requests to it; see `Sandbox` for what each method promises."""

    def __init__(
        self,
        limits: SandboxLimits,
        *,
        files: dict[str, bytes],
        read_only: dict[str, Path],
        env: dict[str, str],
        python: str,
        hidden_packages: tuple[str, ...],
        allow_unsafe: bool,
    ) -> None:
        self.limits = limits
        self._files, self._read_only, self._extra_env = files, read_only, env
        self._runtime_of, self._hidden, self._allow_unsafe = python, hidden_packages, allow_unsafe
        self._launched: Launched | None = None
        self._channel: Channel | None = None
        self._ready: asyncio.Future[None] | None = None
        self._ends: dict[int, asyncio.Future[Ended]] = {}
        self._processes: list[GuestProcess] = []
        self._links: Path | None = None
        self._pinned: dict[str, int] = {}

    @property
    def alive(self) -> bool:
        """Whether it is open and its supervisor lives."""
        return self._channel is not None and self._channel.is_open

    # Beginning and end

    async def open(self) -> None:
        """Start the supervisor and write the initial files."""
        if self._launched is not None:
            raise SandboxError("This sandbox was opened already; create another one.")
        runtime = await asyncio.to_thread(find_runtime, self._runtime_of)
        try:
            launched = await launch_isolated(self.limits, runtime, self._read_only, self._hidden)
            await self._greet(launched)
        except SandboxUnavailable as error:
            if not self._allow_unsafe:
                raise
            launched = await launch_unsafe(self.limits, runtime, str(error).partition(". ")[0])
            await self._greet(launched)
        self.workdir, self.sockets, self.python = launched.workdir, launched.sockets, runtime.executable
        self.isolation = launched.isolation
        self._env = self._environment(launched, runtime.executable)
        try:
            for path, content in self._files.items():
                await self.write_file(path, content)
        except BaseException:
            await self.close()
            raise

    async def _greet(self, launched: Launched) -> None:
        """Connect to a supervisor and wait for its first word."""
        launched.end.setblocking(False)
        self._launched = launched
        self._ready = asyncio.get_running_loop().create_future()
        self._channel = Channel(launched.end, self._on_event, self._on_close)
        try:
            await asyncio.wait_for(self._ready, _READY_S)
        except BaseException as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(launched.process.wait, 1.0)
            complaint = launched.complaint() or "it did not answer"
            await self.close()
            self._launched = None
            if isinstance(error, SandboxClosed | TimeoutError):
                raise SandboxUnavailable(f"The sandbox does not start here: {complaint}.") from error
            raise

    def _environment(self, launched: Launched, python: str) -> dict[str, str]:
        """What every program inside finds in its environment."""
        folders = [os.path.dirname(python), "/usr/local/bin", "/usr/bin", "/bin"]
        tmp = "/tmp" if launched.isolation.safe else launched.home
        variables = {"PATH": ":".join(folders), "HOME": launched.home, "TMPDIR": tmp, "LANG": "C.UTF-8"}
        variables |= {"USER": "sandbox", "PYTHONDONTWRITEBYTECODE": "1"}
        variables |= {f"{library}_NUM_THREADS": "1" for library in _THREADS}
        return variables | self._extra_env

    async def close(self) -> None:
        """End every process inside and remove every file."""
        if self._channel is not None:
            self._channel.close()
        if self._launched is not None:
            await asyncio.shield(self._launched.end_all())
        for process in self._processes:
            process.detach()
        for descriptor in self._pinned.values():
            os.close(descriptor)
        self._pinned.clear()
        if self._links is not None:
            shutil.rmtree(self._links, ignore_errors=True)
            self._links = None

    def _on_event(self, message: dict[str, Any]) -> None:
        if "ended" in message:
            end = self._end_of(int(message["ended"]))
            if not end.done():
                end.set_result(Ended(int(message["code"]), message.get("killed_by")))
        elif message.get("ready") and self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def _on_close(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(SandboxClosed("The sandbox ended before it was ready."))
        for end in self._ends.values():
            if not end.done():
                end.set_result(Ended(-9, None))

    def _end_of(self, job: int) -> "asyncio.Future[Ended]":
        """The future of a job's end; made by whoever comes first, its event or its reply."""
        if job not in self._ends:
            self._ends[job] = asyncio.get_running_loop().create_future()
        return self._ends[job]

    def _connection(self) -> Channel:
        if self._channel is None:
            raise SandboxClosed("The sandbox is not open: use `async with` or `await sandbox.open()` first.")
        if not self._channel.is_open:
            raise SandboxClosed("The sandbox has ended; open a new one.")
        return self._channel

    # Programs

    async def _begin(
        self, argv: Sequence[str], pipes: Pipes, env: Mapping[str, str] | None, cwd: str, cpu_s: float | None
    ) -> int:
        """Start a program on pipes and return its job number."""
        channel = self._connection()
        if isinstance(argv, str) or not argv or any("\0" in word for word in argv):
            raise SandboxError(f"A program is a list of words without null characters, found {argv!r}.")
        starting = asyncio.ensure_future(
            channel.request(
                "start",
                pipes.theirs,
                argv=list(argv),
                env={**self._env, **(env or {})},
                cwd=self._relative(cwd),
                cpu_s=cpu_s,
            )
        )
        try:
            job, reply, _ = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # It may have been started although nobody waits for it any more.
            job, _, _ = await starting
            await self._stop(channel, job, "wall")
            raise
        finally:
            pipes.close_theirs()
        raise_for(reply, f"Cannot run {argv[0]!r} in the sandbox")
        return job

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
    ) -> Completed:
        """Run a program to its end."""
        began = time.monotonic()
        limit = self.limits.wall_s if timeout_s is None else timeout_s
        pipes = Pipes()
        try:
            job = await self._begin(argv, pipes, env, cwd, self.limits.cpu_s)
        except BaseException:
            pipes.close()
            raise
        channel, end = self._connection(), self._end_of(job)
        killing: set[asyncio.Task[None]] = set()

        def stop(reason: KilledBy) -> None:
            killing.add(asyncio.ensure_future(self._stop(channel, job, reason)))

        outputs = [BoundedOutput(self.limits.output_bytes) for _ in range(2)]
        most = RUNAWAY * self.limits.output_bytes
        protocols = [OutputProtocol(output, most, lambda: stop("output")) for output in outputs]
        ends = (pipes.stdout, pipes.stderr)
        transports = [await collect(*parts) for parts in zip(ends, protocols, strict=True)]
        writer = await open_writer(pipes.stdin)
        feeding = asyncio.ensure_future(feed(writer, stdin))
        try:
            ended = await self._ended(end, limit, stop)
            await asyncio.wait([protocol.ended for protocol in protocols], timeout=_LAST_WORDS_S)
        except BaseException:
            await asyncio.shield(self._stop(channel, job, "wall"))
            raise
        finally:
            self._ends.pop(job, None)
            feeding.cancel()
            if not writer.transport.is_closing():
                writer.transport.abort()
            for transport in transports:
                transport.close()
            await asyncio.gather(*killing, feeding, return_exceptions=True)
        if not channel.is_open:
            raise SandboxClosed("The sandbox ended while a program ran in it.")
        return Completed(
            returncode=ended.returncode,
            stdout=outputs[0].content(),
            stderr=outputs[1].content(),
            stdout_truncated=outputs[0].truncated,
            stderr_truncated=outputs[1].truncated,
            timed_out=ended.killed_by == "wall",
            killed_by=ended.killed_by,
            wall_s=time.monotonic() - began,
        )

    async def _ended(
        self, end: "asyncio.Future[Ended]", limit: float, stop: Callable[[KilledBy], None]
    ) -> Ended:
        """Wait for the end of a program; past `limit` seconds it is ended, or its sandbox if that fails."""
        if not (await asyncio.wait([end], timeout=limit))[0]:
            stop("wall")
            if not (await asyncio.wait([end], timeout=_LAST_WORDS_S))[0]:
                await self.close()
        return await end

    async def _stop(self, channel: Channel, job: int, reason: KilledBy) -> None:
        with contextlib.suppress(SandboxClosed):
            await channel.request("kill", job=job, reason=reason)

    async def start(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str = "."
    ) -> Process:
        """Start a long-lived program."""
        pipes = Pipes()
        try:
            job = await self._begin(argv, pipes, env, cwd, None)
        except BaseException:
            pipes.close()
            raise
        process = GuestProcess(self._connection(), job, self._end_of(job))
        await process.attach(pipes)
        self._processes.append(process)
        return process

    # Files

    def _relative(self, path: str) -> str:
        """A path below the work directory, without `..`.

        Raises:
            SandboxFileError: It leads outside.
        """
        if path == self.workdir or path.startswith(self.workdir + "/"):
            path = path[len(self.workdir) :].lstrip("/")
        clean = posixpath.normpath(path)
        if "\0" in path or clean.startswith(("/", "../")) or clean == "..":
            raise SandboxFileError(
                f"{path!r} is outside the work directory; name a path relative to it ({self.workdir})."
            )
        return clean

    async def _open_file(self, path: str, *, write: bool) -> int:
        _, reply, descriptor = await self._connection().request(
            "open", path=self._relative(path), write=write
        )
        raise_for(reply, f"Cannot {'write' if write else 'read'} {path!r}", SandboxFileError)
        # What came through the socket is checked again: it decides what the host reads and writes.
        if descriptor is None or not stat.S_ISREG(os.fstat(descriptor).st_mode):
            if descriptor is not None:
                os.close(descriptor)
            raise SandboxFileError(f"{path!r} is not a regular file.")
        return descriptor

    async def read_file(self, path: str, *, max_bytes: int = 16_000_000) -> bytes:
        """Read a file of the work directory."""
        with os.fdopen(await self._open_file(path, write=False), "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size > max_bytes:
                raise SandboxFileError(f"{path!r} has {size:,} bytes; at most {max_bytes:,} are read.")
            pieces, left = [], max_bytes
            # It may grow meanwhile: never more than `max_bytes`.
            while left and (piece := file.read(left)):
                pieces.append(piece)
                left -= len(piece)
        return b"".join(pieces)

    async def write_file(self, path: str, content: bytes) -> None:
        """Write a file of the work directory."""
        if len(content) > self.limits.disk_mb * 1024 * 1024:
            raise SandboxFileError(
                f"Cannot write {path!r}: {len(content):,} bytes do not fit in disk_mb={self.limits.disk_mb}."
            )
        with os.fdopen(await self._open_file(path, write=True), "wb", buffering=0) as file:
            rest = memoryview(content)
            try:
                while rest:
                    rest = rest[file.write(rest) :]
            except OSError as error:
                raise SandboxFileError(f"Cannot write {path!r}: {error.strerror}.") from error

    async def remove(self, path: str) -> None:
        """Remove a file, link or tree of the work directory."""
        _, reply, _ = await self._connection().request("remove", path=self._relative(path))
        raise_for(reply, f"Cannot remove {path!r}", SandboxFileError)

    async def list_files(self, path: str = ".", *, max_entries: int = 10_000) -> list[FileEntry]:
        """List everything below a directory."""
        _, reply, _ = await self._connection().request(
            "list", path=self._relative(path), max_entries=max_entries
        )
        raise_for(reply, f"Cannot list {path!r}", SandboxFileError)
        return sorted((FileEntry(*entry) for entry in reply["entries"]), key=lambda entry: entry.path)

    # Sockets

    async def connectable(self, names: Sequence[str], *, timeout_s: float = 30.0) -> list[str]:
        """Wait for sockets that programs bind, and return host paths to connect to."""
        until = time.monotonic() + timeout_s
        for name in names:
            if "/" in name or name in ("", ".", ".."):
                raise SandboxError(f"The name of a socket is one plain word, found {name!r}.")
            while True:
                _, reply, descriptor = await self._connection().request("socket", path=name)
                if descriptor is not None or reply.get("kind") != "FileNotFoundError":
                    break
                if time.monotonic() > until:
                    raise SandboxError(f"No program bound {self.sockets}/{name} within {timeout_s:g} s.")
                await asyncio.sleep(0.01)
            raise_for(reply, f"Cannot connect to {name!r}")
            if descriptor is None or not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                raise SandboxError(f"{name!r} in the sandbox is no socket.")
            self._pin(name, descriptor)
        return [str(self._directory() / name) for name in names]

    def _pin(self, name: str, descriptor: int) -> None:
        """Make a host path that leads to exactly this socket, replacing an older one."""
        link = self._directory() / name
        link.unlink(missing_ok=True)
        link.symlink_to(f"/proc/{os.getpid()}/fd/{descriptor}")
        if name in self._pinned:
            os.close(self._pinned[name])
        self._pinned[name] = descriptor

    def _directory(self) -> Path:
        if self._links is None:
            # Paths of unix sockets have at most 107 bytes.
            place = tempfile.gettempdir()
            self._links = Path(tempfile.mkdtemp(prefix="sockets-", dir="/tmp" if len(place) > 50 else None))
        return self._links
