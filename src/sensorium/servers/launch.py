"""Starts what a file names, says when it is up, and stops it."""

import asyncio
import json
import logging
import os
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorium.core.files import atomic_write_json
from sensorium.servers.build import build_instance
from sensorium.servers.config import ResourcesConfig
from sensorium.servers.head import Entry, build_head_app
from sensorium.servers.layout import Instance, Layout
from sensorium.servers.processes import Child, ChildPlan, Part, keep_running
from sensorium.servers.routing import Router, build_router_app
from sensorium.servers.runtime import Runtime
from sensorium.servers.security import Signer
from sensorium.servers.serving import GRACE_S, Served, bind, serve, stop_on_signals, url_of

_SOON_S = 2.0
"""Who waits longer is told what for."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How to start."""

    processes: bool = False
    """A process for each server instead of one for all."""
    unsafe_no_sandbox: bool = False
    ready_file: Path | None = None
    """Written once all answer: the addresses as JSON."""
    as_json: bool = False
    """Say it as JSON on standard output."""


async def launch(layout: Layout, options: LaunchOptions, say: Callable[[str], None] = print) -> None:
    """Start all, serve until Ctrl-C or SIGTERM, stop all.

    Args:
        layout: What to start.
        options: How.
        say: Where lines for people go.

    Raises:
        ConfigError: Settings do not fit, or a port is taken.
        SensoriumError: A server did not start.
    """
    began = time.monotonic()
    stop = asyncio.Event()
    stop_on_signals(stop)
    launched = _Launch(layout, options)
    tell = (lambda line: None) if options.as_json else say
    waiting = asyncio.get_running_loop().call_later(_SOON_S, tell, f"starting {launched.names} ...")
    try:
        launched.bind()
        apps = await launched.build()

        def ready() -> None:
            waiting.cancel()
            launched.announce(say, time.monotonic() - began)

        def stopping() -> None:
            tell(f"stopping; episodes under way get {GRACE_S:g} s, Ctrl-C again stops at once")

        keeping = asyncio.create_task(launched.keep_running())
        try:
            await serve(apps, ready, stop, stopping=stopping)
        finally:
            keeping.cancel()
    finally:
        waiting.cancel()
        await launched.close()
        if options.ready_file is not None:
            options.ready_file.unlink(missing_ok=True)
    tell("stopped")


class _Launch:
    def __init__(self, layout: Layout, options: LaunchOptions) -> None:
        self._layout, self._options = layout, options
        self._runtime = Runtime(
            signer=Signer(secrets.token_bytes(32)),
            urls=dict(layout.elsewhere),
            api_key=_own_key(layout),
            unsafe_no_sandbox=options.unsafe_no_sandbox,
        )
        self._listeners: dict[str, Any] = {}
        self._head: Any = None
        self._children: list[Child] = []
        self._entries: list[Entry] = []

    @property
    def names(self) -> str:
        """What is started."""
        return ", ".join(one.name for one in self._layout.instances)

    def bind(self) -> None:
        """Take all ports before anything is started, so that a taken one is said at once."""
        for one in self._layout.instances:
            listener = bind(one.config.host, one.config.port, one.name)
            self._listeners[one.name] = listener
            self._runtime.urls[one.name] = url_of(listener, one.config.host)
        if self._layout.head.enabled:
            self._head = bind(self._layout.head.host, self._layout.head.port, "the head server")

    async def build(self) -> list[Served]:
        """What this process serves; the rest is given to children, which answer by then."""
        served: list[Served] = []
        for one in self._layout.instances:
            listener = self._listeners[one.name]
            pid = os.getpid()
            if isinstance(one.config, ResourcesConfig) and one.config.num_workers > 1:
                served.append(Served(one.name, self._routed(one), listener))
            elif self._options.processes:
                pid = self._child(Part(one.name, listener.fileno()), listener)
            else:
                served.append(Served(one.name, build_instance(one, self._runtime), listener))
            self._entries.append(Entry(one, self._runtime.urls[one.name], pid))
        self._runtime.apps |= {self._runtime.urls[one.name]: one.app for one in served}
        await asyncio.gather(*(child.ready() for child in self._children))
        if self._head is not None:
            config = self._layout.head.model_copy(update={"port": self._head.getsockname()[1]})
            served.append(Served("head", build_head_app(config, self._entries), self._head))
        return served

    def announce(self, say: Callable[[str], None], seconds: float) -> None:
        """Say what is where."""
        servers = {entry.instance.name: entry.url for entry in self._entries}
        told: dict[str, Any] = {
            "ready": True,
            "seconds": round(seconds, 3),
            "pid": os.getpid(),
            "servers": servers,
        }
        if self._head is not None:
            told["head"] = url_of(self._head, self._layout.head.host)
        if self._options.ready_file is not None:
            atomic_write_json(self._options.ready_file, told)
        if self._options.as_json:
            say(json.dumps(told))
            return
        width = max((len(name) for name in [*servers, "head"]), default=0)
        for entry in self._entries:
            what = f"{entry.instance.kind}/{entry.instance.implementation}"
            say(f"{entry.instance.name:<{width}}  {entry.url}  {what}")
        if "head" in told:
            say(f"{'head':<{width}}  {told['head']}")
        say(f"ready after {seconds:.1f} s; Ctrl-C stops")

    async def close(self) -> None:
        """Stop children, close sockets."""
        await asyncio.gather(*(child.stop() for child in self._children), return_exceptions=True)
        for listener in [*self._listeners.values(), *([self._head] if self._head is not None else [])]:
            listener.close()

    def _routed(self, instance: Instance) -> Any:
        assert isinstance(instance.config, ResourcesConfig)
        urls = []
        for number in range(instance.config.num_workers):
            listener = bind("127.0.0.1", 0, instance.name)
            self._listeners[f"{instance.name}/{number}"] = listener
            self._child(Part(instance.name, listener.fileno(), number, is_routed=True), listener)
            urls.append(url_of(listener, "127.0.0.1"))
        return build_router_app(instance.config, instance.name, Router(urls))

    def _child(self, part: Part, listener: Any) -> int:
        plan = ChildPlan(
            values=dict(self._layout.values),
            parts=[part],
            urls=self._runtime.urls,
            secret=self._runtime.signer.secret.hex(),
            unsafe_no_sandbox=self._options.unsafe_no_sandbox,
        )
        child = Child(plan, [listener])
        self._children.append(child)
        return child.start()

    async def keep_running(self) -> None:
        """Start processes again that end by themselves."""

        def restarted(child: Child, pid: int) -> None:
            for place, entry in enumerate(self._entries):
                if self._options.processes and entry.instance.name == child.name:
                    self._entries[place] = entry._replace(pid=pid)

        if self._children:
            await keep_running(self._children, restarted)


def _own_key(layout: Layout) -> str | None:
    names = dict.fromkeys(one.config.api_key_env for one in layout.instances)
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def set_up_logging() -> None:
    """Warnings and errors of servers go to standard error."""
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
