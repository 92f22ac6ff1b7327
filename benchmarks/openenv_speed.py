"""Remote steps of OpenEnv: its server, its client, its WebSocket, an environment that answers with pictures.

Runs in an environment of its own (`make bench-peers`) and imports nothing of Sensorium.

python benchmarks/openenv_speed.py PORT ENCODING     the server
"""

import asyncio
import base64
import importlib
import io
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from typing import Any

from servers_work import free_port, picture
from timing import Result, versions

ENCODINGS = ("numbers", "png")
"""``numbers``: the flat list of integers that OpenEnv's own Atari environment sends. ``png``: base64 text."""


def remote_steps(size: int, encoding: str, seconds: float) -> Result:
    """Steps per second of one client."""
    port = free_port()
    command = [sys.executable, __file__, str(port), str(size), encoding]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(f"http://127.0.0.1:{port}/health")
            found = asyncio.run(_play(port, size, encoding, seconds))
        finally:
            process.kill()
    return found | {"encoding": encoding, "versions": versions("openenv")}


async def _play(port: int, size: int, encoding: str, seconds: float) -> Result:
    from openenv.core.generic_client import GenericEnvClient
    from PIL import Image

    def pixels(observation: dict[str, Any]) -> bytes:
        if encoding == "numbers":
            return bytes(observation["screen"])
        return Image.open(io.BytesIO(base64.b64decode(observation["screen"]))).tobytes()

    async with GenericEnvClient(base_url=f"http://127.0.0.1:{port}") as client:
        await client.reset()
        for number in range(1, 11):
            await client.step({"move": number})
        start, cpu_start = time.perf_counter(), time.process_time()
        steps = 0
        while time.perf_counter() - start < seconds:
            answer = await client.step({"move": steps})
            if len(pixels(answer.observation)) != 3 * size * size:
                raise RuntimeError("the picture has the wrong size")
            steps += 1
        wall_s = time.perf_counter() - start
    cpu_s = time.process_time() - cpu_start
    return {"rate": steps / wall_s, "steps": steps, "wall_s": wall_s, "cpu_s": cpu_s}


def serve(port: int, size: int, encoding: str) -> None:
    """Serve the environment on the loopback."""
    import uvicorn

    http_server = importlib.import_module("openenv.core.env_server.http_server")
    interfaces = importlib.import_module("openenv.core.env_server.interfaces")
    types = importlib.import_module("openenv.core.env_server.types")

    class Move(types.Action):  # type: ignore[misc, name-defined]
        move: int

    kind: Any = list[int] if encoding == "numbers" else str

    class Seen(types.Observation):  # type: ignore[misc, name-defined]
        screen: kind

    class Pictures(interfaces.Environment):  # type: ignore[misc, name-defined]
        """Answers every step with the next picture."""

        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self._steps = 0

        def reset(self, seed: int | None = None, episode_id: str | None = None, **more: Any) -> Seen:
            self._steps = 0
            return self._seen()

        def step(self, action: Any, timeout_s: float | None = None, **more: Any) -> Seen:
            self._steps += 1
            return self._seen()

        @property
        def state(self) -> Any:
            return types.State(episode_id="0", step_count=self._steps)

        def _seen(self) -> Seen:
            pixels = picture(self._steps % 256, size)
            if encoding == "numbers":
                return Seen(screen=list(pixels), reward=0.0)
            from PIL import Image

            held = io.BytesIO()
            Image.frombytes("RGB", (size, size), pixels).save(held, "PNG", compress_level=1)
            return Seen(screen=base64.b64encode(held.getvalue()).decode(), reward=0.0)

    app = http_server.create_fastapi_app(Pictures, Move, Seen)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


def _wait(url: str) -> None:
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(url, timeout=2.0):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{url} did not answer within 60 s")


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
