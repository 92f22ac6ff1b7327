"""Tiny runs on the cue backend, shared by the tests of everything above environments."""

from dataclasses import dataclass
from typing import Any

import torch

from sensorium.core import ActionKind
from sensorium.envs.embodied import EmbodiedEnvConfig, MultiModalVectorEnv
from sensorium.features.config import HashedTextConfig
from sensorium.nn.config import ConvConfig, CrossAttentionConfig, NetworkConfig, SoundConfig, SpaceTimeConfig
from sensorium.rollouts.embodied import Collector
from sensorium.testing.cue import use_cue_backend
from sensorium.trainers.build import Agent, build_agent, build_env
from sensorium.trainers.config import DAPOConfig, EvalConfig, PPOConfig, TrainConfig

ALL_SENSORS = ("rgb", "depth", "speech", "env_sound", "instruction", "proprio")
KINDS = tuple(ActionKind)
IMAGE_SIZE = 16
CONV = ConvConfig(channels=(8, 8), patch_size=8, merge_size=1)
SPACE_TIME = SpaceTimeConfig(patch_size=8, num_frames=3, depth=1, embed_dim=16, num_heads=2)


def cue_env_config(
    sensors: tuple[str, ...] = ("rgb",), kind: ActionKind = ActionKind.DISCRETE, **options: Any
) -> EmbodiedEnvConfig:
    """`cue/match` with some sensors; `options` are those of the backend."""
    return EmbodiedEnvConfig(
        task="cue/match",
        visual_obs=tuple(s for s in sensors if s in ("rgb", "depth")),
        audio_obs=tuple(s for s in sensors if s in ("speech", "env_sound")),
        text_obs=tuple(s for s in sensors if s == "instruction"),
        proprio="proprio" in sensors,
        action_space=kind,
        image_size=IMAGE_SIZE,
        max_episode_steps=100,
        backend_options=options,
    )


def cue_config(
    sensors: tuple[str, ...] = ("rgb",),
    kind: ActionKind = ActionKind.DISCRETE,
    *,
    vision: ConvConfig | SpaceTimeConfig = CONV,
    seed: int = 0,
    checkpoint_every: int = 1_000_000,
    algo: dict[str, Any] | None = None,
    **options: Any,
) -> TrainConfig:
    """A run of seconds on `cue/match`; `algo` holds settings of PPO, or with `type: dapo` of DAPO."""
    settings: dict[str, Any] = {"num_envs": 8, "num_steps": 8, "num_minibatches": 2, "total_steps": 192}
    settings |= algo or {}
    return TrainConfig(
        env=cue_env_config(sensors, kind, **options),
        algo=DAPOConfig(**settings) if settings.get("type") == "dapo" else PPOConfig(**settings),
        network=NetworkConfig(
            vision=vision,
            depth=vision,
            sound=SoundConfig(channels=(8,)),
            fusion=CrossAttentionConfig(embed_dim=16, num_heads=2, hidden_dim=16),
        ),
        text=HashedTextConfig(dim=16, max_tokens=4),
        evaluation=EvalConfig(episodes=16, subset_episodes=8, num_envs=8, chance_success=0.3),
        seed=seed,
        checkpoint_every=checkpoint_every,
        device="cpu",
    )


@dataclass(frozen=True)
class CueRound:
    """A config with everything that is built from it."""

    config: TrainConfig
    env: MultiModalVectorEnv
    agent: Agent
    collector: Collector


def cue_round(config: TrainConfig, *, generator_seed: int = 0, augmented: bool = False) -> CueRound:
    """Build env, agent and collector, and start the episodes."""
    use_cue_backend()
    env = build_env(config, augmented=augmented)
    agent = build_agent(config, env)
    generator = torch.Generator().manual_seed(generator_seed)
    collector = Collector(env, agent.policy, agent.representer, generator)
    collector.restart(7)
    return CueRound(config, env, agent, collector)


def perturb(module: torch.nn.Module, *, scale: float = 0.3, seed: int = 0) -> None:
    """Move every parameter away from its (often zero) start, so that equalities mean something."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += scale * torch.randn(parameter.shape, generator=generator)
