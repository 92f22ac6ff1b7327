"""Which metrics of a language model's run become which chart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sensorium.analysis.charts import COMPACT, REGULAR
from sensorium.analysis.curves import Chart, Course, Plan, draw_charts

_LEARNING = (
    Plan(
        "Success",
        r"(rollout|eval)/success_rate",
        is_share=True,
        sentence="Share of the episodes that solved the task: while training, and on tasks not trained on.",
        labels={"rollout": "training", "eval": "evaluation"},
    ),
    Plan(
        "Return",
        r"(rollout|eval)/return_mean",
        sentence="Mean sum of an episode's rewards: while training, and on tasks not trained on.",
        labels={"rollout": "training", "eval": "evaluation"},
    ),
)
_OUTCOME = Plan(
    "Return",
    r"(rollout|eval)/return_mean|rollout/(outcome)",
    sentence=(
        "Mean sum of an episode's rewards; the outcome is the task's reward alone, and groups that were left "
        "out count in it."
    ),
    labels={"rollout": "learnt from", "eval": "evaluation", "outcome": "outcome"},
)
_SIGNAL = (
    Plan("Episodes without signal", r"groups/no_signal", is_share=True),
    Plan("Steps alone in their group", r"groups/singletons", is_share=True),
    Plan("Steps per group", r"groups/size"),
    Plan("Spread of the returns", r"rollout/return_std"),
    Plan("Spread of the advantages", r"advantage/std"),
    Plan("Groups left out", r"groups/left_out", quiet_at=0.0),
    Plan("Rounds of playing", r"groups/rounds", quiet_at=1.0),
    Plan("Penalty of long answers", r"reward/overlong"),
    Plan("Failed episodes", r"env/failed_episodes", quiet_at=0.0),
)
_POLICY = (
    Plan("Entropy", r"policy/entropy"),
    Plan(
        "KL divergence",
        r"policy/kl",
        sentence=(
            "How far the steps of an update moved the policy from the one that sampled, per token, in nats; "
            "0 with one step per update."
        ),
    ),
    Plan("KL divergence from the start", r"policy/reference_kl"),
    Plan(
        "Clip fractions",
        r"policy/clip_fraction_(low|high)",
        sentence="Share of the tokens whose probability ratio a clip bound held; 0 with one step per update.",
        labels={"low": "lower bound", "high": "upper bound"},
    ),
    Plan(
        "Ratio",
        r"policy/((?:first_)?ratio_deviation)",
        sentence=(
            "Largest distance from 1 of a token's probability ratio; in the first step of an update rounding "
            "alone; 0 with one step per update."
        ),
        labels={"ratio_deviation": "all steps", "first_ratio_deviation": "first step"},
    ),
    Plan("Log-probabilities", r"policy/logprob_change"),
    Plan(
        "Age of the samples",
        r"staleness/(mean|max)",
        sentence="Updates between the weights that sampled and those that learnt; 0 when they took turns.",
        labels={"mean": "mean", "max": "oldest"},
        quiet_at=0.0,
    ),
    Plan("Importance", r"policy/importance"),
    Plan("Policy loss", r"loss/policy"),
    Plan("Gradient norm", r"gradient/norm"),
    Plan("Learning rate", r"lr"),
)
_TEXTS = (
    Plan(
        "Length of prompts",
        r"tokens/((?:first_|last_)?prompt)",
        sentence=(
            "Tokens that the model read before an answer. Where history is dropped, the last step of an "
            "episode reads no more than the first; where it is kept, every step reads all before it."
        ),
        labels={"prompt": "all steps", "first_prompt": "first step", "last_prompt": "last step"},
    ),
    Plan("Prompts that go on with the same tokens", r"tokens/kept_prefix", is_share=True),
    Plan("Length of answers", r"tokens/answer"),
    Plan("Answers cut off", r"tokens/cut_answers", is_share=True),
    Plan("Steps per episode", r"rollout/episode_length", quiet_at=1.0),
    Plan("Episodes at the step limit", r"rollout/truncated_rate", is_share=True, quiet_at=0.0),
    Plan("Tool calls per episode", r"tools/calls", quiet_at=0.0),
    Plan("Tool calls that failed", r"tools/failure_rate", is_share=True),
)
_SPEED = (
    Plan("Tokens per second", r"time/tokens_per_s"),
    Plan("Tokens per update", r"tokens/sampled"),
    Plan("Seconds per update", r"time/((?!tokens_per_s)[^/]+)_s", "time/each part_s"),
)


@dataclass(frozen=True, slots=True)
class ChartSection:
    """Charts under one heading."""

    name: str
    heading: str
    lead: str
    charts: Sequence[Chart]


def learning_curves(course: Course) -> list[Chart]:
    """Success and return over updates; the outcome, too, where it differs from the return."""
    returns, outcomes = course.values("rollout/return_mean"), course.values("rollout/outcome")
    is_same = all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-6) for a, b in zip(returns, outcomes, strict=True)
    )
    return draw_charts(course, _LEARNING if is_same else (_LEARNING[0], _OUTCOME), REGULAR)


def detail_sections(course: Course) -> list[ChartSection]:
    """What was behind them, where it was measured."""
    plans = (
        (
            "signal",
            "What there was to learn from",
            "An episode or a step is compared with its group. A group that is all alike teaches nothing.",
            _SIGNAL,
        ),
        ("policy", "How the policy moved", "Per token of the answers that were learnt from.", _POLICY),
        ("texts", "What was read, written and called", "Prompts, answers and tools of the episodes.", _TEXTS),
        ("speed", "Where the time went", "Wall time, and what it was spent on.", _SPEED),
    )
    made = [
        ChartSection(name, title, lead, draw_charts(course, of, COMPACT)) for name, title, lead, of in plans
    ]
    return [section for section in made if section.charts]
