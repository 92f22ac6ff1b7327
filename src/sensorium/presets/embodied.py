"""Presets of embodied agents."""

from sensorium.core import ActionKind
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.trainers.config import EvalConfig, PPOConfig, TrainConfig


def quickstart() -> TrainConfig:
    """Hear "go to the red ball", see three objects, walk to the right one; minutes on two cores."""
    return TrainConfig(
        env=EmbodiedEnvConfig(
            task="arena/find",
            visual_obs=("rgb", "depth"),
            audio_obs=("speech",),
            action_space=ActionKind.DISCRETE,
            max_episode_steps=80,
            backend_options={"colors": ["red", "green", "blue"]},
        ),
        algo=PPOConfig(total_steps=400_000),
        evaluation=EvalConfig(chance_success=1 / 3),
    )


def doom_basic() -> TrainConfig:
    """Shoot the monster in ViZDoom's `basic` scenario, with sight, depth and the engine's sound."""
    return TrainConfig(
        env=EmbodiedEnvConfig(
            task="doom/basic",
            visual_obs=("rgb", "depth"),
            audio_obs=("env_sound",),
            action_space=ActionKind.DISCRETE,
            max_episode_steps=75,
        ),
        algo=PPOConfig(
            total_steps=100_000,
            num_envs=16,
            num_steps=32,
            num_minibatches=4,
            num_epochs=4,
            lr=5e-4,
            reward_scale=0.01,
        ),
        evaluation=EvalConfig(episodes=100, subset_episodes=48, num_envs=16),
    )


def doom_find() -> TrainConfig:
    """Hear "go to the red pillar" and walk to the right one of three in ViZDoom, round the walls."""
    return TrainConfig(
        env=EmbodiedEnvConfig(
            task="doom/find",
            visual_obs=("rgb", "depth"),
            audio_obs=("speech",),
            action_space=ActionKind.DISCRETE,
            max_episode_steps=100,
            backend_options={"kinds": ["red pillar", "green pillar", "blue pillar"]},
        ),
        algo=PPOConfig(total_steps=500_000, num_envs=32, num_steps=32, num_minibatches=4),
        evaluation=EvalConfig(episodes=200, subset_episodes=100, num_envs=32, chance_success=1 / 3),
    )
