"""Diagnostics of representations: how alike senses are, how many dimensions they use, where attention goes.

Degenerate inputs (constant features, too few rows) have documented values instead of NaN, so that a curve
does not break where a sense is shut off. Features are centred first: without it the common mean of all rows
makes any two senses look alike.
"""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def centred_cosine(
    first: Float[Tensor, "rows dim"],
    second: Float[Tensor, "rows dim"],
    present: Bool[Tensor, " rows"] | None = None,
) -> Float[Tensor, ""]:
    """Mean over rows of cos(x - mean(x), y - mean(y)), in [-1, 1]: do two senses point the same way?

    Both live in one space (after projection). A low value alone is no failure: trained contrastive spaces
    keep a gap between senses; `linear_cka` compares without a common space.

    Args:
        first: Embeddings of one sense.
        second: Embeddings of another.
        present: Rows at which both are present; others are never read. None: all.

    Returns:
        0 where it is undefined: a row at the mean has no direction and counts as 0, as do no rows.
    """
    x, y, mask = *_centred(first, second, present=present), _mask(first, present)
    norms = x.norm(dim=1) * y.norm(dim=1)
    directed = norms > 0
    cosine = torch.where(directed, (x * y).sum(1) / torch.where(directed, norms, 1.0), 0.0)
    return (cosine.sum() / mask.sum().clamp(min=1)).clamp(-1.0, 1.0)


def linear_cka(
    first: Float[Tensor, "rows first_dim"],
    second: Float[Tensor, "rows second_dim"],
    present: Bool[Tensor, " rows"] | None = None,
) -> Float[Tensor, ""]:
    """Linear centred kernel alignment with the unbiased estimator: HSIC(X, Y) / sqrt(HSIC(X, X) HSIC(Y, Y)).

        HSIC(X, Y) = (tr(KL) + 1'K1 1'L1 / ((n - 1)(n - 2)) - 2 / (n - 2) 1'KL1) / (n (n - 3)),

    K = XX' and L = YY' with zero diagonals. It does not change when X is rotated, shifted or scaled. The
    usual, biased estimator is near 1 for independent features when there are fewer rows than dimensions; this
    one is near 0, and may be slightly negative. Costs rows * dims^2: no Gram matrix is formed.

    Args:
        first: Features of one sense.
        second: Features of another; its dimensions may be of another number.
        present: Rows at which both are present; others are never read. None: all.

    Returns:
        In [-1, 1]; 1 for equal structure; 0 where it is undefined: fewer than 4 rows, or constant features.

    Source: Kornblith et al. 2019, arXiv:1905.00414, section 3; unbiased: Song et al. 2012, "Feature selection
        via dependence maximization", J. Mach. Learn. Res. 13, eq. 5; Nguyen et al. 2021, arXiv:2010.15327,
        eq. 3.
    """
    x, y = _centred(first, second, present=present)
    count = _mask(first, present).sum().to(x.dtype)
    cross, own_x, own_y = _hsic(x, y, count), _hsic(x, x, count), _hsic(y, y, count)
    # Both have unit Frobenius norm, so that anything this small is rounding.
    rounding = 8 * torch.finfo(x.dtype).eps
    defined = (count >= 4) & (own_x > rounding) & (own_y > rounding)
    scale = torch.where(defined, own_x * own_y, 1.0).sqrt()
    return torch.where(defined, cross / scale, 0.0).clamp(-1.0, 1.0)


def effective_rank(
    features: Float[Tensor, "rows dim"], present: Bool[Tensor, " rows"] | None = None
) -> Float[Tensor, ""]:
    """Effective rank exp(H(s / sum(s))), s the singular values of the centred features, H in nats.

    It lies between 1 (all rows on a line) and min(rows - 1, dim) (spread evenly): a fall warns of collapse.

    Args:
        features: Features of one sense.
        present: Rows at which it is present; others are never read. None: all.

    Returns:
        0 for constant features: centred, they have no singular value at all.

    Source: Roy, Vetterli 2007, "The effective rank: a measure of effective dimensionality", EUSIPCO, eq. 3.
    """
    (x,) = _centred(features, present=present)
    singular = torch.linalg.svdvals(x)
    total = singular.sum()
    shares = singular / torch.where(total > 0, total, 1.0)
    return torch.where(total > 0, torch.special.entr(shares).sum().exp(), 0.0)


def attention_entropy(
    weights: Float[Tensor, "*batch slots"], valid: Bool[Tensor, "*batch slots"] | None = None
) -> Float[Tensor, "*batch"]:
    """Entropy of attention over log(number of valid slots): 0 looks at one slot, 1 at all alike.

    Args:
        weights: Attention, >= 0; rescaled to sum to 1 over the valid slots.
        valid: Slots that exist and are present. None: all.

    Returns:
        In [0, 1]; 0 where there are fewer than two valid slots, or none has weight: nothing is spread.
    """
    mask = torch.ones_like(weights, dtype=torch.bool) if valid is None else valid
    kept = torch.where(mask, weights, 0.0)
    total, count = kept.sum(-1), mask.sum(-1)
    defined = (total > 0) & (count >= 2)
    shares = kept / torch.where(defined, total, 1.0)[..., None]
    entropy = torch.special.entr(shares).sum(-1) / torch.where(defined, count, 2).to(weights.dtype).log()
    return torch.where(defined, entropy, 0.0).clamp(0.0, 1.0)


def joint_norm(tensors: Iterable[Tensor]) -> Float[Tensor, ""]:
    """Length of all tensors together, sqrt(sum of squares), on the device of the first; 0 for none.

    In float32 for half precision, whose squares overflow above 65504; otherwise in the dtype of the first.
    """
    norms = [_at_least_single(tensor.detach()).norm() for tensor in tensors]
    if not norms:
        return torch.zeros(())
    total: Tensor = torch.stack([norm.to(norms[0]) for norm in norms]).norm()
    return total


def gradient_norm(parameters: Iterable[Tensor]) -> Float[Tensor, ""]:
    """Length of the gradient of a parameter group; parameters without a gradient count as 0."""
    return joint_norm(parameter.grad for parameter in parameters if parameter.grad is not None)


def update_norm(before: Sequence[Tensor], after: Sequence[Tensor]) -> Float[Tensor, ""]:
    """Length of the step that an optimiser took with a parameter group: what gating really changed.

    Args:
        before: Copies of the parameters before the step.
        after: The parameters after it, in the same order.

    Raises:
        ValueError: The numbers of tensors differ.
    """
    return joint_norm(new.detach() - old.detach() for old, new in zip(before, after, strict=True))


def _mask(
    features: Float[Tensor, "rows dim"], present: Bool[Tensor, " rows"] | None
) -> Bool[Tensor, " rows"]:
    if present is not None:
        return present
    return torch.ones(len(features), dtype=torch.bool, device=features.device)


def _centred(
    *features: Float[Tensor, "rows _"], present: Bool[Tensor, " rows"] | None
) -> tuple[Float[Tensor, "rows _"], ...]:
    """Present rows minus their mean, scaled to unit Frobenius norm; zeros elsewhere and where constant.

    Detached and in at least float32: diagnostics do not train.
    """
    return tuple(_centred_one(one.detach(), _mask(one, present)) for one in features)


def _at_least_single(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return x if x.dtype == torch.float64 else x.float()


def _centred_one(
    features: Float[Tensor, "rows dim"], mask: Bool[Tensor, " rows"]
) -> Float[Tensor, "rows dim"]:
    x = _at_least_single(features).masked_fill(~mask[:, None], 0.0)
    largest = x.abs().amax() if x.numel() else x.new_zeros(())
    x = x / torch.where(largest > 0, largest, 1.0)
    mean = x.sum(0) / mask.sum().clamp(min=1)
    x = (x - mean).masked_fill(~mask[:, None], 0.0)
    # The entries are at most 1: a spread within their rounding is that of constant features.
    rounding = 8 * torch.finfo(x.dtype).eps
    spread = x.abs().amax() if x.numel() else largest
    varies = spread > rounding
    return torch.where(varies, x / torch.where(varies, x.norm(), 1.0), 0.0)


def _hsic(
    x: Float[Tensor, "rows first_dim"], y: Float[Tensor, "rows second_dim"], count: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """Unbiased HSIC times n (n - 3), from features; rows of zeros that are not counted change nothing."""
    x_own, y_own = (x * x).sum(1), (y * y).sum(1)
    x_sums, y_sums = x @ x.sum(0) - x_own, y @ y.sum(0) - y_own
    product = ((x.T @ y) ** 2).sum() - (x_own * y_own).sum()
    total = x_sums.sum() * y_sums.sum() / ((count - 1) * (count - 2)).clamp(min=1)
    return product + total - 2 * (x_sums * y_sums).sum() / (count - 2).clamp(min=1)
