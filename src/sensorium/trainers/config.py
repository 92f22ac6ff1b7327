"""What a training run needs to know, complete: `config.json` holds exactly this."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from sensorium.core import Config
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.features.config import PretrainedTextConfig, TextEncoderConfig
from sensorium.nn.config import NetworkConfig
from sensorium.rewards.config import MixedRewardConfig


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
    lr: float = Field(default=1e-3, gt=0, allow_inf_nan=False)
    """Learning rate of Adam."""
    anneal_lr: bool = True
    """Whether the learning rate falls linearly to a tenth over the run."""
    reward_scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Rewards are multiplied by this before learning, so that values are about 1; reports are not scaled."""
    gamma: float = Field(default=0.99, gt=0, le=1)
    """Discount per environment step."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """0 = one-step TD (low variance), 1 = Monte Carlo (low bias)."""
    clip_ratio_low: float = Field(default=0.2, gt=0, lt=1)
    """The probability ratio is clipped below at 1 - this."""
    clip_ratio_high: float = Field(default=0.2, gt=0)
    """The probability ratio is clipped above at 1 + this."""
    ent_coef: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    """Weight of the entropy bonus."""
    vf_coef: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    """Weight of the value loss."""
    vf_clip_range: float | None = Field(default=None, gt=0)
    """Largest change of a value that the value loss rewards; null leaves values free."""
    kl_coef: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Initial weight of the KL penalty, adapted towards `kl_target`; 0 leaves it out."""
    kl_target: float = Field(default=0.01, gt=0, allow_inf_nan=False)
    """KL divergence per update that the adaptive penalty aims at, nats."""
    max_grad_norm: float = Field(default=0.5, gt=0)
    """Gradients are scaled down to this norm."""
    max_skipped_updates: int = Field(default=10, ge=1)
    """Updates in a row that may be skipped for a non-finite loss before training stops."""
    max_staleness: int = Field(default=0, ge=0, le=1)
    """Updates by which a rollout's policy may be older than the one that learns from it. 0 acts and learns in
    turn; 1 acts in a thread while it learns, which is faster where worlds or the device leave cores idle
    (worlds in processes of their own, networks on a GPU), and holds a copy of the policy."""
    prefetch_minibatches: int = Field(default=0, ge=0)
    """Minibatches that a thread gathers ahead of the update; 0 gathers each when it is needed. Helps where
    networks run on a GPU."""
    diagnostics_every: int = Field(default=5, ge=0)
    """Rollouts between two measurements of what each sense contributes, how senses attend to each other and
    how alike they are; 0 never measures."""
    diagnostics_rows: int = Field(default=512, ge=1)
    """Steps of a rollout that such a measurement looks at."""

    def outdated(self, changes: Mapping[str, Any]) -> frozenset[str]:
        """Another algorithm keeps the settings that all have, except those whose defaults are its own."""
        shared = frozenset(PPOConfig.model_fields) - {"num_epochs", "kl_coef"}
        return super().outdated(changes) - shared


class ShapleyGate(Config):
    """Update gating by Shapley contributions: a sense that contributes little learns faster than the others.

    With `k_min` below 1 those that contribute much learn slower, too.
    """

    type: Literal["shapley"] = "shapley"
    tau: float = Field(default=1.0, gt=0)
    """Temperature: small lets few senses learn at a time, `.inf` switches gating off; 0.7 to 1.3 is usual."""
    k_min: float = Field(default=1.0, ge=0, le=1)
    """Smallest factor on a sense's learning rate. Below 1 leading senses wait, which costs samples: of a task
    that needs them, too, nothing is learnt meanwhile."""
    k_max: float = Field(default=2.0, ge=1)
    """Largest factor on a sense's learning rate."""
    decay: float = Field(default=0.9, ge=0, lt=1)
    """Weight of the past in the moving average of the contributions."""
    min_spread: float = Field(default=0.1, ge=0)
    """Standard deviation of the contributions over the senses below which they count as nearly alike, so that
    noise does not gate. A contribution of 1 is all of the returns' variance, or one nat of the policy."""


class OGMGate(Config):
    """Gating in the manner of OGM-GE: a sense that does better alone than the others on average is slowed."""

    type: Literal["ogm_ge"] = "ogm_ge"
    alpha: float = Field(default=0.3, ge=0)
    """Strength; published for two senses: 0.1 to 0.8."""
    k_min: float = Field(default=0.1, ge=0, le=1)
    """Smallest factor on a sense's learning rate."""
    decay: float = Field(default=0.9, ge=0, lt=1)
    """Weight of the past in the moving average of the scores."""


class CGGMGate(Config):
    """Gating in the manner of CGGM: a sense whose own score rises fastest is slowed."""

    type: Literal["cggm"] = "cggm"
    rho: float = Field(default=1.3, gt=0)
    """Strength; published: 1.3."""
    k_min: float = Field(default=0.3, ge=0, le=1)
    """Smallest factor on a sense's learning rate."""
    k_max: float = Field(default=2.0, ge=1)
    """Largest factor on a sense's learning rate."""
    decay: float = Field(default=0.9, ge=0, lt=1)
    """Weight of the past in the moving average of the improvements."""


class NoGate(Config):
    """No gating: every sense learns at its own full rate."""

    type: Literal["none"] = "none"


GateConfig = Annotated[ShapleyGate | OGMGate | CGGMGate | NoGate, Field(discriminator="type")]


class LearningRates(Config):
    """Learning rate of each part of the policy; null takes `lr`."""

    vision: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Encoders of rgb and depth, and what reads them in the fusion."""
    audio: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The same for speech and environment sounds."""
    text: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The same for texts; the language model itself is frozen."""
    proprio: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The same for the body."""
    policy: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """What senses share: fusion, memory and actor."""
    value: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The critic's head."""


class AlignmentConfig(Config):
    """Mean Jensen-Shannon divergence between the policy given one sense and the policy given all, as a loss.

    Single senses are trained towards the whole, which is held fixed.
    """

    coef: float = Field(default=0.1, gt=0)
    """Weight."""
    rows: int = Field(default=128, ge=1)
    """Steps of each minibatch that the loss looks at; every sense costs a pass through the fusion."""


class ContrastiveConfig(Config):
    """Symmetric InfoNCE between the senses' encodings; steps with one instruction are positives."""

    coef: float = Field(default=0.05, gt=0)
    """Weight."""
    temperature: float = Field(default=0.1, gt=0)
    """Temperature of the similarity."""


class DAPOConfig(PPOConfig):
    """Decoupled Actor-Policy Optimisation: PPO whose senses are kept in balance.

    Not the LLM method of the same name (decoupled clip and dynamic sampling): that one is a setting of GRPO.
    """

    type: Literal["dapo"] = "dapo"  # type: ignore[assignment]
    num_epochs: int = Field(default=10, ge=1)
    """Passes over each rollout."""
    kl_coef: float = Field(default=0.2, ge=0, allow_inf_nan=False)
    """Initial weight of the KL penalty, adapted towards `kl_target`; 0 leaves it out."""
    learning_rates: LearningRates = LearningRates()
    """Learning rates of the policy's parts."""
    gate: GateConfig = ShapleyGate()
    """How the senses' learning rates follow what they contribute."""
    alignment: AlignmentConfig | None = None
    """Draws the policies of single senses towards the whole one."""
    contrastive: ContrastiveConfig | None = None
    """Draws encodings of what belongs together towards each other."""
    reward: MixedRewardConfig | None = None
    """Mixes divergence and safety into the task's reward; null leaves it as it is."""

    @field_validator("gate", mode="before")
    @classmethod
    def _default_gate(cls, value: Any) -> Any:
        """A gate that is given without a type is of the default one."""
        return {"type": "shapley", **value} if isinstance(value, Mapping) else value


AlgoConfig = Annotated[PPOConfig | DAPOConfig, Field(discriminator="type")]


class StageConfig(Config):
    """One stage of a curriculum."""

    sensors: tuple[str, ...] = Field(min_length=1)
    """Sensors that episodes of this stage have; the others are absent."""


class CurriculumConfig(Config):
    """Senses that join one after the other, each when the ones before it are mastered."""

    stages: tuple[StageConfig, ...] = Field(min_length=1)
    """In order; the last one has every sensor."""
    promote_at: float = Field(default=0.8, gt=0, lt=1)
    """The next stage begins when the lower bound of the success rate's 95 % interval reaches this."""
    demote_below: float = Field(default=0.2, ge=0, lt=1)
    """Training goes back a stage when the upper bound stays below this; 0 never goes back."""
    patience: int = Field(default=20, ge=1)
    """Rollouts in a row that must look too hard before training goes back."""
    min_episodes: int = Field(default=200, ge=1)
    """Episodes at a stage before anything is decided."""
    window_episodes: int = Field(default=400, ge=1)
    """Latest episodes at a stage that are counted."""
    replay_share: float = Field(default=0.2, ge=0, lt=1)
    """Share of the episodes that are played at earlier stages, so that they are not forgotten."""
    new_sense_bias: float = Field(default=-4.0, le=0)
    """Gate score with which a new sense starts: at -4 about 2 % of it gets through, and training opens it.
    0 lets it in at once."""

    @model_validator(mode="after")
    def _decidable(self) -> "CurriculumConfig":
        if self.demote_below >= self.promote_at:
            raise ValueError(
                f"demote_below ({self.demote_below}) must be less than promote_at ({self.promote_at})"
            )
        if self.window_episodes < self.min_episodes:
            raise ValueError(
                f"window_episodes ({self.window_episodes}) is less than min_episodes ({self.min_episodes})"
            )
        return self


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


ALGORITHM_VERSIONS = {"ppo": "ppo-1", "dapo": "dapo-1"}
"""Algorithm -> its version in run names; raised when a change makes results incomparable."""


class TrainConfig(Config):
    """One training run."""

    env: EmbodiedEnvConfig
    """The task and the senses."""
    algo: AlgoConfig = PPOConfig()
    """The algorithm and its settings."""
    curriculum: CurriculumConfig | None = None
    """Senses that join one after the other; null gives all of them from the start."""
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
    unnamed: ClassVar[frozenset[str]] = frozenset({"seed", "device", "env.server"})

    def updated(self, changes: Mapping[str, Any]) -> "TrainConfig":
        """As for every config; the success that chance has is not that of another task."""
        new = super().updated(changes)
        judged = changes.get("evaluation")
        is_given = isinstance(judged, Mapping) and "chance_success" in judged
        if new.env.task == self.env.task or is_given:
            return new
        evaluation = new.evaluation.model_copy(update={"chance_success": None})
        return new.model_copy(update={"evaluation": evaluation})

    @property
    def run_name(self) -> str:
        """``{task}_{modalities}_{algorithm version}``, e.g. ``arena-find_rgb+speech_ppo-1``."""
        task = self.env.task.replace("/", "-")
        return f"{task}_{'+'.join(self.env.sensor_names)}_{ALGORITHM_VERSIONS[self.algo.type]}"
