"""Environment steps per second of training: our PPO on the task of `doom_task`.

`sample_factory_speed` and `rllib_speed` measure the peers on the same task.
"""

from typing import Any

import torch
from doom_task import DoomTask
from ppo_speed import parameters
from timing import Result, cpu_s_of_all, speed

from sensorium.core import Stopwatch, parse_config
from sensorium.rollouts.embodied import RolloutSource
from sensorium.trainers.build import build_agent, build_env
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.ppo import PPO


def config(task: DoomTask, max_staleness: int) -> TrainConfig:
    """The task as a training run of ours, with concatenation instead of attention between senses."""
    values: dict[str, Any] = {
        "env": {
            "task": "doom/basic",
            "visual_obs": ("rgb",),
            "image_size": task.image_size,
            "max_episode_steps": task.max_episode_steps,
            "backend_options": {
                "frame_skip": task.frame_skip,
                "resolution": "160x120",
                "num_workers": task.processes,
            },
        },
        "network": {
            "vision": {"type": "conv", "channels": task.channels, "patch_size": task.patch_size},
            "fusion": {
                "type": "early",
                "embed_dim": task.embed_dim,
                "hidden_dim": task.hidden_dim,
                "mlp_dim": task.hidden_dim,
            },
        },
        "algo": {
            "type": "ppo",
            "num_envs": task.num_envs,
            "num_steps": task.num_steps,
            "num_epochs": task.num_epochs,
            "num_minibatches": task.num_minibatches,
            "lr": task.lr,
            "anneal_lr": False,
            "max_staleness": max_staleness,
        },
        "seed": task.seed,
        "device": "cpu",
    }
    return parse_config(TrainConfig, values)


def ours(*, task: dict[str, Any], seconds: float, warm_up_s: float, max_staleness: int) -> Result:
    """Our PPO, as `sensorium train` runs it but for checkpoints and logs. Counts valid steps only.

    Args:
        task: A `DoomTask`.
        seconds: How long to measure.
        warm_up_s: How long to train before that.
        max_staleness: 0 acts and learns in turn, 1 at the same time.
    """
    train = config(DoomTask.from_json(task), max_staleness)
    env = build_env(train)
    agent = build_agent(train, env)
    generator = torch.Generator().manual_seed(train.seed)
    learner = PPO(agent.policy, train.algo, generator)
    rollouts = RolloutSource(
        env,
        agent.policy,
        agent.representer,
        generator,
        num_steps=train.algo.num_steps,
        max_staleness=max_staleness,
    )
    rollouts.restart(train.seed)
    stopwatch = Stopwatch()
    episodes = 0

    def round_of_training() -> int:
        nonlocal episodes
        with stopwatch.measure("collect_s" if max_staleness == 0 else "wait_s"):
            rollout = rollouts.take(more=True)
        with stopwatch.measure("update_s"):
            learner.update(rollout, progress=0.0)
        episodes += int(rollout.ended.sum())
        return rollout.num_valid

    speed(round_of_training, seconds=warm_up_s, warm_up=0)
    stopwatch.drain()
    episodes = 0
    result = speed(round_of_training, seconds=seconds, warm_up=0, cpu_clock=cpu_s_of_all)
    rollouts.close()
    env.close()
    return (
        result
        | stopwatch.drain()
        | {
            "episode_steps": result["steps"] / episodes if episodes else None,
            "parameters": parameters(agent.policy),
        }
    )
