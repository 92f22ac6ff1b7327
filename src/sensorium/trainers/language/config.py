"""What a run of a language model's agent needs to know, complete: `config.json` holds exactly this."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from sensorium.core import Config
from sensorium.llm.local.config import LocalModelConfig
from sensorium.policies.chat_agent import Example
from sensorium.representations.config import PipelineConfig
from sensorium.rollouts.config import EpisodeConfig

ALGORITHM_VERSION = "grpo-1"
"""In run names; raised when a change makes results incomparable."""


class DynamicSampling(Config):
    """Groups that are all alike teach nothing: they are left out, further tasks are played instead.

    Source: Yu et al. 2025, arXiv:2503.14476, section 3.2. Alike is judged by the outcome of the task, before
    anything is added to the reward.
    """

    max_rounds: int = Field(default=5, ge=1)
    """Rounds of collection for one update, the first included."""
    on_exhausted: Literal["keep", "skip", "error"] = "keep"
    """What to do when groups are still missing after the last round: update on what there is (if there is
    anything), skip the update, or stop the run."""


class OverlongConfig(Config):
    """Soft penalty of answers that come near the limit; added to the reward, logged by itself.

    Source: Yu et al. 2025, arXiv:2503.14476, eq. 13.
    """

    max_tokens: int = Field(ge=1)
    """Generated tokens of an episode at which the penalty is full."""
    cache_tokens: int = Field(ge=1)
    """Length of the slope before it."""
    factor: float = Field(default=1.0, gt=0)
    """The full penalty."""

    @model_validator(mode="after")
    def _slope_fits(self) -> "OverlongConfig":
        if self.cache_tokens > self.max_tokens:
            raise ValueError(
                f"cache_tokens ({self.cache_tokens}) is more than max_tokens ({self.max_tokens})"
            )
        return self


class NearStates(Config):
    """States whose texts are nearly alike count as the same."""

    threshold: float = Field(default=0.95, ge=-1, le=1)
    """Least cosine similarity of the embeddings."""
    model: str = "minilm"
    """Sentence encoder: a packaged model, a folder or a name on the hub."""


class NearPictures(Config):
    """States whose last pictures are nearly alike, and whose texts are equal, count as the same."""

    max_bits: int = Field(default=8, ge=0, le=128)
    """Most bits of the perceptual hash that may differ."""


class LoraConfig(Config):
    """Low-rank adapters: the model itself is frozen.

    Source: Hu et al. 2021, arXiv:2106.09685.
    """

    rank: int = Field(default=16, ge=1)
    """Of the matrices that are added."""
    alpha: float = Field(default=32.0, gt=0)
    """They are scaled by alpha / rank."""
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Names of the linear layers that get one."""


class GRPOConfig(Config):
    """Group-relative policy optimisation of episodes or of their steps.

    Every step is a training sample: its prompt is what the agent read, its answer the tokens that were
    sampled. `unit` says what the samples of an episode are credited with.

    The published method DAPO (Decoupled Clip and Dynamic sAmpling, arXiv:2503.14476) is this with
    ``clip_ratio_high: 0.28``, ``normaliser: token``, ``dynamic_sampling`` and ``overlong``: preset
    `grpo_dapo`. Sensorium's `dapo` is another method, for embodied policies.
    """

    type: Literal["grpo"] = "grpo"
    total_updates: int = Field(default=100, ge=1)
    """Rounds of collecting and learning."""
    tasks_per_update: int = Field(default=8, ge=1)
    """Tasks per round."""
    group_size: int = Field(default=8, ge=2)
    """Episodes of each task."""
    unit: Literal["trajectory", "step", "gigpo"] = "trajectory"
    """``trajectory``: all steps of an episode have its advantage. ``step``: a step is compared with other
    steps (`group_by`). ``gigpo``: the sum of both."""
    group_by: Literal["task", "task_step", "task_state"] = "task_state"
    """With ``step``: steps of one task; of one task and number; of one task and state. ``gigpo`` goes by
    state."""
    near: NearStates | NearPictures | None = None
    """When states are nearly equal; null: only when what the agent read is equal."""
    step_value: Literal["reward", "return"] = "return"
    """With ``step``: what is compared, the step's own reward or the discounted return from it on."""
    gamma: float = Field(default=0.95, ge=0, le=1)
    """Discount per step of the returns."""
    step_weight: float = Field(default=1.0, ge=0)
    """Weight of the step's advantage in ``gigpo``."""
    estimator: Literal["grpo", "dr_grpo", "rloo", "reinforce_pp_baseline"] = "grpo"
    """See `algorithms.group_advantages`; steps are scaled by their deviation only with ``grpo``.
    ``reinforce_pp_baseline`` is ``dr_grpo``, then brought to zero mean and unit deviation over all tokens of
    the round."""
    max_staleness: int = Field(default=0, ge=0)
    """Updates that the weights which sampled may be older than those that learn. 0: collect, then learn; n:
    the rounds of the next n updates are collected meanwhile."""
    importance_cap: float | None = Field(default=None, ge=1)
    """Weigh each token by how much likelier it is at the start of the update than when it was sampled, at
    most by this; clipping is then around the policy at the start. null: no weights; what was recorded while
    sampling is what is clipped around where samples may be stale."""
    clip_ratio_low: float = Field(default=0.2, gt=0, lt=1)
    """The probability ratio is clipped below at 1 less this."""
    clip_ratio_high: float = Field(default=0.2, gt=0)
    """The probability ratio is clipped above at 1 plus this."""
    dual_clip: float | None = Field(default=None, gt=1)
    """Bound of the loss where the advantage is negative."""
    ratio_of: Literal["token", "sequence"] = "token"
    """Whose probability ratio is clipped: each token's, or the answer's (GSPO)."""
    normaliser: Literal["sequence", "token", "token_group", "constant"] = "token"
    """How the losses of tokens are averaged, see `algorithms.token_loss.loss_weights`."""
    kl_coef: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Weight of the divergence from the model as it was before training."""
    kl_kind: Literal["k1", "k2", "k3"] = "k3"
    """How it is estimated, see `algorithms.token_loss.kl_per_token`."""
    num_epochs: int = Field(default=1, ge=1)
    """Passes over the samples of a round."""
    num_minibatches: int = Field(default=1, ge=1)
    """Optimiser steps per pass."""
    micro_batch_tokens: int = Field(default=4096, ge=1)
    """Padded tokens that go through the model at once; changes speed and memory, not the loss."""
    lr: float = Field(default=1e-6, gt=0, allow_inf_nan=False)
    """Learning rate of AdamW."""
    warmup_steps: int = Field(default=0, ge=0)
    """Optimiser steps over which the learning rate rises from 0."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Of AdamW."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """A longer gradient is scaled down to this."""
    dynamic_sampling: DynamicSampling | None = None
    """Replace groups that are all alike; null: learn from what there is."""
    overlong: OverlongConfig | None = None
    """Penalty of episodes with many tokens; null: none."""
    mask_cut_answers: bool = False
    """Leave answers that were cut off by ``max_tokens`` out of the loss."""
    max_retries: int = Field(default=2, ge=0)
    """New tries of an episode that failed for a reason beside the agent; then it is left out."""


class AgentSettings(Config):
    """How the model is asked while it collects; nothing is cut from its distribution."""

    temperature: float = Field(default=1.0, gt=0)
    """Logits are divided by it, in acting and in learning."""
    max_tokens: int = Field(default=64, ge=1)
    """Of one answer."""
    rewritten_history: Literal["refuse", "allow"] = "refuse"
    """With a conversation that goes on (``drop_full_history: false``): what to do with a chat template that
    writes earlier messages anew, e.g. without their thoughts. ``allow`` trains each step on exactly what was
    read and sampled then, but the model reads another text than it wrote."""
    offer_tools: bool = True
    """Whether tools are described by the model's template; false: the environment's own words must do."""
    response_format: dict[str, Any] | None = None
    """As in the chat-completions API: the JSON schema that answers are held to, e.g. ``{type: json_schema,
    json_schema: {name: action, schema: {enum: [left, right]}}}``; null: any text. What it leaves no choice
    about is not learnt from. Not with tools that may be called."""


class LanguageEvalConfig(Config):
    """How the trained model is judged."""

    every: int = Field(default=20, ge=0)
    """Updates between two evaluations; 0: only at the end."""
    at_start: bool = False
    """Judge the model also before the first update."""
    tasks: int = Field(default=32, ge=1)
    """Of split `split`, once each."""
    split: str = "test"
    """Of the environment's tasks."""
    temperature: float = Field(default=0.0, ge=0)
    """0: the likeliest token."""


class LanguageRunConfig(Config):
    """A run: environment, model, algorithm."""

    env: str = "lookup"
    """Name of the environment, or ``module:Class``."""
    env_settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the environment."""
    observation: PipelineConfig = PipelineConfig()
    """What the agent is shown."""
    episode: EpisodeConfig = EpisodeConfig()
    system: str | None = None
    """System prompt; null: the environment's."""
    examples: tuple[Example, ...] = ()
    """Questions with answers, shown after the system prompt as if they had been said."""
    split: str = "train"
    """Of the tasks."""
    num_tasks: int = Field(default=256, ge=1)
    """Tasks that are trained on, over and over."""
    model: LocalModelConfig = LocalModelConfig()
    lora: LoraConfig | None = LoraConfig()
    """null trains all weights."""
    agent: AgentSettings = AgentSettings()
    algo: GRPOConfig = GRPOConfig()
    evaluation: LanguageEvalConfig = LanguageEvalConfig()
    concurrency: int = Field(default=32, ge=1)
    """Episodes under way at the same time."""
    seed: int = 0
    """Of everything random in the run."""
    checkpoint_every: int = Field(default=20, ge=1)
    """Updates between two checkpoints."""
    unnamed: ClassVar[frozenset[str]] = frozenset({"seed"})

    def outdated(self, changes: Mapping[str, Any]) -> frozenset[str]:
        """Settings and examples of an environment mean nothing to another one."""
        is_other = changes.get("env", self.env) != self.env
        return frozenset({"env_settings", "examples"}) if is_other else super().outdated(changes)

    @property
    def run_name(self) -> str:
        """``{environment}_{what is compared}_{algorithm version}``, e.g. ``lookup_trajectory_grpo-1``."""
        env = self.env.partition(":")[2] or self.env
        return f"{env}_{self.algo.unit}_{ALGORITHM_VERSION}"
