"""What every sample is credited with: episodes and steps are compared within their groups."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sensorium.algorithms.group_advantages import (
    Estimator,
    group_advantages,
    no_signal,
    normalised_over_tokens,
    singleton_share,
)
from sensorium.algorithms.state_groups import difference_hash, equal_states, near_embeddings, near_pictures
from sensorium.algorithms.step_advantages import (
    StepRows,
    gigpo_advantages,
    pairs_as_groups,
    step_group_advantages,
    step_returns,
)
from sensorium.algorithms.token_loss import overlong_penalty
from sensorium.llm.embedded_pictures import picture
from sensorium.llm.messages import ImageBlock, TextBlock
from sensorium.rollouts.trajectory import Trajectory, TrajectoryStep
from sensorium.trainers.language.config import GRPOConfig, NearPictures, NearStates
from sensorium.trainers.language.samples import Sample


class Credit(NamedTuple):
    """Advantages, and what they were made from."""

    advantages: Float[Tensor, " samples"]
    groups: Int[Tensor, " samples"]
    """Task of each sample."""
    metrics: dict[str, float]


def credit(trajectories: Sequence[Trajectory], samples: Sequence[Sample], config: GRPOConfig) -> Credit:
    """Compare episodes of a task, or steps, and give every sample its advantage.

    Args:
        trajectories: None of them failed.
        samples: Their steps (`samples_of`).
        config: Says what is compared.
    """
    tasks = equal_states([(t.task.env, t.task.id) for t in trajectories])
    outcome = torch.tensor([float(t.verdict.reward or 0.0) for t in trajectories])
    penalty = _penalty(trajectories, samples, config)
    rewards = outcome + penalty
    episode = torch.tensor([sample.trajectory for sample in samples])
    silent = no_signal(rewards, tasks)
    metrics = {
        "rollout/return_mean": float(rewards.mean()),
        "rollout/return_std": _std(rewards),
        "reward/task": float(outcome.mean()),
        "groups/no_signal": float(silent.float().mean()),
    }
    if config.overlong is not None:
        metrics["reward/overlong"] = float(penalty.mean())
    match config.unit:
        case "trajectory":
            advantages = group_advantages(rewards, tasks, estimator=_baseline(config))[episode]
        case "step" | "gigpo":
            rows = _rows(trajectories, samples, tasks, penalty)
            advantages, groups = _step_advantages(trajectories, samples, rows, config)
            metrics["groups/singletons"] = singleton_share(groups)
            metrics["groups/size"] = len(groups) / len(torch.unique(groups))
    if config.estimator == "reinforce_pp_baseline":
        advantages = normalised_over_tokens(advantages, torch.tensor([sum(s.counts) for s in samples]))
    metrics["advantage/std"] = _std(advantages)
    return Credit(advantages, tasks[episode], metrics)


def _baseline(config: GRPOConfig) -> Estimator:
    """What is taken of rewards before anything is normalised over the batch."""
    return "dr_grpo" if config.estimator == "reinforce_pp_baseline" else config.estimator


def _std(values: Float[Tensor, " n"]) -> float:
    return float(values.std()) if len(values) > 1 else 0.0


def _rows(
    trajectories: Sequence[Trajectory],
    samples: Sequence[Sample],
    tasks: Int[Tensor, " episodes"],
    penalty: Float[Tensor, " episodes"],
) -> StepRows:
    """Steps with their own rewards; what the episode is charged for its length falls on its last one."""
    episode = torch.tensor([sample.trajectory for sample in samples])
    rewards = torch.tensor([trajectories[s.trajectory].steps[s.step].reward for s in samples])
    last = torch.tensor([s.step == len(trajectories[s.trajectory].steps) - 1 for s in samples])
    return StepRows(
        rewards=rewards + torch.where(last, penalty[episode], 0.0),
        trajectory=episode,
        step=torch.tensor([sample.step for sample in samples]),
        task=tasks[episode],
    )


def _step_advantages(
    trajectories: Sequence[Trajectory], samples: Sequence[Sample], rows: StepRows, config: GRPOConfig
) -> tuple[Float[Tensor, " samples"], Int[Tensor, " samples"]]:
    scale = config.estimator == "grpo"
    if config.unit == "gigpo" or config.group_by == "task_state":
        steps = [trajectories[s.trajectory].steps[s.step] for s in samples]
        states = state_numbers(steps, rows.task, config.near)
        groups = pairs_as_groups(rows.task, states)
        if config.unit == "gigpo":
            made = gigpo_advantages(
                rows, states, gamma=config.gamma, step_weight=config.step_weight, scale=scale
            )
            return made, groups
    elif config.group_by == "task_step":
        groups = pairs_as_groups(rows.task, rows.step)
    else:
        groups = rows.task
    values = rows.rewards if config.step_value == "reward" else step_returns(rows, config.gamma)
    return step_group_advantages(values, groups, scale=scale), groups


def state_numbers(
    steps: Sequence[TrajectoryStep], tasks: Int[Tensor, " steps"], near: NearStates | NearPictures | None
) -> Int[Tensor, " steps"]:
    """A number for the state before each step; equal, or nearly equal, states share one.

    Raises:
        MissingDependencyError: What embeds states is not installed.
    """
    match near:
        case None:
            return equal_states([step.state_key for step in steps])
        case NearStates():
            return near_embeddings(_embedded(steps, near), tasks, threshold=near.threshold)
        case NearPictures():
            texts = equal_states([_state_text(step) for step in steps])
            hashes = torch.stack([_picture_hash(step) for step in steps])
            return near_pictures(hashes, pairs_as_groups(tasks, texts), max_bits=near.max_bits)


def _penalty(
    trajectories: Sequence[Trajectory], samples: Sequence[Sample], config: GRPOConfig
) -> Float[Tensor, " episodes"]:
    limits = config.overlong
    if limits is None:
        return torch.zeros(len(trajectories))
    counts = torch.zeros(len(trajectories), dtype=torch.long)
    for sample in samples:
        counts[sample.trajectory] += len(sample.answer)
    return overlong_penalty(
        counts, max_tokens=limits.max_tokens, cache_tokens=limits.cache_tokens, factor=limits.factor
    )


def _state_text(step: TrajectoryStep) -> str:
    blocks = step.prompt[-1].content[step.state_from :]
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def _embedded(steps: Sequence[TrajectoryStep], near: NearStates) -> Float[Tensor, "steps dim"]:
    from sensorium.core import Modality
    from sensorium.features.extractors.sentence import Sentence, SentenceConfig
    from sensorium.observations import Part
    from sensorium.observations.values import TextValue

    extractor = Sentence(SentenceConfig(model=near.model))
    parts = [
        Part(id=str(number), modality=Modality.TEXT, value=TextValue(text=_state_text(step)))
        for number, step in enumerate(steps)
    ]
    nothing = np.zeros(extractor.dim, np.float32)  # of a state without words
    found = (one.vector for one in extractor(parts))
    return torch.tensor(np.stack([nothing if vector is None else vector for vector in found]))


def _picture_hash(step: TrajectoryStep) -> Tensor:
    """Hash of the last picture of a state; zeros where there is none."""
    pictures = [b for b in step.prompt[-1].content[step.state_from :] if isinstance(b, ImageBlock)]
    if not pictures or not pictures[-1].url.startswith("data:"):
        return torch.zeros(128, dtype=torch.uint8)
    return difference_hash(np.asarray(picture(pictures[-1].url)))
