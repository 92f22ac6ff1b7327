"""Rollouts of NeMo Gym: its own servers, agent and collector, with a model that answers at once.

Runs in the interpreter of the peer (`make bench-peers`) and imports nothing of Sensorium. One episode with a
tool is a call of the tool, its result and a last message (`example_single_tool_call`); one with a picture is
a picture of `image_size` pixels in the prompt and one message (`circle_count`).
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import nemo_peer
from servers_work import TOOL_PROMPT, WEATHER_TOOL, png_url
from timing import Result, versions

_CONFIGS = (
    "resources_servers/{name}/configs/{name}.yaml",
    "responses_api_models/openai_model/configs/openai_model.yaml",
)


def tool_rollouts(rollouts: int, concurrency: int) -> Result:
    """Rollouts per minute of episodes with one call of a tool."""
    tools = [WEATHER_TOOL]
    row = {"responses_create_params": {"input": [{"role": "user", "content": TOOL_PROMPT}], "tools": tools}}
    agent = "example_single_tool_call_simple_agent"
    return _measure("example_single_tool_call", agent, [row], rollouts, concurrency, calls=2)


def image_rollouts(rollouts: int, concurrency: int, image_size: int) -> Result:
    """Rollouts per minute of episodes with one picture."""
    text = {"type": "input_text", "text": "How many bright blocks are there?"}

    def row(number: int) -> dict[str, Any]:
        image = {"type": "input_image", "image_url": png_url(number, image_size), "detail": "auto"}
        params = {"input": [{"role": "user", "content": [text, image]}]}
        return {"responses_create_params": params, "circles": [], "target_color": "white"}

    rows = [row(number) for number in range(8)]
    return _measure("circle_count", "circle_count_simple_agent", rows, rollouts, concurrency, calls=1)


def _measure(
    name: str, agent: str, rows: list[dict[str, Any]], rollouts: int, concurrency: int, *, calls: int
) -> Result:
    """Start, collect once to warm up, collect `rollouts`; `calls` of the model are one rollout."""
    configs = [config.format(name=name) for config in _CONFIGS]
    with (
        tempfile.TemporaryDirectory(prefix="sensorium-nemo-") as folder,
        nemo_peer.mock_model({"get_weather": {"city": "Oslo"}}) as model,
    ):
        workspace = nemo_peer.Workspace(Path(folder))
        with nemo_peer.servers(workspace, configs, model.overrides) as running:
            idle_pids = running.processes()
            idle_bytes = nemo_peer.resident_bytes(idle_pids)
            source = Path(folder) / "tasks.jsonl"
            source.write_text("".join(json.dumps(row) + "\n" for row in rows))
            repeats = rollouts // len(rows)

            def collect(repeats: int) -> None:
                workspace.gym(
                    "eval",
                    "run",
                    "--no-serve",
                    f"--agent={agent}",
                    f"--input={source}",
                    f"--output={Path(folder) / 'out.jsonl'}",
                    f"--num-repeats={repeats}",
                    f"--concurrency={concurrency}",
                    *workspace.overrides(running.head_port),
                )

            cpu = [nemo_peer.cpu_seconds(running.processes())]
            few = 8
            collect(few // len(rows))
            cpu.append(nemo_peer.cpu_seconds(running.processes()))
            model.reset()
            start = time.monotonic()
            collect(repeats)
            command_s = time.monotonic() - start
            cpu.append(nemo_peer.cpu_seconds(running.processes()))
            done = repeats * len(rows)
            seconds = model.seconds(done * calls)
            return {
                "rate": 60.0 * done / seconds,
                "steps": done,
                "wall_s": seconds,
                # both commands begin alike: their difference is what the other rollouts took
                "cpu_s": (cpu[2] - 2 * cpu[1] + cpu[0]) * done / (done - few),
                "command_s": command_s,
                "start_s": running.start_s,
                "memory_mb": idle_bytes / 1e6,
                "memory_after_mb": nemo_peer.resident_bytes(running.processes()) / 1e6,
                "processes": len(idle_pids),
                "output_mb": (Path(folder) / "out.jsonl").stat().st_size / 1e6,
                "versions": versions("nemo-gym"),
            }
