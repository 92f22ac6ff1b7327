"""Servers in processes of their own, which end with the process that started them."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sensorium.core import SensoriumError

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 25.0
_LOOK_EVERY_S = 0.2
_MAX_RESTARTS, _RESTART_WINDOW_S = 5, 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """One server of a child."""

    name: str
    fd: int
    """Its listening socket, inherited."""
    worker: int = 0
    is_routed: bool = False
    """Whether it stands behind a router, which has limited requests already."""


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """Everything that a child is told, as one line of JSON on its standard input."""

    values: dict[str, Any]
    """The file that names the instances."""
    parts: list[Part]
    urls: dict[str, str]
    secret: str = field(repr=False)
    unsafe_no_sandbox: bool = False

    def line(self) -> bytes:
        """The line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> "ChildPlan":
        """Read the line."""
        values = json.loads(line)
        return cls(**{**values, "parts": [Part(**one) for one in values["parts"]]})


class Child:
    """A process that serves parts of a file.

    Its standard input stays open as long as this process lives: when it ends, however that happens, so does
    the child.

    Args:
        plan: What it serves.
        listeners: Its sockets, which this process keeps open.
    """

    def __init__(self, plan: ChildPlan, listeners: Sequence[socket.socket] = ()) -> None:
        self._plan, self._listeners = plan, tuple(listeners)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        """Start it; returns its number."""
        fds = [part.fd for part in self._plan.parts]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sensorium.servers.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=fds,
            start_new_session=True,  # Ctrl-C reaches this process alone, which stops its children in order
        )
        assert self._process.stdin is not None
        self._process.stdin.write(self._plan.line())
        self._process.stdin.flush()
        return self._process.pid

    @property
    def name(self) -> str:
        """What it serves."""
        return ", ".join(part.name for part in self._plan.parts)

    @property
    def ended(self) -> int | None:
        """How it ended: its exit status, minus the signal that killed it; None while it runs."""
        return self._process.poll() if self._process is not None else None

    async def ready(self) -> None:
        """Wait until it answers.

        Raises:
            SensoriumError: It ended, or took too long.
        """
        process = self._process
        assert process is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                line = await asyncio.to_thread(process.stdout.readline)
        except TimeoutError as error:
            raise SensoriumError(f"{self.name} did not start within {_START_TIMEOUT_S:g} s.") from error
        if line.strip() != b"ready":
            said = line.decode("utf-8", "replace").strip()
            raise SensoriumError(said or f"{self.name} ended before it was up; its log says why.")

    def give_up(self) -> None:
        """Close its sockets, so that clients are refused instead of waiting."""
        for listener in self._listeners:
            listener.close()

    async def stop(self) -> None:
        """Ask it to stop, and make sure that it does."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(process.wait, _STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)
        if process.stdout is not None:
            process.stdout.close()


async def keep_running(children: Sequence[Child], restarted: Callable[[Child, int], None]) -> None:
    """Start children again that end by themselves; one that does so too often stays away.

    Their sockets stay open meanwhile, so that requests wait; sessions of the old process are lost.

    Args:
        children: All of them run.
        restarted: Told of a child and its new number.
    """
    recent: dict[int, list[float]] = {}
    given_up: set[int] = set()
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        for place, child in enumerate(children):
            status = child.ended
            if status is None or place in given_up:
                continue
            now = time.monotonic()
            times = [one for one in recent.get(place, []) if now - one < _RESTART_WINDOW_S]
            recent[place] = [*times, now]
            if len(times) >= _MAX_RESTARTS:
                given_up.add(place)
                child.give_up()
                _log.error("%s ended again (status %s) and is not started any more", child.name, status)
                continue
            _log.error("%s ended (status %s); its episodes are lost, it is started again", child.name, status)
            restarted(child, child.start())
            try:
                await child.ready()
            except SensoriumError as error:
                _log.error("%s", error)


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it dies (Linux only)."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGTERM)
    if os.getppid() == 1:  # it died before
        os.kill(os.getpid(), signal.SIGTERM)
