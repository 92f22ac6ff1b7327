"""Advantages of single steps: a step is compared with other steps from the same state."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sensorium.algorithms.group_advantages import group_advantages


class StepRows(NamedTuple):
    """Steps of many episodes, a row each, in any order."""

    rewards: Float[Tensor, " rows"]
    """Earned by the step itself."""
    trajectory: Int[Tensor, " rows"]
    """Number of the episode."""
    step: Int[Tensor, " rows"]
    """Number of the step in its episode, from 0; steps need not be complete."""
    task: Int[Tensor, " rows"]
    """Number of the task."""


def step_returns(rows: StepRows, gamma: float) -> Float[Tensor, " rows"]:
    """Discounted return from each step on: R_t = sum over k >= t of gamma^(k - t) r_k.

    Args:
        rows: Steps; their order does not matter.
        gamma: In [0, 1].
    """
    if not len(rows.rewards):
        return rows.rewards.clone()
    _, episode = torch.unique(rows.trajectory, return_inverse=True)
    num_episodes, length = int(episode.max()) + 1, int(rows.step.max()) + 1
    table = rows.rewards.new_zeros(num_episodes, length)
    table[episode, rows.step] = rows.rewards
    for t in range(length - 2, -1, -1):
        table[:, t] += gamma * table[:, t + 1]
    returns: Tensor = table[episode, rows.step]
    return returns


def pairs_as_groups(first: Int[Tensor, " rows"], *others: Int[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    """One number for each combination, e.g. of task and state."""
    groups: Tensor = torch.unique(torch.stack((first, *others)), dim=1, return_inverse=True)[1]
    return groups


def step_group_advantages(
    rewards: Float[Tensor, " rows"],
    groups: Int[Tensor, " rows"],
    mask: Bool[Tensor, " rows"] | None = None,
    *,
    scale: bool = True,
    eps: float = 1e-6,
) -> Float[Tensor, " rows"]:
    """Step-level GRPO: (r - mean) / (std + eps) over steps of one group; 0 in a group of one.

    Args:
        rewards: Of the steps themselves, their returns, or totals of episodes.
        groups: Steps with the same number are compared: of one task (`StepRows.task`), of one task and number
            of the step, or of one task and state (`pairs_as_groups`).
        mask: Steps that count.
        scale: Divide by the standard deviation.
        eps: Keeps the division finite.
    """
    return group_advantages(rewards, groups, mask, estimator="grpo" if scale else "dr_grpo", eps=eps)


def gigpo_advantages(
    rows: StepRows,
    states: Int[Tensor, " rows"],
    *,
    gamma: float = 0.95,
    step_weight: float = 1.0,
    scale: bool = True,
    per_step_baseline: bool = False,
    eps: float = 1e-6,
) -> Float[Tensor, " rows"]:
    """Group-in-group advantages: of the whole episode, plus of the step among those from the same state.

        A = (R(episode) - mean) / F  +  step_weight (R_t - mean over the same state) / F

    F is the standard deviation plus eps with `scale`, else 1. In a group of one the term is 0.

    Args:
        rows: Steps.
        states: Number of the state before each step; equal numbers in different tasks are different states.
        gamma: Discount of the step returns.
        step_weight: Of the second term; omega in the paper.
        scale: Divide by the standard deviations.
        per_step_baseline: Take mean and deviation of the first term over steps instead of episodes, so that
            long episodes weigh more; the authors' code does so, their eq. 3 does not.
        eps: Keeps divisions finite.

    Source: Feng et al. 2025, arXiv:2505.10978, eqs. 3, 6 and 8.
    """
    first, episode = _episodes(rows.trajectory)
    totals = torch.zeros(len(first), dtype=rows.rewards.dtype, device=rows.rewards.device)
    totals = totals.index_add_(0, episode, rows.rewards)
    if per_step_baseline:
        better = step_group_advantages(totals[episode], rows.task, scale=scale, eps=eps)
    else:
        better = step_group_advantages(totals, rows.task[first], scale=scale, eps=eps)[episode]
    same = pairs_as_groups(rows.task, states)
    of_step = step_group_advantages(step_returns(rows, gamma), same, scale=scale, eps=eps)
    return better + step_weight * of_step


def _episodes(
    trajectory: Int[Tensor, " rows"],
) -> tuple[Int[Tensor, " episodes"], Int[Tensor, " rows"]]:
    """A row of each episode, and the place of every row's episode among them."""
    numbers, episode = torch.unique(trajectory, return_inverse=True)
    first = torch.empty(len(numbers), dtype=torch.long, device=trajectory.device)
    first[episode] = torch.arange(len(trajectory), device=trajectory.device)
    return first, episode
