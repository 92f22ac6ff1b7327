"""The environment `lookup` for Aviary's clients, on port 8041.

from aviary.env_client import TaskDatasetClient
dataset = TaskDatasetClient("http://127.0.0.1:8041")
"""

import asyncio

from sensorium.interop.aviary_server import AviaryServerConfig, build_aviary_app
from sensorium.servers.serving import Served, bind, serve, stop_on_signals


async def main() -> None:
    """Serve until Ctrl-C."""
    config = AviaryServerConfig(environment="lookup", num_tasks=50)
    listener = bind(config.host, config.port, "lookup")
    stop = asyncio.Event()
    stop_on_signals(stop)
    served = Served("lookup", build_aviary_app(config), listener)
    await serve([served], lambda: print(f"ready on port {config.port}", flush=True), stop)


asyncio.run(main())
