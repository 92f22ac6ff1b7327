"""The parts of proximal policy optimisation, as pure functions."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_MAX_LOG_RATIO = 20.0  # exp(20) is still finite in float32; beyond it one sample would make the loss infinite


class SurrogateLoss(NamedTuple):
    """Clipped surrogate and what it did."""

    loss: Float[Tensor, ""]
    clip_fraction: Float[Tensor, ""]
    """Share of steps whose ratio lies outside the clip range."""
    ratio: Float[Tensor, " batch"]


def masked_mean(x: Float[Tensor, "..."], mask: Bool[Tensor, "..."]) -> Float[Tensor, ""]:
    """Mean of `x` where `mask` is True; 0 when nothing is."""
    return torch.where(mask, x, 0.0).sum() / mask.sum().clamp(min=1)


def normalise_advantages(
    advantages: Float[Tensor, "..."], mask: Bool[Tensor, "..."], *, eps: float = 1e-8
) -> Float[Tensor, "..."]:
    """Zero mean and unit (unbiased) standard deviation over the valid steps; 0 elsewhere."""
    count = mask.sum()
    mean = masked_mean(advantages, mask)
    var = torch.where(mask, (advantages - mean) ** 2, 0.0).sum() / (count - 1).clamp(min=1)
    return torch.where(mask, (advantages - mean) / (var.sqrt() + eps), 0.0)


def clipped_surrogate(
    logprobs: Float[Tensor, " batch"],
    old_logprobs: Float[Tensor, " batch"],
    advantages: Float[Tensor, " batch"],
    mask: Bool[Tensor, " batch"],
    *,
    clip_ratio_low: float,
    clip_ratio_high: float,
) -> SurrogateLoss:
    """Clipped surrogate: -mean(min(r * A, clip(r, 1 - low, 1 + high) * A)), r = exp(logprob - old).

    Args:
        logprobs: Of the actions taken, under the policy being trained.
        old_logprobs: The same, under the policy that acted.
        advantages: Usually normalised.
        mask: Steps that count.
        clip_ratio_low: The ratio is clipped below at 1 - low.
        clip_ratio_high: The ratio is clipped above at 1 + high.

    Source: Schulman et al. 2017, arXiv:1707.06347, eq. 7; separate bounds as in Yu et al. 2025,
        arXiv:2503.14476, eq. 10.
    """
    log_ratio = (logprobs - old_logprobs).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    ratio = torch.where(mask, log_ratio, 0.0).exp()
    clipped = ratio.clamp(1.0 - clip_ratio_low, 1.0 + clip_ratio_high)
    loss = -masked_mean(torch.minimum(ratio * advantages, clipped * advantages), mask)
    outside = (ratio < 1.0 - clip_ratio_low) | (ratio > 1.0 + clip_ratio_high)
    return SurrogateLoss(loss, masked_mean(outside.to(ratio.dtype), mask).detach(), ratio.detach())


def value_loss(
    values: Float[Tensor, " batch"],
    old_values: Float[Tensor, " batch"],
    returns: Float[Tensor, " batch"],
    mask: Bool[Tensor, " batch"],
    *,
    clip_range: float | None,
) -> Float[Tensor, ""]:
    """Half the squared error; with `clip_range`, of the worse of the value and its clipped change.

    L = 1/2 mean(max((V - R)^2, (clip(V, V_old - c, V_old + c) - R)^2))

    Args:
        values: Values being trained.
        old_values: Values at the time of acting.
        returns: Targets: advantages + old values.
        mask: Steps that count.
        clip_range: Largest change c of a value that is rewarded; None leaves values free.
    """
    error = (values - returns) ** 2
    if clip_range is not None:
        clipped = old_values + (values - old_values).clamp(-clip_range, clip_range)
        error = torch.maximum(error, (clipped - returns) ** 2)
    return 0.5 * masked_mean(error, mask)


def adapt_kl_coef(kl_coef: float, kl: float, *, kl_target: float) -> float:
    """Adaptive penalty: x 1.5 when KL > 2 * target, x 0.5 when KL < target / 2, else unchanged.

    Source: Schulman et al. 2017, arXiv:1707.06347, section 4, with the factors that RL libraries use.
    """
    if kl > 2.0 * kl_target:
        return kl_coef * 1.5
    if kl < 0.5 * kl_target:
        return kl_coef * 0.5
    return kl_coef


def explained_variance(
    values: Float[Tensor, " batch"], returns: Float[Tensor, " batch"], mask: Bool[Tensor, " batch"]
) -> float:
    """1 - Var(returns - values) / Var(returns): 1 is perfect, 0 as good as a constant; NaN if constant."""
    r, v = returns[mask], values[mask]
    if len(r) < 2:
        return float("nan")
    var = r.var()
    return float("nan") if var == 0 else float(1.0 - (r - v).var() / var)
