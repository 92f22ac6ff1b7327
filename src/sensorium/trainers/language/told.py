"""What is told of a round: its episodes, its texts, and how old its samples are."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from sensorium.core import EpisodeStatus
from sensorium.rollouts.trajectory import Trajectory
from sensorium.trainers.language.collect import Collected
from sensorium.trainers.language.samples import Sample


def is_success(trajectory: Trajectory) -> bool:
    """Whether the task was solved."""
    return trajectory.verdict.status is EpisodeStatus.SUCCESS


def told_of_episodes(collected: Collected) -> dict[str, float]:
    """Name of a metric -> value; of those that were left out, failures and outcomes alone."""
    trajectories = collected.trajectories
    told = {
        "rollout/outcome": float(np.mean(collected.outcomes)),
        "env/failed_episodes": float(collected.num_failed),
        "groups/rounds": float(collected.num_rounds),
        "groups/left_out": float(collected.num_left_out),
    }
    if not trajectories:
        return told
    results: list[Any] = [r for t in trajectories for step in t.steps for r in step.results]
    told |= {
        "rollout/success_rate": float(np.mean([is_success(t) for t in trajectories])),
        "rollout/episode_length": float(np.mean([len(t.steps) for t in trajectories])),
        "rollout/truncated_rate": float(
            np.mean([t.verdict.status is EpisodeStatus.TRUNCATED for t in trajectories])
        ),
        "tools/calls": len(results) / len(trajectories),
    }
    if results:
        told["tools/failure_rate"] = float(np.mean([result.failure is not None for result in results]))
    return told


def told_of_samples(samples: Sequence[Sample], update: int, *, goes_on: bool) -> dict[str, float]:
    """Name of a metric -> value.

    Args:
        samples: At least one.
        update: Updates that the weights have seen which learn from them.
        goes_on: Whether every prompt is to go on with the one before.
    """
    last = {sample.trajectory: sample for sample in samples}  # in the order of steps
    answers = sum(len(sample.answer) for sample in samples)
    ages = [update - sample.version for sample in samples]
    told = {
        "tokens/prompt": float(np.mean([len(sample.prompt) for sample in samples])),
        "tokens/first_prompt": float(np.mean([len(one.prompt) for one in samples if one.step == 0])),
        "tokens/last_prompt": float(np.mean([len(one.prompt) for one in last.values()])),
        "tokens/answer": answers / len(samples),
        "tokens/cut_answers": float(np.mean([sample.is_cut for sample in samples])),
        "tokens/sampled": float(answers),
        "staleness/mean": float(np.mean(ages)),
        "staleness/max": float(max(ages)),
    }
    kept = _kept(samples) if goes_on else []
    return told | ({"tokens/kept_prefix": float(np.mean(kept))} if kept else {})


def _kept(samples: Sequence[Sample]) -> list[bool]:
    """For every step but the first: whether its prompt begins with what was read and said before."""
    pairs = [(one, other) for one, other in itertools.pairwise(samples) if other.step]
    before = [(*one.prompt, *one.answer) for one, _ in pairs]
    return [other.prompt[: len(said)] == said for said, (_, other) in zip(before, pairs, strict=True)]
