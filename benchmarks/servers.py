"""Our servers beside NeMo Gym's and OpenEnv's: start-up, memory, rollouts, remote steps.

python benchmarks/servers.py                   about 15 minutes on two idle cores
python benchmarks/servers.py --only openenv    one part
python benchmarks/servers.py --quick           only whether it runs; the figures mean nothing

All sides ask the same model, which answers at once (`mock_openai`), so that what remains is the time of the
servers, the agent and the collector. The peers have environments of their own: `make bench-peers`.
"""

import sys
from collections.abc import Sequence
from typing import Any

from measuring import Benchmark, Comparison, Measurement
from parts import run_parts
from peer_rows import INSTALL, peer_python

CONCURRENCY = 32
IMAGE_SIZE = 256
"""Pixels of the picture in an episode."""
STEP_IMAGE_SIZE = 64
"""Pixels of the picture that a remote step answers."""
STEP_NUM_ENVS = 16
"""Environments that a batch of remote steps moves."""
MAX_START_S = 5.0
MAX_MEMORY_MB = 500.0
FACTOR = 5.0
PACKAGES = ("sensorium", "fastapi", "uvicorn", "uvloop", "aiohttp", "pydantic")
_TIMEOUT_S = 900.0


def nemo_gym(*, quick: bool) -> Benchmark:
    """Start-up, memory and rollouts beside NeMo Gym."""
    tool = {"rollouts": 16 if quick else 800, "concurrency": CONCURRENCY}
    image = {"rollouts": 16 if quick else 400, "concurrency": CONCURRENCY, "image_size": IMAGE_SIZE}

    def theirs(target: str, settings: dict[str, Any]) -> Measurement:
        return Measurement(
            target=f"nemo_speed:{target}",
            settings=settings,
            needs=("nemo_gym",),
            python=peer_python("nemo_gym"),
            install=INSTALL,
            timeout_s=_TIMEOUT_S,
        )

    def ours(target: str, settings: dict[str, Any]) -> Measurement:
        return Measurement(target=f"servers_speed:{target}", settings=settings, timeout_s=_TIMEOUT_S)

    def rollouts(name: str, ours: str, peer: str, what: str) -> Comparison:
        return Comparison(
            name=name,
            unit="rollouts/min",
            ours=ours,
            peer=peer,
            peer_name="NeMo Gym",
            goal=f">= {FACTOR:g} x peer",
            reached=lambda _, ratio: ratio is not None and ratio >= FACTOR,
            same="steps",
            cpu_tells=True,
            note=f"{what}, {CONCURRENCY} at a time, from the first call of the model to the last: without "
            "the start of servers and collector",
        )

    def less(name: str, unit: str, value: str, most: float, what: str) -> Comparison:
        return Comparison(
            name=name,
            unit=unit,
            ours="tool",
            peer="their tool",
            peer_name="NeMo Gym",
            goal=f"< {most:g} {unit}",
            reached=lambda median, _: median < most,
            value=value,
            note=what,
        )

    tool_what = "one call of a tool and a last message"
    picture_what = (
        f"one picture of {IMAGE_SIZE}x{IMAGE_SIZE} and a last message; ours is drawn and encoded by the "
        "environment, theirs is ready in the row"
    )
    alone = "`sensorium rollout --config` runs everything itself, which NeMo Gym cannot, beside its servers"
    return Benchmark(
        measurements={
            "tool": ours("tool_rollouts", tool),
            "tool, one process": ours("tool_rollouts", tool | {"sockets": False}),
            "their tool": theirs("tool_rollouts", tool),
            "picture": ours("image_rollouts", image),
            "picture, one process": ours("image_rollouts", image | {"sockets": False}),
            "their picture": theirs("image_rollouts", image),
        },
        comparisons=[
            less(
                "start-up",
                "s",
                "start_s",
                MAX_START_S,
                "from the command until resources, model, agent, environment and head server answer; NeMo "
                "Gym finds its virtual environments already built",
            ),
            less(
                "memory",
                "MB",
                "memory_mb",
                MAX_MEMORY_MB,
                "of all processes of the same servers, idle; pages that several share count once",
            ),
            rollouts("tool, servers", "tool", "their tool", tool_what),
            rollouts("tool, one process", "tool, one process", "their tool", f"{tool_what}; {alone}"),
            rollouts("picture, servers", "picture", "their picture", picture_what),
            rollouts(
                "picture, one process", "picture, one process", "their picture", f"{picture_what}; {alone}"
            ),
        ],
    )


def openenv(*, quick: bool) -> Benchmark:
    """Remote steps beside OpenEnv."""
    seconds = 0.5 if quick else 5.0

    def theirs(encoding: str) -> Measurement:
        return Measurement(
            target="openenv_speed:remote_steps",
            settings={"size": STEP_IMAGE_SIZE, "encoding": encoding, "seconds": seconds},
            needs=("openenv",),
            python=peer_python("openenv"),
            install=INSTALL,
        )

    def ours(target: str, **settings: Any) -> Measurement:
        return Measurement(
            target=f"servers_speed:{target}",
            settings={"size": STEP_IMAGE_SIZE, "seconds": seconds} | settings,
        )

    how = {
        "list of numbers": "a list of integers, as its own Atari environment does",
        "PNG": "a PNG as base64 text",
    }
    batched = f"arrays, {STEP_NUM_ENVS} environments"
    sent = {
        "arrays": "the pixels as an array, one environment",
        batched: f"the pixels as an array, {STEP_NUM_ENVS} environments in one message, counted as "
        f"{STEP_NUM_ENVS} steps; a message of OpenEnv has one",
        "messages": "all that a language model is shown: the prompt, its pictures, an account of its parts",
    }

    def row(ours: str, peer: str) -> Comparison:
        return Comparison(
            name=f"remote steps, {ours}, to {peer}",
            unit="steps/s",
            ours=ours,
            peer=peer,
            peer_name="OpenEnv",
            goal=f">= {FACTOR:g} x peer",
            reached=lambda _, ratio: ratio is not None and ratio >= FACTOR,
            note=f"one client, one server, a picture of {STEP_IMAGE_SIZE}x{STEP_IMAGE_SIZE} in every step's "
            f"answer; OpenEnv sends {how[peer]}, ours {sent[ours]}",
        )

    return Benchmark(
        measurements={
            "arrays": ours("array_steps", num_envs=1),
            batched: ours("array_steps", num_envs=STEP_NUM_ENVS),
            "messages": ours("message_steps"),
            "list of numbers": theirs("numbers"),
            "PNG": theirs("png"),
        },
        comparisons=[row(one, peer) for one in sent for peer in how],
    )


BENCHMARKS = {"nemo_gym": nemo_gym, "openenv": openenv}
"""Name -> what it measures."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the result file."""
    return run_parts("servers", __doc__ or "", BENCHMARKS, PACKAGES, arguments)


if __name__ == "__main__":
    sys.exit(main())
