"""What a sandbox promises: limits, results, files, errors and the interface every caller programs against.

    async with Sandbox.create(SandboxLimits(wall_s=20), files={"a.py": b"print(1)"}) as sandbox:
        done = await sandbox.run([sandbox.python, "a.py"])

Inside: `/box` (the private, writable, size-limited work directory and current directory of everything that
runs), a private `/tmp`, the Python runtime read-only, no network, no host files, no host processes. Where the
sandbox is not isolating (`allow_unsafe`) these places are host directories: use `sandbox.workdir` and
`sandbox.python` instead of literal paths.
"""

import abc
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pydantic import Field

from sensorium.core.config import Config
from sensorium.core.errors import EnvError

KilledBy = Literal["memory", "cpu", "wall", "processes", "disk", "output"]
"""The limit that ended a process."""


class SandboxError(EnvError):
    """A sandbox, or something asked of it, failed for a reason that is not the program inside."""


class SandboxUnavailable(SandboxError):
    """Untrusted code cannot be isolated on this machine; the message says how to mend it."""


class SandboxClosed(SandboxError):
    """The sandbox has ended: closed by its owner, or its supervisor was killed (out of memory...)."""


class SandboxFileError(SandboxError):
    """A file of the work directory cannot be read or written: missing, too large, a link, disk full."""


class SandboxLimits(Config):
    """What everything inside one sandbox may use, all of it finite."""

    cpu_s: float = Field(default=60.0, gt=0, le=86_400)
    """CPU seconds of one `run`, all its processes together; `start`ed processes are not limited."""
    wall_s: float = Field(default=60.0, gt=0, le=86_400)
    """Seconds one `run` may take where the call names no time-out."""
    memory_mb: int = Field(default=1024, ge=64, le=1_048_576)
    """Memory of all processes together in MiB; files (`disk_mb`) are counted apart."""
    max_processes: int = Field(default=64, ge=4, le=10_000)
    """Processes and threads at the same time, all together."""
    output_bytes: int = Field(default=1_000_000, ge=1_000, le=1_000_000_000)
    """Bytes kept of stdout and of stderr each; of more, the beginning and the end are kept. A program that
    writes more than 64 times as much is ended."""
    disk_mb: int = Field(default=256, ge=1, le=1_048_576)
    """MiB of files in the work directory; `/tmp` and `/dev/shm` may hold as much again, each."""
    max_files: int = Field(default=20_000, ge=16, le=10_000_000)
    """Files and directories at the same time, all together."""
    open_files: int = Field(default=256, ge=32, le=1_048_576)
    """Open files of one process."""


@dataclass(frozen=True)
class Isolation:
    """How strong a sandbox is on this machine, and by what means."""

    safe: bool
    """False: a plain process of the host's user; only limits, no isolation."""
    mechanism: str
    """`bubblewrap 0.8, user nobody in namespaces` or `none`."""
    memory: str
    """How memory of the tree is limited, e.g. `watchdog over the tree, RLIMIT_DATA per process`."""
    processes: str
    """How the number of processes is limited."""
    system_calls: str
    """Which system calls are refused."""
    warning: str = ""
    """A sentence to show loudly; empty where nothing is amiss."""

    def __str__(self) -> str:
        """One line for logs and `--help`-like listings."""
        parts = [f"{self.mechanism}; memory: {self.memory}; processes: {self.processes}"]
        parts.append(f"system calls: {self.system_calls}")
        return f"{'; '.join(parts)}{' WARNING: ' + self.warning if self.warning else ''}"


@dataclass(frozen=True)
class Completed:
    """A program that ran to its end, or was ended."""

    returncode: int
    """Exit status; negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    """The middle of stdout was left out; a line in its place says how many bytes."""
    stderr_truncated: bool
    timed_out: bool
    """Ended because it took longer than its time-out; `killed_by` is then `wall`."""
    killed_by: KilledBy | None
    """The limit that ended it; None where it ended by itself."""
    wall_s: float

    @property
    def ok(self) -> bool:
        """It ended by itself with status 0."""
        return self.returncode == 0 and self.killed_by is None


@dataclass(frozen=True)
class FileEntry:
    """One file of the work directory, as `Sandbox.list_files` tells it."""

    path: str
    """Relative to the work directory, `/` between parts."""
    kind: Literal["file", "directory", "link", "other"]
    size: int
    """Bytes; 0 for anything that is no file."""
    modified_ns: int


class Process(abc.ABC):
    """A long-lived program in a sandbox, e.g. a Jupyter kernel. It ends with its sandbox at the latest."""

    stdin: asyncio.StreamWriter
    """Its standard input; the end that the host writes to."""
    stdout: asyncio.StreamReader
    """Its standard output. Reading is optional: what is not read is held back (64 KiB), never dropped."""
    stderr: asyncio.StreamReader

    @property
    @abc.abstractmethod
    def alive(self) -> bool:
        """Whether it has not ended yet."""

    @property
    @abc.abstractmethod
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""

    @property
    @abc.abstractmethod
    def killed_by(self) -> KilledBy | None:
        """The limit that ended it, if one did."""

    @abc.abstractmethod
    async def wait(self) -> int:
        """Wait for its end and return the exit status."""

    @abc.abstractmethod
    async def interrupt(self) -> None:
        """Send SIGINT to its process group, as Ctrl-C does; nothing happens where it has ended."""

    @abc.abstractmethod
    async def kill(self) -> None:
        """End it and everything it started; returns when it has ended. Harmless when repeated."""


class Sandbox(abc.ABC):
    """A private place to run programs that nobody trusts. Everything in it is gone when it closes."""

    workdir: str
    """Work directory as the programs inside see it: `/box`."""
    python: str
    """Interpreter as the programs inside see it: first word of a command."""
    sockets: str
    """Directory inside where programs bind unix sockets that the host connects to (see `connectable`)."""
    isolation: Isolation
    limits: SandboxLimits

    @staticmethod
    def create(
        limits: SandboxLimits | None = None,
        *,
        files: Mapping[str, bytes] | None = None,
        read_only: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
        python: str = sys.executable,
        hidden_packages: Sequence[str] = (),
        allow_unsafe: bool = False,
    ) -> "Sandbox":
        """Describe a sandbox; `async with` or `await sandbox.open()` starts it.

        Args:
            limits: Defaults to `SandboxLimits()`.
            files: Contents of the work directory at the start, relative path -> bytes.
            read_only: Absolute path inside -> host file or directory shown there read-only.
            env: Variables for everything inside, over a small clean set; nothing of the host's is inherited.
            python: Interpreter (of a virtual environment) whose packages are importable inside, read-only.
            hidden_packages: Importable names (`toolz`) of that interpreter that cannot be seen inside. This
                package is always hidden: it knows how tasks and their answers are made.
            allow_unsafe: Where isolation does not work, run plain limited processes instead of refusing.
        """
        from sensorium.envs.sandbox.session import GuestSandbox

        return GuestSandbox(
            limits or SandboxLimits(),
            files=dict(files or {}),
            read_only=dict(read_only or {}),
            env=dict(env or {}),
            python=python,
            hidden_packages=tuple(hidden_packages),
            allow_unsafe=allow_unsafe,
        )

    async def __aenter__(self) -> Self:
        """Start it."""
        await self.open()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        await self.close()

    @staticmethod
    async def probe(python: str = sys.executable) -> Isolation:
        """Try whether this machine can isolate, by opening an empty sandbox; for servers before they listen.

        Raises:
            SandboxUnavailable: It cannot; the message says how to mend it.
        """
        async with Sandbox.create(python=python) as sandbox:
            return sandbox.isolation

    @abc.abstractmethod
    async def open(self) -> None:
        """Start the sandbox.

        Raises:
            SandboxUnavailable: This machine cannot isolate and `allow_unsafe` is not set.
            SandboxError: It did not start, or the initial files do not fit.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """End every process inside and remove every file. Harmless when repeated."""

    @property
    @abc.abstractmethod
    def alive(self) -> bool:
        """Whether it is open and its supervisor lives."""

    @abc.abstractmethod
    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
    ) -> Completed:
        """Run a program to its end; whatever it left running is ended too (not what `start` started).

        Args:
            argv: Program and arguments; the program is found on the inner PATH.
            stdin: Given to it, then end of file.
            timeout_s: Seconds; None: `limits.wall_s`.
            env: Variables over those of the sandbox.
            cwd: Relative to the work directory.

        Raises:
            SandboxError: The program does not exist or cannot be executed.
            SandboxClosed: The sandbox is not open or died.
        """

    @abc.abstractmethod
    async def start(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str = "."
    ) -> Process:
        """Start a long-lived program; arguments and errors as in `run`."""

    @abc.abstractmethod
    async def read_file(self, path: str, *, max_bytes: int = 16_000_000) -> bytes:
        """Read a file of the work directory (relative path, or absolute below `workdir`); links are refused.

        Raises:
            SandboxFileError: Not there, no regular file, behind a link, outside, or larger than `max_bytes`.
        """

    @abc.abstractmethod
    async def write_file(self, path: str, content: bytes) -> None:
        """Write a file of the work directory, making directories; never through a link.

        Raises:
            SandboxFileError: Outside, behind a link, a directory, or the disk is full.
        """

    @abc.abstractmethod
    async def remove(self, path: str) -> None:
        """Remove a file, link or tree of the work directory; nothing happens where it is not there."""

    @abc.abstractmethod
    async def list_files(self, path: str = ".", *, max_entries: int = 10_000) -> list[FileEntry]:
        """List everything below a directory, sorted by path, links not followed, at most `max_entries`."""

    @abc.abstractmethod
    async def connectable(self, names: Sequence[str], *, timeout_s: float = 30.0) -> list[str]:
        """Wait for sockets that programs bind in `sockets`, and return host paths to connect to.

        A kernel started with `transport="ipc"`, `ip=f"{sandbox.sockets}/kernel"`, ports 1 to 5 binds
        `kernel-1` ... `kernel-5`; `await sandbox.connectable(["kernel-1", ..., "kernel-5"])` gives host paths
        `<directory>/kernel-1` ..., all in one directory, so that the host's client uses
        `ip=f"{directory}/kernel"`. They lead to exactly the sockets found (a link or a later replacement made
        inside cannot redirect the host), work across the network namespace, and stay until `close`. Call it
        again after a restart of the kernel.

        Raises:
            SandboxError: They do not appear in time, or are no sockets.
        """
