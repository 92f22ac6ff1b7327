"""The process of a server that another one started: reads what to do from its standard input."""

import asyncio
import os
import socket
import sys
import threading

from sensorium.core import SensoriumError, set_passive_threads
from sensorium.servers.build import build_instance
from sensorium.servers.launch import set_up_logging
from sensorium.servers.layout import build_layout
from sensorium.servers.processes import ChildPlan, die_with_parent
from sensorium.servers.runtime import Runtime
from sensorium.servers.security import Signer
from sensorium.servers.serving import Served, run, serve, stop_on_signals


async def _main(plan: ChildPlan, told: int) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    layout = build_layout(plan.values)
    apps = []
    for part in plan.parts:
        instance = layout.named(part.name)
        if part.is_routed:
            limits = instance.config.limits.model_copy(update={"requests_per_s": 1e9, "burst": 2**31})
            instance = instance._replace(config=instance.config.model_copy(update={"limits": limits}))
        runtime = Runtime(
            signer=Signer(bytes.fromhex(plan.secret)),
            worker=part.worker,
            urls=dict(plan.urls),
            api_key=os.environ.get(instance.config.api_key_env),
            unsafe_no_sandbox=plan.unsafe_no_sandbox,
        )
        app = build_instance(instance, runtime)
        apps.append(Served(part.name, app, socket.socket(fileno=part.fd)))
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 4096):  # the end of the input is the end of the parent
            pass
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=watch, daemon=True).start()

    def ready() -> None:
        _tell(told, "ready")

    await serve(apps, ready, stop)


def main() -> None:
    """Serve what the parent asks for, as long as it lives."""
    told = os.dup(1)
    os.dup2(2, 1)  # what environments print goes to the log: nobody reads our output once it said "ready"
    die_with_parent()
    set_passive_threads()
    set_up_logging()
    plan = ChildPlan.read(sys.stdin.buffer.readline())
    try:
        run(_main(plan, told))
    except SensoriumError as error:
        _tell(told, " ".join(str(error).split()))
        os._exit(2)


def _tell(told: int, line: str) -> None:
    os.write(told, f"{line}\n".encode())
    os.close(told)


if __name__ == "__main__":
    main()
