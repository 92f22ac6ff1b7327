"""Rollouts and remote steps of our servers, for `servers`.

One process serves everything, as ``sensorium serve`` does by default; another one collects (``sensorium
rollout``). Remote steps are those of our own clients of a resources server: arrays for a policy network, or
all that a language model is shown, the whole prompt.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nemo_peer
import numpy as np
import psutil
from timing import Result

HERE = Path(__file__).parent
_CONFIG = """
work:
  resources_servers:
    work:
      environment: servers_env:{environment}
      config: {config}
      context_management: {{drop_full_history: false}}
policy_model:
  responses_api_models:
    openai_model: {{base_url: "{model}", model: mock, dialect: responses}}
work_agent:
  responses_api_agents:
    chat_agent:
      resources_server: {{type: resources_servers, name: work}}
      model_server: {{type: responses_api_models, name: policy_model}}
"""
_ARRAYS = """
work:
  resources_servers:
    gymnasium:
      config: {{task: "servers_gym:Pictures-v0", env_options: {{size: {size}}}, render: none}}
"""
_UNUSED = {"input": [{"role": "user", "content": "the environment says it"}]}


@dataclass(frozen=True)
class _Serving:
    head: str
    urls: dict[str, str]
    start_s: float
    pid: int

    def processes(self) -> list[int]:
        """The server and all below it."""
        process = psutil.Process(self.pid)
        return [process.pid, *(child.pid for child in process.children(recursive=True))]

    def memory_mb(self) -> float:
        """Proportional set size, megabytes."""
        return nemo_peer.resident_bytes(self.processes()) / 1e6

    def cpu_s(self) -> float:
        """CPU seconds so far, with those of the collectors that have ended."""
        return nemo_peer.cpu_seconds(self.processes())


def tool_rollouts(rollouts: int, concurrency: int, *, sockets: bool = True) -> Result:
    """Rollouts per minute of episodes with one call of a tool.

    Args:
        rollouts: How many.
        concurrency: At the same time.
        sockets: Whether there are servers; without them the collector runs everything itself.
    """
    return _rollouts("Weather", {}, rollouts, concurrency, calls=2, sockets=sockets)


def image_rollouts(rollouts: int, concurrency: int, image_size: int, *, sockets: bool = True) -> Result:
    """Rollouts per minute of episodes with one picture; see `tool_rollouts`."""
    config = {"image_size": image_size}
    return _rollouts("Pictures", config, rollouts, concurrency, calls=1, sockets=sockets)


def _rollouts(
    environment: str, config: dict[str, Any], rollouts: int, concurrency: int, *, calls: int, sockets: bool
) -> Result:
    with (
        tempfile.TemporaryDirectory(prefix="sensorium-servers-") as name,
        nemo_peer.mock_model({"get_weather": {"city": "Oslo"}}) as model,
        ExitStack() as stack,
    ):
        folder = Path(name)
        settings = _write_config(folder, environment, config, model.url)
        serving = stack.enter_context(_serving(folder, settings)) if sockets else None
        found = {} if serving is None else {"start_s": serving.start_s, "memory_mb": serving.memory_mb()}
        tasks = [{"responses_create_params": _UNUSED, "task_id": f"train-{number}"} for number in range(8)]
        source = folder / "tasks.jsonl"
        source.write_text("".join(json.dumps(task) + "\n" for task in tasks))
        where = ["--config", str(settings)] if serving is None else ["--head", serving.head]

        def collect(repeats: int, output: Path) -> float:
            command = [*_cli("rollout"), *where, "--agent", "work_agent", "--json"]
            command += ["--input", str(source), "--output", str(output), "--num-repeats", str(repeats)]
            command += ["--concurrency", str(concurrency)]
            done = subprocess.run(command, capture_output=True, text=True, env=_environment())
            if done.returncode != 0:
                raise RuntimeError(f"sensorium rollout failed:\n{done.stderr[-3000:]}")
            return nemo_peer.cpu_seconds([] if serving is None else serving.processes())

        cpu = [nemo_peer.cpu_seconds([] if serving is None else serving.processes())]
        cpu.append(collect(1, folder / "warm.jsonl"))
        model.reset()
        start = time.monotonic()
        cpu.append(collect(rollouts // len(tasks), folder / "out.jsonl"))
        found["command_s"] = time.monotonic() - start
        done = rollouts // len(tasks) * len(tasks)
        seconds = model.seconds(done * calls)
        if serving is not None:
            found["memory_after_mb"] = serving.memory_mb()
        written = [path.stat().st_size for path in folder.rglob("*") if path.is_file() and "out" in str(path)]
        return {
            "rate": 60.0 * done / seconds,
            "steps": done,
            "wall_s": seconds,
            # both commands begin alike: their difference is what the other rollouts took
            "cpu_s": (cpu[2] - 2 * cpu[1] + cpu[0]) * done / (done - len(tasks)),
            "output_mb": sum(written) / 1e6,
            **found,
        }


def array_steps(size: int, seconds: float, num_envs: int) -> Result:
    """Steps per second of one client that gets the pixels.

    Args:
        size: Of the picture.
        seconds: To step for.
        num_envs: Environments that one message steps; each counts.
    """
    from sensorium.envs.remote import RemoteVectorEnv

    with tempfile.TemporaryDirectory(prefix="sensorium-servers-") as name:
        settings = Path(name) / "serve.yaml"
        settings.write_text(_ARRAYS.format(size=size))
        with _serving(Path(name), settings) as serving:
            envs = RemoteVectorEnv(serving.urls["work"], num_envs)
            actions = np.zeros(num_envs, np.int64)
            envs.reset(seed=0)
            for _ in range(10):
                envs.step(actions)
            start, cpu_start, steps = time.perf_counter(), time.process_time(), 0
            while time.perf_counter() - start < seconds:
                seen, *_ = envs.step(actions)
                if seen.nbytes != 3 * size * size * num_envs:
                    raise RuntimeError("the picture has the wrong size")
                steps += num_envs
            wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu_start
            envs.close()
    return {"rate": steps / wall_s, "steps": steps, "wall_s": wall_s, "cpu_s": cpu_s}


def message_steps(size: int, seconds: float) -> Result:
    """Steps per second of one client that gets what the agent is shown, prompts and all."""
    with (
        tempfile.TemporaryDirectory(prefix="sensorium-servers-") as name,
        _serving(
            Path(name), _write_config(Path(name), "Pictures", {"image_size": size}, "http://127.0.0.1:9/v1")
        ) as serving,
    ):
        return asyncio.run(_play(serving.urls["work"], seconds))


async def _play(url: str, seconds: float) -> Result:
    from servers_env import Pictures, PicturesConfig

    from sensorium.envs.base import Action
    from sensorium.llm.messages import ImageBlock
    from sensorium.servers.http import HttpClient
    from sensorium.servers.remote import RemoteEpisode

    task = Pictures().task(PicturesConfig(), "train-0")
    http = HttpClient()
    steps, episode = 0, RemoteEpisode(http, url)
    await episode.start(task)
    try:
        start, cpu_start, number = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - start < seconds:
            turn = await episode.act(Action.call("move", move=number), number)
            if turn.view is None:  # the environment's own limit of steps: begin again
                await episode.close()
                episode, number = RemoteEpisode(http, url), 0
                await episode.start(task)
                continue
            shown = [block for message in turn.view.messages for block in message.content]
            if not any(isinstance(block, ImageBlock) for block in shown):
                raise RuntimeError("no picture came")
            steps, number = steps + 1, number + 1
        wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu_start
    finally:
        await episode.close()
        await http.close()
    return {"rate": steps / wall_s, "steps": steps, "wall_s": wall_s, "cpu_s": cpu_s}


def _write_config(folder: Path, environment: str, config: dict[str, Any], model: str) -> Path:
    path = folder / "serve.yaml"
    path.write_text(_CONFIG.format(environment=environment, config=json.dumps(config), model=model))
    return path


@contextmanager
def _serving(folder: Path, settings: Path) -> Iterator[_Serving]:
    ready = folder / "ready.json"
    command = [*_cli("serve"), str(settings), "--port", "0", "--ready-file", str(ready)]
    log = folder / "serve.log"
    began = time.monotonic()
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=_environment())
        try:
            while not ready.exists():
                if process.poll() is not None or time.monotonic() - began > 60.0:
                    raise RuntimeError(f"sensorium serve did not start:\n{log.read_text()[-3000:]}")
                time.sleep(0.01)
            seconds = time.monotonic() - began
            told = json.loads(ready.read_text())
            yield _Serving(told["head"], told["servers"], seconds, process.pid)
        finally:
            process.terminate()
            process.wait()


def _cli(verb: str) -> list[str]:
    return [sys.executable, "-m", "sensorium.cli.main", verb]


def _environment() -> dict[str, str]:
    """This folder is importable: the environments are in it."""
    return os.environ | {"PYTHONPATH": str(HERE)}
