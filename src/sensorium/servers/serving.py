"""Several apps on sockets of their own in one event loop: up together, down together."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import uvicorn

from sensorium.core import ConfigError, SensoriumError
from sensorium.core.leaving import leave_within

_log = logging.getLogger(__name__)
_BACKLOG = 2048
_NUM_THREADS = 64
_KEEP_ALIVE_S = 120
"""Longer than clients keep idle connections, so that none is closed while a request is on its way."""
_LEAVE_S = 10.0
"""For threads of environments, once all is closed."""
_MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_PING_S, _PONG_S = 30.0, 120.0
"""A client that learns holds its interpreter for long, and is not gone for that."""
GRACE_S = 15.0
"""What is under way at a stop is given so long to finish."""


class Served(NamedTuple):
    """One app and where it listens."""

    name: str
    app: Any
    listener: socket.socket


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(host: str, port: int, name: str) -> socket.socket:
    """A listening socket.

    Raises:
        ConfigError: The port is taken, or the address is none of this machine.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, proto)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        said = error.strerror or error
        raise ConfigError(
            f"{name} cannot listen on {host}:{port}: {said}. Is another server there? Choose another port "
            "(port: 0 takes a free one)."
        ) from error
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket, host: str) -> str:
    """Where a client on this machine reaches a socket."""
    port = listener.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
    return (
        f"http://[{shown}]:{port}" if ":" in shown and not shown.startswith("[") else f"http://{shown}:{port}"
    )


async def serve(
    apps: Sequence[Served],
    ready: Callable[[], None],
    stop: asyncio.Event,
    *,
    grace_s: float = GRACE_S,
    stopping: Callable[[], None] | None = None,
) -> None:
    """Serve until told to stop.

    Args:
        apps: What to serve.
        ready: Called once all answer.
        stop: Ends it: apps with ``app.state.drain`` finish or record what is under way first.
        grace_s: Seconds for that.
        stopping: Called when it begins to stop.

    Raises:
        SensoriumError: A server did not start.
    """
    threads = ThreadPoolExecutor(_NUM_THREADS, thread_name_prefix="serving")  # tools may block them
    asyncio.get_running_loop().set_default_executor(threads)
    servers = [_Server(_config(one.app, grace_s)) for one in apps]
    tasks = [
        asyncio.create_task(server.serve(sockets=[one.listener]), name=one.name)
        for server, one in zip(servers, apps, strict=True)
    ]
    try:
        await _started(servers, tasks)
        ready()
        waiting = asyncio.create_task(stop.wait())
        await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if stopping is not None:
            stopping()
        drains = [drain for one in apps if (drain := getattr(one.app.state, "drain", None)) is not None]
        await asyncio.gather(*(drain(grace_s) for drain in drains), return_exceptions=True)
    finally:
        for server in servers:
            server.should_exit = True
        done = await asyncio.gather(*tasks, return_exceptions=True)
        for one, result in zip(apps, done, strict=True):
            if isinstance(result, Exception):
                _log.error("%s ended with an error", one.name, exc_info=result)


def stop_on_signals(stop: asyncio.Event) -> None:
    """Ctrl-C and SIGTERM stop; the second time at once."""

    def asked(number: int) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked, number)


def run(main: Any) -> Any:
    """Run a coroutine, which is all that the process does, in the fastest event loop that is installed."""
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        factory = None
    status = 1
    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            made = runner.run(main)
            status = 0
        finally:
            leave_within(_LEAVE_S, status)
    return made


def _config(app: Any, grace_s: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        lifespan="on",
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # frames and numbers: costs more than it saves
        ws_max_size=getattr(app.state, "max_message_bytes", _MAX_MESSAGE_BYTES),
        ws_ping_interval=_PING_S,
        ws_ping_timeout=_PONG_S,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(grace_s)),
        backlog=_BACKLOG,
    )


async def _started(servers: Sequence[_Server], tasks: Sequence[asyncio.Task[None]]) -> None:
    while not all(server.started for server in servers):
        for task in tasks:
            if task.done():
                cause = task.exception() if not task.cancelled() else None
                raise SensoriumError(
                    f"The server {task.get_name()} did not start; its log says why."
                ) from cause
        await asyncio.sleep(0.005)
