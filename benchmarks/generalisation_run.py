"""One run of `generalisation.py`: train an arm with a seed, judge it, write what was found.

python benchmarks/generalisation_run.py ARM SEED FILE [--world doom] [--lr X] [--total-steps N] [--cpu-s S]
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from generalisation_arms import HELD_OUT, ONE_MISSING, SENSORS, TRAINED, WORLDS, arm_config
from timing import cpu_s_of_all

from sensorium.core import derive_seed
from sensorium.core.files import atomic_write_json
from sensorium.evals.episodes import play_episodes
from sensorium.rollouts.embodied import Collector
from sensorium.trainers.build import Agent, build_agent, build_env
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.curriculum import Curriculum
from sensorium.trainers.dapo import build_learner

EPISODES = 200


def run(config: TrainConfig, evaluation_envs: int, cpu_s: float | None) -> dict[str, Any]:
    """Train and judge; also as the policy is once `cpu_s` CPU seconds of training are spent."""
    env = build_env(config, augmented=True)
    agent = build_agent(config, env)
    generator = torch.Generator().manual_seed(derive_seed(config.seed, "actions"))
    learner = build_learner(agent.policy, config.algo, generator)
    collector = Collector(env, agent.policy, agent.representer, generator)
    collector.restart(derive_seed(config.seed, "worlds", 0) >> 1)
    curriculum = (
        None if config.curriculum is None else Curriculum(config.curriculum, agent.policy.perception.names)
    )
    if curriculum is not None:
        curriculum.open_stage(agent.policy, env.worlds.augmenter)
    algo, steps, spent_s = config.algo, 0, 0.0
    curve: list[tuple[int, float, float]] = []
    at_equal_cpu: dict[str, Any] | None = None
    while steps < algo.total_steps:
        start = cpu_s_of_all()
        rollout = collector.collect(algo.num_steps)
        steps += algo.num_envs * algo.num_steps
        learner.update(rollout, progress=min(1.0, steps / algo.total_steps))
        if curriculum is not None and (change := curriculum.update(rollout.episodes, steps)) is not None:
            curriculum.open_stage(agent.policy, env.worlds.augmenter, change)
        spent_s += cpu_s_of_all() - start
        curve.append((steps, spent_s, rollout.success_rate()))
        if cpu_s is not None and at_equal_cpu is None and spent_s >= cpu_s:
            at_equal_cpu = {"env_steps": steps, "success": judge(config, agent, evaluation_envs)}
    env.close()
    final = judge(config, agent, evaluation_envs)
    return {
        "env_steps": steps,
        "cpu_s": spent_s,
        "success": final,
        "at_equal_cpu": at_equal_cpu or {"env_steps": steps, "success": final},
        "curve": curve,
        "stages": None if curriculum is None else curriculum.changes,
    }


def judge(config: TrainConfig, agent: Agent, num_envs: int) -> dict[str, float]:
    """Success with every combination; the training agent is left alone."""
    env = build_env(config, num_envs)
    judged = build_agent(config, env)
    judged.policy.load_state_dict(agent.policy.state_dict())
    found: dict[str, float] = {}
    for present in (*TRAINED, *HELD_OUT, *ONE_MISSING):
        blanked = frozenset(SENSORS) - set(present)
        seed = derive_seed(config.seed, "evaluation") >> 1
        played = play_episodes(judged, env, episodes=EPISODES, seed=seed, blanked=blanked)
        found["+".join(present)] = played.successes / len(played.finished)
    env.close()
    return found


def main() -> None:
    """Run one arm with one seed and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arm")
    parser.add_argument("seed", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--world", choices=list(WORLDS), default="arena")
    parser.add_argument("--lr", type=float, default=None)
    parser.add_argument("--total-steps", type=int, default=None)
    parser.add_argument("--cpu-s", type=float, default=None)
    args = parser.parse_args()
    torch.set_num_threads(1)
    config = arm_config(args.arm, args.seed, world=args.world, lr=args.lr, total_steps=args.total_steps)
    result = run(config, WORLDS[args.world].evaluation_envs, args.cpu_s)
    args.file.parent.mkdir(parents=True, exist_ok=True)
    atomic_write_json(args.file, {"arm": args.arm, "seed": args.seed, "lr": config.algo.lr} | result)


if __name__ == "__main__":
    main()
