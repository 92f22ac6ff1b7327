"""Advantages of language-model agents: an episode is compared with others of its task."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Estimator = Literal["grpo", "dr_grpo", "rloo"]


class GroupStatistics(NamedTuple):
    """What the members of each row's group have in common."""

    mean: Float[Tensor, " rows"]
    std: Float[Tensor, " rows"]
    """Unbiased (n - 1); 0 in a group of one."""
    size: Float[Tensor, " rows"]
    """Members that count; 0 where none does."""


def group_statistics(
    values: Float[Tensor, " rows"], groups: Int[Tensor, " rows"], mask: Bool[Tensor, " rows"]
) -> GroupStatistics:
    """Mean, standard deviation and size of every row's group.

    Args:
        values: Rewards or returns; those of rows that do not count may be NaN.
        groups: Any number that members of a group share.
        mask: Rows that count; a failed episode does not.
    """
    _, index = torch.unique(groups, return_inverse=True)
    num_groups = int(index.max()) + 1 if len(index) else 0
    least = torch.full((num_groups,), torch.inf, dtype=values.dtype, device=values.device)
    least = least.scatter_reduce(0, index, torch.where(mask, values, torch.inf), "amin")[index]
    above = torch.where(mask, values - least, 0.0)  # exactly 0 where all are alike: no rounding to divide by
    size = _sum(mask.to(values.dtype), index, num_groups)
    mean = _sum(above, index, num_groups) / size.clamp(min=1)
    squares = torch.where(mask, (above - mean[index]) ** 2, 0.0)
    std = (_sum(squares, index, num_groups) / (size - 1).clamp(min=1)).sqrt()
    return GroupStatistics(mean[index] + torch.where(least.isfinite(), least, 0.0), std[index], size[index])


def group_advantages(
    rewards: Float[Tensor, " rows"],
    groups: Int[Tensor, " rows"],
    mask: Bool[Tensor, " rows"] | None = None,
    *,
    estimator: Estimator = "grpo",
    eps: float = 1e-6,
) -> Float[Tensor, " rows"]:
    """How much better each row did than its group.

        grpo      (R - mean) / (std + eps)      Shao et al. 2024, arXiv:2402.03300, section 4.1.2
        dr_grpo   R - mean                      Liu et al. 2025, arXiv:2503.20783, eq. 3
        rloo      n / (n - 1) (R - mean)        Ahmadian et al. 2024, arXiv:2402.14740, eq. 8

    Those of ``dr_grpo``, brought to zero mean and unit variance over the tokens of the batch
    (`normalised_over_tokens`), are REINFORCE++ with baseline (Hu et al. 2025, arXiv:2501.03262).

    Args:
        rewards: One per row.
        groups: Any number that the rows of one task share, made from its id, never from its text: tasks of
            equal text with different pictures are different tasks.
        mask: Rows that count; the others get 0 and are no part of a baseline.
        estimator: One of the above.
        eps: Of ``grpo``.

    Returns:
        Advantages; 0 in a group of one, which has nothing to compare with.
    """
    if mask is None:
        mask = torch.ones_like(rewards, dtype=torch.bool)
    mean, std, size = group_statistics(rewards, groups, mask)
    better = torch.where(mask & (size > 1), rewards - mean, 0.0)
    match estimator:
        case "grpo":
            return better / (std + eps)
        case "dr_grpo":
            return better
        case "rloo":
            return better * size / (size - 1).clamp(min=1)


def normalised_over_tokens(
    advantages: Float[Tensor, " rows"], num_tokens: Int[Tensor, " rows"], *, eps: float = 1e-8
) -> Float[Tensor, " rows"]:
    """Zero mean and unit (unbiased) standard deviation over all tokens, each with the advantage of its row.

    Args:
        advantages: One per row.
        num_tokens: Tokens of each row that count.
        eps: Keeps the division finite.

    Returns:
        Advantages; 0 in rows without tokens.

    Source: Hu et al. 2025, arXiv:2501.03262, section 3.
    """
    counts = num_tokens.to(advantages.dtype)
    total = counts.sum()
    mean = (counts * advantages).sum() / total.clamp(min=1)
    variance = (counts * (advantages - mean) ** 2).sum() / (total - 1).clamp(min=1)
    return torch.where(num_tokens > 0, (advantages - mean) / (variance.sqrt() + eps), 0.0)


def no_signal(
    rewards: Float[Tensor, " rows"],
    groups: Int[Tensor, " rows"],
    mask: Bool[Tensor, " rows"] | None = None,
    *,
    tolerance: float = 1e-6,
) -> Bool[Tensor, " rows"]:
    """Rows whose group is all alike and so teaches nothing; also groups of one and rows that do not count."""
    if mask is None:
        mask = torch.ones_like(rewards, dtype=torch.bool)
    _, std, size = group_statistics(rewards, groups, mask)
    return ~mask | (size < 2) | (std <= tolerance)


def singleton_share(groups: Int[Tensor, " rows"], mask: Bool[Tensor, " rows"] | None = None) -> float:
    """Share of the rows that count which are alone in their group; 0 of none."""
    if mask is None:
        mask = torch.ones_like(groups, dtype=torch.bool)
    counted = groups[mask]
    if not len(counted):
        return 0.0
    _, sizes = torch.unique(counted, return_counts=True)
    return float((sizes == 1).sum()) / len(counted)


def _sum(
    values: Float[Tensor, " rows"], index: Int[Tensor, " rows"], num_groups: int
) -> Float[Tensor, " groups"]:
    return torch.zeros(num_groups, dtype=values.dtype, device=values.device).index_add_(0, index, values)
