"""The loss of a language model's policy, token by token, and the names of its normalisers."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Normaliser = Literal["sequence", "token", "token_group", "constant"]
KLKind = Literal["k1", "k2", "k3"]
_MAX_LOG_RATIO = 20.0  # exp(20) is still finite in float32


class TokenLoss(NamedTuple):
    """Loss of every token before it is normalised, and what clipping did."""

    per_token: Float[Tensor, "rows tokens"]
    """0 where the mask is False."""
    ratio: Float[Tensor, "rows tokens"]
    clipped_low: Bool[Tensor, "rows tokens"]
    """The ratio was below its bound, and that mattered (negative advantage)."""
    clipped_high: Bool[Tensor, "rows tokens"]
    """The ratio was above its bound, and that mattered (positive advantage)."""


def token_policy_loss(
    logprobs: Float[Tensor, "rows tokens"],
    old_logprobs: Float[Tensor, "rows tokens"],
    advantages: Float[Tensor, "rows tokens"],
    mask: Bool[Tensor, "rows tokens"],
    *,
    clip_ratio_low: float = 0.2,
    clip_ratio_high: float = 0.2,
    dual_clip: float | None = None,
    ratio_of: Literal["token", "sequence"] = "token",
) -> TokenLoss:
    """Clipped surrogate of every token: -min(r A, clip(r, 1 - low, 1 + high) A).

    Args:
        logprobs: Of the tokens that were generated, under the policy being trained.
        old_logprobs: The same, under the policy that generated them.
        advantages: The same number on every token of a row, or one per token.
        mask: True on tokens of the model that count; tokens of tools and environments are False.
        clip_ratio_low: The ratio is clipped below at 1 - low.
        clip_ratio_high: The ratio is clipped above at 1 + high.
        dual_clip: With a negative advantage the loss is at most ``-dual_clip * A``; greater than 1.
        ratio_of: ``token``, or ``sequence``: r = exp(mean of the log-ratios of the row).

    Source: Schulman et al. 2017, arXiv:1707.06347, eq. 7; two bounds: Yu et al. 2025, arXiv:2503.14476,
        eq. 10; dual clip: Ye et al. 2020, arXiv:1912.09729, eq. 5; sequence ratio: Zheng et al. 2025,
        arXiv:2507.18071, eq. 7.

    Raises:
        ValueError: `dual_clip` is not over 1.
    """
    if dual_clip is not None and dual_clip <= 1.0:
        raise ValueError(f"dual_clip must be over 1, found {dual_clip}")
    log_ratio = torch.where(mask, logprobs - old_logprobs, 0.0)
    if ratio_of == "sequence":
        log_ratio = (log_ratio.sum(1) / mask.sum(1).clamp(min=1))[:, None].expand_as(log_ratio)
    ratio = torch.where(mask, log_ratio.clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO), 0.0).exp()
    clipped = ratio.clamp(1.0 - clip_ratio_low, 1.0 + clip_ratio_high)
    loss = torch.maximum(-ratio * advantages, -clipped * advantages)
    if dual_clip is not None:
        loss = torch.where(advantages < 0, torch.minimum(loss, -dual_clip * advantages), loss)
    return TokenLoss(
        per_token=torch.where(mask, loss, 0.0),
        ratio=ratio.detach(),
        clipped_low=mask & (ratio < 1.0 - clip_ratio_low) & (advantages < 0),
        clipped_high=mask & (ratio > 1.0 + clip_ratio_high) & (advantages > 0),
    )


def truncated_importance(
    logprobs: Float[Tensor, "rows tokens"],
    sampled_logprobs: Float[Tensor, "rows tokens"],
    mask: Bool[Tensor, "rows tokens"],
    *,
    cap: float,
) -> Float[Tensor, "rows tokens"]:
    """Weight of tokens that another policy sampled: min(exp(log pi - log mu), cap), without gradient.

    Multiplied with the loss of a token, it makes up for the difference between the policy pi at which an
    update starts and the policy mu that sampled: older weights, or the same in another precision. The cap
    keeps the variance finite.

    Args:
        logprobs: Under the policy at the start of the update.
        sampled_logprobs: Under the policy that sampled.
        mask: Tokens that count; the others weigh 1.
        cap: Largest weight; at least 1.

    Source: Ionides 2008, "Truncated Importance Sampling", J. Comput. Graph. Stat. 17(2); with a surrogate
        that is clipped around pi: Hilton et al. 2021, arXiv:2110.00641, and Fu et al. 2025, arXiv:2505.24298.

    Raises:
        ValueError: `cap` is under 1.
    """
    if cap < 1.0:
        raise ValueError(f"cap must be at least 1, found {cap}")
    log_weight = torch.where(mask, logprobs - sampled_logprobs, 0.0).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    return log_weight.exp().clamp(max=cap).detach()


def kl_per_token(
    logprobs: Float[Tensor, "rows tokens"],
    ref_logprobs: Float[Tensor, "rows tokens"],
    mask: Bool[Tensor, "rows tokens"],
    kind: KLKind = "k3",
) -> Float[Tensor, "rows tokens"]:
    """Estimates of KL(policy || reference) from tokens of the policy, with q = log ref - log policy.

        k1  -q            unbiased, may be negative
        k2  q^2 / 2       biased, never negative
        k3  exp(q) - q - 1   unbiased, never negative

    Source: Schulman 2020, "Approximating KL divergence".
    """
    q = torch.where(mask, ref_logprobs - logprobs, 0.0).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    match kind:
        case "k1":
            return -q
        case "k2":
            return q.square() / 2
        case "k3":
            return q.exp() - q - 1


def loss_weights(
    num_tokens: Int[Tensor, " rows"],
    normaliser: Normaliser,
    *,
    groups: Int[Tensor, " rows"] | None = None,
    max_tokens: int | None = None,
) -> Float[Tensor, " rows"]:
    """What a token of each row weighs in the loss of the whole batch: L = sum_i w_i sum_t l_it.

    The weights are made from the whole batch once; however it is then split for gradient accumulation, the
    losses of the pieces add up to the same.

        sequence      w = 1 / (B n_i)                    GRPO (arXiv:2402.03300, eq. 3)
        token         w = 1 / sum of n                   DAPO as its authors' code has it
        token_group   w = 1 / (P sum of n in the group)  DAPO (arXiv:2503.14476, eq. 8), mean over P groups
        constant      w = 1 / (B max_tokens)             Dr.GRPO (arXiv:2503.20783)

    Args:
        num_tokens: Model tokens of each row; rows without any weigh nothing and are not counted.
        normaliser: One of the above.
        groups: Of the rows; for ``token_group``.
        max_tokens: Longest generation; for ``constant``.

    Raises:
        ValueError: What the normaliser needs is missing.
    """
    counts = num_tokens.to(torch.get_default_dtype())
    valid = num_tokens > 0
    num_rows = valid.sum().clamp(min=1)
    match normaliser:
        case "sequence":
            weights = 1.0 / (num_rows * counts.clamp(min=1))
        case "token":
            weights = torch.ones_like(counts) / counts.sum().clamp(min=1)
        case "token_group":
            if groups is None:
                raise ValueError("the normaliser token_group needs groups")
            _, index = torch.unique(groups, return_inverse=True)
            totals = counts.new_zeros(int(index.max()) + 1).index_add_(0, index, counts)
            num_groups = (totals > 0).sum().clamp(min=1)
            weights = 1.0 / (num_groups * totals[index].clamp(min=1))
        case "constant":
            if max_tokens is None:
                raise ValueError("the normaliser constant needs max_tokens")
            weights = torch.ones_like(counts) / (num_rows * max_tokens)
    return torch.where(valid, weights, 0.0)


def overlong_penalty(
    num_tokens: Int[Tensor, " rows"], *, max_tokens: int, cache_tokens: int, factor: float = 1.0
) -> Float[Tensor, " rows"]:
    """Soft penalty of answers that come near the limit: 0 up to max - cache, falling to -factor at max.

    Args:
        num_tokens: Generated tokens of all turns.
        max_tokens: The limit.
        cache_tokens: Length of the slope, in 1..max_tokens.
        factor: Largest penalty.

    Source: Yu et al. 2025, arXiv:2503.14476, eq. 13.

    Raises:
        ValueError: `cache_tokens` is out of its range.
    """
    if not 1 <= cache_tokens <= max_tokens:
        raise ValueError(f"cache_tokens must be in 1..{max_tokens}, found {cache_tokens}")
    over = (num_tokens - (max_tokens - cache_tokens)).to(torch.get_default_dtype())
    return -factor * (over / cache_tokens).clamp(0.0, 1.0)
