"""How fast Sensorium is beside its peers: engine overhead, simulator, training.

python benchmarks/throughput.py                about 7 minutes on two idle cores
python benchmarks/throughput.py --only ppo     one part
python benchmarks/throughput.py --quick        only whether it runs; the figures mean nothing
"""

import sys
from collections.abc import Sequence
from typing import Any

from measuring import Benchmark, Comparison, Measurement
from parts import run_parts
from peer_rows import peers

from sensorium.core import available_cores

PACKAGES = ("sensorium", "torch", "numpy", "numba", "gymnasium", "vizdoom", "minigrid")
PEERS = ("stable-baselines3", "sb3-contrib")
DOOM_PROCESSES = 2
DOOM_WORLDS = 8


def doom(*, quick: bool) -> Benchmark:
    """Overhead of `MultiModalGym` over bare ViZDoom."""
    seconds = 0.2 if quick else 5.0
    several: dict[str, Any] = {
        "seconds": seconds,
        "processes": DOOM_PROCESSES,
        "worlds": 2 if quick else DOOM_WORLDS,
    }

    def measurement(target: str, **settings: Any) -> Measurement:
        return Measurement(target=f"doom_speed:{target}", settings=settings, needs=("vizdoom",))

    measurements = {
        "waveform": measurement("ours_single", waveform=True, seconds=seconds),
        "bare": measurement("raw_single", seconds=seconds),
        "log-mel": measurement("ours_single", waveform=False, seconds=seconds),
        "workers": measurement("ours_workers", waveform=True, **several),
        "bare processes": measurement("raw_processes", **several),
    }

    def row(name: str, ours: str, peer: str, note: str) -> Comparison:
        return Comparison(
            name=name,
            unit="steps/s",
            ours=ours,
            peer=peer,
            peer_name="bare ViZDoom",
            goal="<= 15 % more time than peer",
            reached=lambda _, ratio: ratio is not None and 1.0 / ratio - 1.0 <= 0.15,
            same="reward_of_first_steps",
            note=note,
        )

    together = f"{several['worlds']} worlds in {DOOM_PROCESSES} processes"
    return Benchmark(
        measurements=measurements,
        comparisons=[
            row(
                "doom, 1 process, waveform",
                "waveform",
                "bare",
                "rgb, depth and waveform on both sides, same episodes; ours also shrinks pictures to 48x48",
            ),
            row(
                "doom, 1 process, log-mel",
                "log-mel",
                "bare",
                "as above, but ours computes log-mel frames, which is what policies read; bare has samples",
            ),
            row(
                f"doom, {DOOM_PROCESSES} processes, waveform",
                "workers",
                "bare processes",
                f"{together}; ours in lock step through shared memory, bare ones each on its own",
            ),
        ],
    )


def arena(*, quick: bool) -> Benchmark:
    """World-steps per second on one core."""
    settings: dict[str, Any] = {"num_envs": 256, "seconds": 0.3 if quick else 4.0}
    grid = {"seconds": settings["seconds"]}

    def row(name: str, ours: str, note: str) -> Comparison:
        return Comparison(
            name=name,
            unit="world-steps/s",
            ours=ours,
            peer="minigrid",
            peer_name="MiniGrid BabyAI-GoToLocal, rgb",
            goal=">= 50,000",
            reached=lambda median, _: median >= 50_000,
            cpu_tells=True,
            note=note,
        )

    return Benchmark(
        measurements={
            "vector env": Measurement(target="arena_speed:vector_env", settings=settings),
            "minigrid": Measurement(target="arena_speed:minigrid_loop", settings=grid, needs=("minigrid",)),
            "backend": Measurement(target="arena_speed:bare_backend", settings=settings),
        },
        comparisons=[
            row(
                "arena, MultiModalVectorEnv",
                "vector env",
                "rgb + depth + env_sound at 48x48, 256 worlds, one thread; the peer gives rgb at 56x56 only",
            ),
            row("arena, backend alone", "backend", "the same without clocks, presence, status and infos"),
        ],
    )


def ppo(*, quick: bool) -> Benchmark:
    """Training steps per second."""
    threads = available_cores()
    tiny = {"seconds": 0.0, "fewest": 1, "num_envs": 8, "num_steps": 8, "num_minibatches": 2, "num_epochs": 1}
    settings = tiny if quick else {"seconds": 15.0, "fewest": 2}
    modules = ("stable_baselines3", "sb3_contrib")

    def row(name: str, ours: str, peer: str, peer_name: str, factor: float) -> Comparison:
        mixing = (
            "the senses are concatenated on both sides, though our MLP after that has a layer more"
            if ours == "concatenation"
            else "ours adds cross-modal attention, the peer concatenates the senses"
        )
        return Comparison(
            name=name,
            unit="env steps/s",
            ours=ours,
            peer=peer,
            peer_name=peer_name,
            goal=f">= {factor:g} x peer",
            reached=lambda _, ratio: ratio is not None and ratio >= factor,
            cpu_tells=True,
            note=f"acting and updating on arena/find with rgb, depth and speech; same encoders, sizes and "
            f"minibatches, {threads} threads; {mixing}; ours has an LSTM and observation filters",
        )

    def ours(fusion: str) -> Measurement:
        return Measurement(target="ppo_speed:ours", settings=settings | {"fusion": fusion}, threads=threads)

    return Benchmark(
        measurements={
            "attention": ours("cross_attention"),
            "PPO": Measurement(target="sb3_speed:ppo", settings=settings, threads=threads, needs=modules[:1]),
            "concatenation": ours("early"),
            "RecurrentPPO": Measurement(
                target="sb3_speed:recurrent_ppo", settings=settings, threads=threads, needs=modules
            ),
        },
        comparisons=[
            row("PPO against PPO", "attention", "PPO", "Stable-Baselines3 PPO", 2.0),
            row("PPO against RecurrentPPO", "attention", "RecurrentPPO", "sb3-contrib RecurrentPPO", 5.0),
            row("PPO, concatenation, against PPO", "concatenation", "PPO", "Stable-Baselines3 PPO", 2.0),
            row(
                "PPO, concatenation, against RecurrentPPO",
                "concatenation",
                "RecurrentPPO",
                "sb3-contrib RecurrentPPO",
                5.0,
            ),
        ],
    )


BENCHMARKS = {"doom": doom, "arena": arena, "ppo": ppo, "peers": peers}
"""Name -> what it measures."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the result file."""
    return run_parts("throughput", __doc__ or "", BENCHMARKS, PACKAGES + PEERS, arguments)


if __name__ == "__main__":
    sys.exit(main())
