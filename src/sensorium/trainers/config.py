"""What a training run needs to know, complete: `config.json` holds exactly this."""

from typing import Literal

from pydantic import Field

from sensorium.core import Config
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.features.config import PretrainedTextConfig, TextEncoderConfig
from sensorium.nn.config import NetworkConfig


class PPOConfig(Config):
    """Proximal policy optimisation with a recurrent multimodal policy."""

    type: Literal["ppo"] = "ppo"
    total_steps: int = Field(default=1_000_000, ge=1)
    """Environment steps, summed over all worlds, after which training ends."""
    num_envs: int = Field(default=256, ge=1)
    """Worlds that are stepped together."""
    num_steps: int = Field(default=16, ge=1)
    """Steps per world and rollout; also the length of the sequences that the LSTM is trained on."""
    num_epochs: int = Field(default=4, ge=1)
    """Passes over each rollout."""
    num_minibatches: int = Field(default=8, ge=1)
    """Minibatches per pass; each holds whole sequences of num_envs / num_minibatches worlds."""
    lr: float = Field(default=1e-3, gt=0)
    """Learning rate of Adam."""
    anneal_lr: bool = True
    """Whether the learning rate falls linearly to a tenth over the run."""
    reward_scale: float = Field(default=1.0, gt=0)
    """Rewards are multiplied by this before learning, so that values are about 1; reports are not scaled."""
    gamma: float = Field(default=0.99, gt=0, le=1)
    """Discount per environment step."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """0 = one-step TD (low variance), 1 = Monte Carlo (low bias)."""
    clip_ratio_low: float = Field(default=0.2, gt=0, lt=1)
    """The probability ratio is clipped below at 1 - this."""
    clip_ratio_high: float = Field(default=0.2, gt=0)
    """The probability ratio is clipped above at 1 + this."""
    ent_coef: float = Field(default=0.01, ge=0)
    """Weight of the entropy bonus."""
    vf_coef: float = Field(default=0.5, ge=0)
    """Weight of the value loss."""
    vf_clip_range: float | None = None
    """Largest change of a value that the value loss rewards; null leaves values free."""
    kl_coef: float = Field(default=0.0, ge=0)
    """Initial weight of the KL penalty, adapted towards `kl_target`; 0 leaves it out."""
    kl_target: float = Field(default=0.01, gt=0)
    """KL divergence per update that the adaptive penalty aims at, nats."""
    max_grad_norm: float = Field(default=0.5, gt=0)
    """Gradients are scaled down to this norm."""
    max_skipped_updates: int = Field(default=10, ge=1)
    """Updates in a row that may be skipped for a non-finite loss before training stops."""


class EvalConfig(Config):
    """How the finished policy is judged."""

    episodes: int = Field(default=400, ge=1)
    """Episodes for the full set of senses: unseen seeds, deterministic actions."""
    subset_episodes: int = Field(default=200, ge=1)
    """Episodes for each smaller set of senses."""
    num_envs: int = Field(default=200, ge=1)
    """Worlds that are evaluated together."""
    chance_success: float | None = Field(default=None, ge=0, le=1)
    """Success of a policy that cannot know the goal, where that is known; drawn into the report."""


class TrainConfig(Config):
    """One training run."""

    env: EmbodiedEnvConfig
    """The task and the senses."""
    algo: PPOConfig = PPOConfig()
    """The algorithm and its settings."""
    network: NetworkConfig = NetworkConfig()
    """Encoders, fusion and memory."""
    text: TextEncoderConfig = PretrainedTextConfig()
    """Frozen encoder of texts; used only when a sensor is text."""
    evaluation: EvalConfig = EvalConfig()
    """How the finished policy is judged."""
    seed: int = Field(default=0, ge=0)
    """Decides everything random in the run."""
    checkpoint_every: int = Field(default=500_000, ge=1)
    """Environment steps between checkpoints. Worlds begin new episodes at a checkpoint, so that a resumed
    run equals the uninterrupted one bit for bit."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, ...; `auto` takes CUDA when there is one."""
