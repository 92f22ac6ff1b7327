"""Presets of embodied agents."""

from sensorium.core import ActionKind
from sensorium.envs.embodied.augment import AugmentConfig, ColorJitter, ModalDropout, RandomTimeWarp
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.nn.config import NetworkConfig
from sensorium.rewards.config import MixedRewardConfig
from sensorium.trainers.config import (
    ContrastiveConfig,
    DAPOConfig,
    EvalConfig,
    LearningRates,
    PPOConfig,
    TrainConfig,
)


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
        algo=DAPOConfig(total_steps=400_000, num_epochs=4),
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
        algo=DAPOConfig(total_steps=500_000, num_envs=32, num_steps=32, num_minibatches=4, num_epochs=4),
        evaluation=EvalConfig(episodes=200, subset_episodes=100, num_envs=32, chance_success=1 / 3),
    )


def arena_senses() -> TrainConfig:
    """Find the target that is told now by text, now by speech, now by its own sound: four senses, by DAPO."""
    return TrainConfig(
        env=EmbodiedEnvConfig(
            task="arena/senses",
            visual_obs=("rgb",),
            audio_obs=("speech", "env_sound"),
            text_obs=("instruction",),
            action_space=ActionKind.DISCRETE,
            max_episode_steps=100,
            backend_options={"colors": ["red", "green", "blue"]},
        ),
        algo=DAPOConfig(total_steps=800_000, num_epochs=4),
        evaluation=EvalConfig(chance_success=1 / 3),
    )


def dapo_base() -> TrainConfig:
    """All senses at full size (ViT-Base over 8 frames of 224x224, 1024-wide LSTM): needs an accelerator."""
    return TrainConfig(
        env=EmbodiedEnvConfig(
            task="arena/find",
            visual_obs=("rgb", "depth"),
            audio_obs=("speech", "env_sound"),
            text_obs=("instruction",),
            proprio=True,
            action_space=ActionKind.HYBRID,
            max_episode_steps=80,
            image_size=224,
            augment=AugmentConfig(
                modal_dropout=ModalDropout(p=0.1),
                time_warp=RandomTimeWarp(sigma=0.2),
                color_jitter=ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4),
            ),
        ),
        algo=DAPOConfig(
            total_steps=2_000_000,
            num_envs=32,
            num_steps=16,
            num_epochs=10,
            num_minibatches=16,
            lr=1e-4,
            learning_rates=LearningRates(vision=3e-5, policy=1e-4, value=5e-4),
            gamma=0.99,
            gae_lambda=0.95,
            kl_coef=0.2,
            contrastive=ContrastiveConfig(temperature=0.1),
            reward=MixedRewardConfig(task=1.0, divergence=-0.1, safety=0.5),
            prefetch_minibatches=2,
        ),
        network=NetworkConfig.model_validate({"size": "base"}),
        evaluation=EvalConfig(num_envs=32, chance_success=1 / 3),
    )
