"""Alignment of senses: how far the policy given one sense is from the policy given all.

Measured by the Jensen-Shannon divergence JS(p, q) = KL(p || m) / 2 + KL(q || m) / 2, m = (p + q) / 2: it is
symmetric, 0 only for equal policies, and never above ln 2 = 0.693 nats, also where p and q share nothing.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

LN_2 = math.log(2.0)
"""Largest Jensen-Shannon divergence of two distributions, nats."""

_MIN_LOG_P = -80.0  # stands for log 0: its probability is nothing, but 0 * log 0 is then a number
_SMALL_LOG_U = -8.0  # u = 3e-4: what the series leaves out, u^2 / 3, is below the rounding of float32
_NUM_NODES = 16


class PolicyHeads(NamedTuple):
    """Parameters of a policy's distribution; a part that the action space lacks is None."""

    logits: Float[Tensor, "batch options"] | None
    """Of the options; -inf for one that is not allowed."""
    mean: Float[Tensor, "batch dims"] | None
    log_std: Float[Tensor, "batch dims"] | None


def js_categorical(
    first: Float[Tensor, "batch options"], second: Float[Tensor, "batch options"]
) -> Float[Tensor, " batch"]:
    """Jensen-Shannon divergence of two categorical distributions, exact, from logits; in [0, ln 2] nats.

    Source: Lin 1991, "Divergence measures based on the Shannon entropy", IEEE Trans. Inf. Theory 37(1).
    """
    log_p = first.log_softmax(-1).clamp(min=_MIN_LOG_P)
    log_q = second.log_softmax(-1).clamp(min=_MIN_LOG_P)
    log_m = torch.logaddexp(log_p, log_q) - LN_2
    dims = log_p.exp() * (log_p - log_m) + log_q.exp() * (log_q - log_m)
    return (0.5 * dims.sum(-1)).clamp(0.0, LN_2)


def js_gaussian(
    first_mean: Float[Tensor, "batch dims"],
    first_log_std: Float[Tensor, "batch dims"],
    second_mean: Float[Tensor, "batch dims"],
    second_log_std: Float[Tensor, "batch dims"],
) -> Float[Tensor, "batch dims"]:
    """Jensen-Shannon divergence of two Gaussians, dimension by dimension; each in [0, ln 2] nats.

    There is no closed form. With u = p / q and p the narrower of both,

        JS = ln 2 - (E_p[log(1 + 1 / u)] + E_p[log(1 + u) / u]) / 2,

    integrated by Gauss-Hermite quadrature with 16 nodes, where p has its mass; the second term is
    E_q[log(1 + u)]. Both are positive, so that the bound ln 2 holds whatever the error of the quadrature,
    which is below 1e-4 nats. The sum over dimensions is an upper bound of the joint divergence of diagonal
    Gaussians.

    Args:
        first_mean: Means of one policy.
        first_log_std: Logarithms of its standard deviations.
        second_mean: Means of the other.
        second_log_std: Logarithms of its standard deviations.
    """
    swap = first_log_std > second_log_std
    mean, wide_mean = torch.where(swap, second_mean, first_mean), torch.where(swap, first_mean, second_mean)
    log_std = torch.minimum(first_log_std, second_log_std)
    wide_log_std = torch.maximum(first_log_std, second_log_std)
    nodes, weights = (torch.tensor(x, dtype=mean.dtype, device=mean.device) for x in _quadrature())
    shift = ((mean - wide_mean) * (-wide_log_std).exp())[..., None]
    narrowing = (log_std - wide_log_std)[..., None]
    # A node lies z standard deviations from the mean of p, and this many of q from the mean of q:
    z_wide = shift + narrowing.exp() * nodes
    log_u = 0.5 * (z_wide**2 - nodes**2) - narrowing
    given = torch.nn.functional.softplus(-log_u) + _bounded_ratio(log_u)
    return (LN_2 - 0.5 * (given @ weights)).clamp(0.0, LN_2)


def policy_divergence(
    first: PolicyHeads, second: PolicyHeads, parameter_mask: Bool[Tensor, "options dims"] | None = None
) -> Float[Tensor, " batch"]:
    """Divergence of two policies: JS of the options + sum over parameters of usage * JS of the Gaussians.

    For hybrid actions usage_c = sum_k mask[k, c] * 2 p_k q_k / (p_k + q_k): a parameter counts as often as
    both policies choose an option that uses it; one that only one of them ever chooses has nothing to
    compare. To second order this is the exact divergence of the joint distributions. Without options every
    usage is 1.

    Args:
        first: One policy.
        second: The other, with the same parts; swapping both changes nothing.
        parameter_mask: Which parameters each option uses; None: all of them.

    Returns:
        Nats, in [0, ln 2 * (1 + dims)], or [0, ln 2] with options only.

    Raises:
        ValueError: The policies have different parts or none.
    """
    parts = [[part is not None for part in heads] for heads in (first, second)]
    if parts[0] != parts[1] or not any(parts[0]):
        raise ValueError(
            f"Expected policies with the same parts (logits, mean, log_std), found {parts[0]}, {parts[1]}."
        )
    total: Tensor | None = None
    if first.logits is not None and second.logits is not None:
        total = js_categorical(first.logits, second.logits)
    if (
        first.mean is not None
        and first.log_std is not None
        and second.mean is not None
        and second.log_std is not None
    ):
        dims = js_gaussian(first.mean, first.log_std, second.mean, second.log_std)
        if first.logits is not None and second.logits is not None:
            dims = dims * _usage(first.logits, second.logits, dims, parameter_mask)
        total = dims.sum(-1) if total is None else total + dims.sum(-1)
    if total is None:
        raise ValueError("A Gaussian policy needs both mean and log_std.")
    return total


def modality_divergence(
    singles: Sequence[PolicyHeads],
    full: PolicyHeads,
    present: Bool[Tensor, "senses batch"],
    parameter_mask: Bool[Tensor, "options dims"] | None = None,
) -> Float[Tensor, " batch"]:
    """Mean over present senses m of the divergence between the policy given only m and the one given all.

    In a loss, `full` is usually detached: single senses then learn from the whole, and do not hold it back.

    Args:
        singles: The policy given each sense alone; the others are replaced by missing tokens.
        full: The policy given all senses.
        present: Which senses were perceived; an absent one says nothing and is left out.
        parameter_mask: Which parameters each option uses, for hybrid actions; None: all of them.

    Returns:
        Nats per row; 0 where no sense is present.

    Raises:
        ValueError: There are no senses, or policies differ in their parts.
    """
    if len(singles) == 0 or len(singles) != len(present):
        raise ValueError(
            f"Expected one policy and one row of presence per sense, found {len(singles)} policies and "
            f"{len(present)} rows."
        )
    together = PolicyHeads(
        *(None if None in parts else torch.cat(parts) for parts in zip(*singles, strict=True))
    )
    repeated = PolicyHeads(*(None if part is None else part.repeat(len(singles), 1) for part in full))
    divergences = policy_divergence(together, repeated, parameter_mask).view(len(singles), -1)
    total = torch.where(present, divergences, 0.0).sum(0)
    return total / present.sum(0).clamp(min=1)


@functools.cache
def _quadrature() -> tuple[list[float], list[float]]:
    """Nodes and weights with sum(weight * f(node)) = E[f(z)], z ~ N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NUM_NODES)
    return nodes.tolist(), (weights / weights.sum()).tolist()


def _bounded_ratio(log_u: Tensor) -> Tensor:
    """log(1 + u) / u, in (0, 1], from log u; its series where u is too small to divide by."""
    safe = log_u.clamp(min=_SMALL_LOG_U)
    exact = torch.nn.functional.softplus(safe) * (-safe).exp()
    return torch.where(log_u < _SMALL_LOG_U, 1.0 - 0.5 * log_u.clamp(max=_SMALL_LOG_U).exp(), exact)


def _usage(
    first: Float[Tensor, "batch options"],
    second: Float[Tensor, "batch options"],
    dims: Float[Tensor, "batch dims"],
    parameter_mask: Bool[Tensor, "options dims"] | None,
) -> Float[Tensor, "batch dims"]:
    p, q = first.softmax(-1), second.softmax(-1)
    shared = 2.0 * p * q / (p + q).clamp(min=torch.finfo(p.dtype).tiny)
    if parameter_mask is None:
        return shared.sum(-1, keepdim=True).expand_as(dims)
    return shared @ parameter_mask.to(shared.dtype)
