"""Our PPO beside Sample Factory and RLlib, on ViZDoom from pixels.

Their pins exclude ours, so each has a virtual environment of its own: `make bench-peers` makes them from
`benchmarks/peers/*.txt`. An interpreter elsewhere is named by SENSORIUM_PEER_SAMPLE_FACTORY or
SENSORIUM_PEER_RLLIB.
"""

import os
from pathlib import Path
from typing import Any

from doom_task import DoomTask
from measuring import Benchmark, Comparison, Measurement

PEERS = Path(__file__).parent / "peers"
"""Folder of the peers' requirements and environments."""
INSTALL = "make bench-peers"
MEANWHILE, IN_TURN = "acting while learning", "in turn"
"""Our PPO with `max_staleness` 1 and 0."""
THREADS = 1
"""Of each process that computes a network. Two were slower on each side, once, on a busy machine."""


def peer_python(name: str) -> Path:
    """Interpreter of a peer: that of the environment variable, else of its folder."""
    named = os.environ.get(f"SENSORIUM_PEER_{name.upper()}")
    return Path(named) if named else PEERS / name / "bin" / "python"


def peers(*, quick: bool) -> Benchmark:
    """Training steps per second on two cores."""
    task = DoomTask(num_envs=4, num_steps=8, num_minibatches=2, num_epochs=1) if quick else DoomTask()
    settings: dict[str, Any] = {
        "task": task.as_json(),
        "seconds": 0.1 if quick else 30.0,
        "warm_up_s": 0.0 if quick else 10.0,
    }

    def peer(name: str, module: str, target: str, **more: Any) -> Measurement:
        return Measurement(
            target=target,
            settings=settings | more,
            threads=THREADS,
            needs=(module,),
            python=peer_python(name),
            install=INSTALL,
        )

    def own(max_staleness: int) -> Measurement:
        return Measurement(
            target="doom_ppo_speed:ours",
            settings=settings | {"max_staleness": max_staleness},
            threads=THREADS,
        )

    def row(peer: str, peer_name: str, factor: float, differences: str, ours: str) -> Comparison:
        return Comparison(
            name=f"PPO on doom, {ours}, against {peer}",
            unit="env steps/s",
            ours=ours,
            peer=peer,
            peer_name=peer_name,
            goal=f">= {factor:g} x peer",
            reached=lambda _, ratio: ratio is not None and ratio >= factor,
            cpu_tells=True,
            note=f"acting and updating on doom/basic from rgb at {task.image_size}x{task.image_size} (the "
            f"engine draws 160x120), {task.num_envs} worlds, a step is {task.frame_skip} tics and counts "
            f"once; same layers and widths, rollouts of {task.num_steps}, minibatches of {task.batch_size}, "
            f"{task.num_epochs} epochs, {THREADS} thread for each network; policies stay random, so that "
            f"episodes are equally long; ours averages pixels, the peer takes the nearest; {differences}",
        )

    peers_of_ours = (
        (
            "Sample Factory",
            "Sample Factory APPO",
            1.0,
            f"it acts in {task.processes} processes with two groups of worlds each while another learns from "
            f"what an older policy saw",
        ),
        (
            "RLlib",
            "RLlib PPO",
            5.0,
            "it acts and learns in one process, in turn, and pads pieces of episodes to whole rollouts",
        ),
        (
            "RLlib, 2 runners",
            "RLlib PPO",
            5.0,
            "it acts in two processes and learns in a third, in turn; pads as above",
        ),
    )
    return Benchmark(
        measurements={
            MEANWHILE: own(1),
            IN_TURN: own(0),
            "Sample Factory": peer("sample_factory", "sample_factory", "sample_factory_speed:appo"),
            "RLlib": peer("rllib", "ray", "rllib_speed:ppo", runners=0),
            "RLlib, 2 runners": peer("rllib", "ray", "rllib_speed:ppo", runners=task.processes),
        },
        comparisons=[row(*other, ours) for other in peers_of_ours for ours in (MEANWHILE, IN_TURN)],
    )
