"""Environment steps per second of training (acting and updating): our PPO on `arena/find`.

`sb3_speed` measures the peers on the same task with the same encoders and the same sizes. They concatenate
what the encoders say; ours does so too (`early`) or lets the senses attend to each other (`cross_attention`).
"""

from dataclasses import dataclass
from typing import Any

import torch
from timing import Result, speed

from sensorium.core import Stopwatch, parse_config
from sensorium.envs.embodied import EmbodiedEnvConfig
from sensorium.nn.config import NetworkConfig
from sensorium.rollouts.embodied import Collector
from sensorium.trainers.build import build_agent, build_env
from sensorium.trainers.config import PPOConfig, TrainConfig
from sensorium.trainers.ppo import PPO

SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What all algorithms have in common."""

    num_envs: int = 64
    num_steps: int = 32
    num_epochs: int = 3
    num_minibatches: int = 4
    lr: float = 1e-3

    @property
    def batch_size(self) -> int:
        """Samples of a minibatch."""
        return self.num_envs * self.num_steps // self.num_minibatches


def config(sizes: Sizes, fusion: str = "cross_attention") -> TrainConfig:
    """The task and, for our side, the algorithm: rgb, depth and speech; the networks of size `tiny`."""
    env: dict[str, Any] = {
        "task": "arena/find",
        "visual_obs": ("rgb", "depth"),
        "audio_obs": ("speech",),
        "max_episode_steps": 80,
        "backend_options": {"colors": ("red", "green", "blue")},
    }
    algo = PPOConfig(
        num_envs=sizes.num_envs,
        num_steps=sizes.num_steps,
        num_epochs=sizes.num_epochs,
        num_minibatches=sizes.num_minibatches,
        lr=sizes.lr,
        anneal_lr=False,
    )
    width = {"mlp_dim": NetworkConfig().fusion.hidden_dim} if fusion == "early" else {}
    network = parse_config(NetworkConfig, {"fusion": {"type": fusion, **width}})
    task = parse_config(EmbodiedEnvConfig, env)
    return TrainConfig(env=task, algo=algo, network=network, seed=SEED, device="cpu")


def parameters(module: torch.nn.Module) -> int:
    """Number of parameters that are trained."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def ours(*, seconds: float, fewest: int, fusion: str = "cross_attention", **sizes: Any) -> Result:
    """Our PPO, as `sensorium train` runs it but for checkpoints and logs. Counts valid steps only."""
    train = config(Sizes(**sizes), fusion)
    env = build_env(train)
    agent = build_agent(train, env)
    generator = torch.Generator().manual_seed(SEED)
    learner = PPO(agent.policy, train.algo, generator)
    collector = Collector(env, agent.policy, agent.representer, generator)
    collector.restart(SEED)
    stopwatch = Stopwatch()

    def round_of_training() -> int:
        with stopwatch.measure("collect_s"):
            rollout = collector.collect(train.algo.num_steps)
        with stopwatch.measure("update_s"):
            learner.update(rollout, progress=0.0)
        return rollout.num_valid

    round_of_training()
    stopwatch.drain()
    result = speed(round_of_training, seconds=seconds, warm_up=0, fewest=fewest)
    env.close()
    sizes_of = {
        "parameters": parameters(agent.policy),
        "encoder_parameters": parameters(agent.policy.perception.encoders),
    }
    return result | stopwatch.drain() | sizes_of
