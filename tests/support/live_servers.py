"""Apps of servers on real sockets, in an event loop of their own."""

import asyncio
import contextlib
import json
import threading
import urllib.error
import urllib.request

from sensorium.servers.config import ResourcesConfig
from sensorium.servers.runtime import Runtime
from sensorium.servers.serving import Served, bind, serve, url_of


@contextlib.contextmanager
def running(*apps, grace_s=2.0, over_sockets=False):
    """Serve (name, build) pairs; yields the addresses. `build` takes a runtime that knows all addresses.

    With `over_sockets` the servers know nothing of each other but addresses, as in different processes.
    """
    runtime = Runtime()
    listeners = {}
    for name, _ in apps:
        listeners[name] = bind("127.0.0.1", 0, name)
        runtime.urls[name] = url_of(listeners[name], "127.0.0.1")
    served = []
    for name, build in apps:
        own = Runtime(signer=runtime.signer, urls=runtime.urls) if over_sockets else runtime
        served.append(Served(name, build(own), listeners[name]))
        own.apps[runtime.urls[name]] = served[-1].app
    is_ready, loops = threading.Event(), []
    problems = []

    async def main():
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        await serve(served, is_ready.set, stop, grace_s=grace_s)

    def run():
        try:
            asyncio.run(main())
        except BaseException as error:
            problems.append(error)
            is_ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert is_ready.wait(30)
    try:
        if problems:
            raise problems[0]
        yield dict(runtime.urls)
    finally:
        loop, stop = loops[0]
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        for listener in listeners.values():
            listener.close()
    assert not thread.is_alive()


def resources(environment, name="env", hosts=None, **settings):
    """A resources server for `running`."""
    from sensorium.servers.resources import build_resources_app

    def build(runtime):
        config = ResourcesConfig.model_validate({"environment": environment, **settings})
        app = build_resources_app(config, name, runtime)
        if hosts is not None:
            hosts.append(app.state.host)
        return app

    return name, build


class Client:
    """Plain HTTP with cookies sent back by hand, as NeMo Gym's clients do."""

    def __init__(self, url, **headers):
        self.url, self.headers, self.cookies = url, headers, {}

    def send(self, path, body=None, method=None, raw=None, **headers):
        """Returns status, body (JSON where it is JSON) and headers."""
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        sent = {"Content-Type": "application/json", **self.headers, **headers}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        for name, value in sent.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return self._read(reply.status, reply)
        except urllib.error.HTTPError as error:
            with error:
                return self._read(error.code, error)

    def _read(self, status, reply):
        text = reply.read().decode()
        for header in reply.headers.get_all("Set-Cookie") or ():
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value
        try:
            return status, json.loads(text), reply.headers
        except ValueError:
            return status, text, reply.headers
