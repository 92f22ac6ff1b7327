"""Contrastive loss between senses: what belongs to the same instruction is drawn together."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

MAX_LOG_SCALE = math.log(100.0)
"""Upper bound of a learnt log scale; a trainer also clamps the parameter to it after each step."""


class ContrastiveLoss(NamedTuple):
    """Loss, and how often the nearest neighbour in the other sense is a right one."""

    loss: Float[Tensor, ""]
    """0, with gradients of 0, where nothing can be compared."""
    accuracy: Float[Tensor, ""]
    """Share of rows whose nearest row in the other sense has their instruction; NaN if none was compared."""
    chance: Float[Tensor, ""]
    """The same for a random row; NaN if none was compared."""


def one_row_per_episode(
    episodes: Int[Tensor, " rows"],
    eligible: Bool[Tensor, " rows"],
    generator: torch.Generator | None = None,
) -> Int[Tensor, " chosen"]:
    """Choose one eligible row of every episode that has one, uniformly: steps of an episode are near copies.

    Args:
        episodes: Number of the episode that each row belongs to, in any order.
        eligible: Rows that may be chosen.
        generator: Source of the choice, on any device; the rows come back on the device of `episodes`.

    Returns:
        Row numbers, ascending.
    """
    device = torch.device("cpu") if generator is None else generator.device
    shuffled = torch.randperm(len(episodes), generator=generator, device=device).to(episodes.device)
    shuffled = shuffled[eligible[shuffled]]
    ordered, position = episodes[shuffled].sort(stable=True)
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return shuffled[position[is_first]].sort().values


def symmetric_info_nce(
    first: Float[Tensor, "rows dim"],
    second: Float[Tensor, "rows dim"],
    instructions: Int[Tensor, " rows"],
    present: Bool[Tensor, " rows"],
    *,
    temperature: float = 0.1,
    log_scale: Float[Tensor, ""] | None = None,
) -> ContrastiveLoss:
    """Symmetric InfoNCE: L = (l(first, second) + l(second, first)) / 2 on directions of length 1.

        l(x, y) = -mean_i 1/|P_i| sum_{p in P_i} log softmax_j(scale * x_i . y_j)_p

    P_i are the rows with the instruction of row i, itself included: most "negatives" of a reinforcement
    learning batch share the instruction and must not be pushed apart. With one row per instruction this is
    the loss of CLIP; with more, its smallest value is the mean of log |P_i|.

    Args:
        first: Embeddings of one sense, any length; at least float32 is computed with.
        second: Embeddings of another sense, projected to the same space.
        instructions: Equal numbers mean equal instructions.
        present: Rows at which both senses are present; other rows are never read, NaN is harmless there.
        temperature: 1 / scale, > 0; used where `log_scale` is None.
        log_scale: Learnt theta with scale = exp(theta), at most 100: above `MAX_LOG_SCALE` it counts as that,
            and its gradient flows on, so that it can come back.

    Returns:
        Loss, accuracy and chance level, over rows that are present and not zero vectors (which have no
        direction). Fewer than two such rows, or a single instruction, leave nothing to compare.

    Raises:
        ValueError: `temperature` is not above 0.

    Source: Radford et al. 2021, arXiv:2103.00020, figure 3; several positives as in Khosla et al. 2020,
        arXiv:2004.11362, eq. 2.
    """
    senses, there = torch.stack([_float(first), _float(second)]), present.expand(2, -1)
    pair = _compare(senses, there, [(0, 1)], instructions, temperature=temperature, log_scale=log_scale)
    return ContrastiveLoss(*(found.squeeze(0) for found in pair))


def contrastive_loss(
    embeddings: Mapping[str, Float[Tensor, "rows dim"]],
    present: Mapping[str, Bool[Tensor, " rows"]],
    instructions: Int[Tensor, " rows"],
    *,
    temperature: float = 0.1,
    log_scale: Float[Tensor, ""] | None = None,
) -> ContrastiveLoss:
    """Mean of `symmetric_info_nce` over all pairs of senses that have something to compare.

    Args:
        embeddings: Sense -> its embeddings, all projected to one space.
        present: Sense -> rows at which it is present.
        instructions: Equal numbers mean equal instructions.
        temperature: 1 / scale, > 0.
        log_scale: Learnt logarithm of the scale, instead of `temperature`.

    Raises:
        ValueError: There are fewer than two senses, a sense has no presence, or `temperature` is not above 0.
    """
    if len(embeddings) < 2 or not embeddings.keys() <= present.keys():
        raise ValueError(
            f"Expected embeddings of at least two senses and the presence of each, found embeddings of "
            f"{sorted(embeddings) or 'none'} and presence of {sorted(present) or 'none'}."
        )
    names = list(embeddings)
    pairs = _compare(
        torch.stack([_float(embeddings[name]) for name in names]),
        torch.stack([present[name] for name in names]),
        list(combinations(range(len(names)), 2)),
        instructions,
        temperature=temperature,
        log_scale=log_scale,
    )
    compared = ~pairs.chance.isnan()
    loss = pairs.loss.sum() / compared.sum().clamp(min=1)
    return ContrastiveLoss(loss, pairs.accuracy.nanmean(), pairs.chance.nanmean())


def _compare(
    senses: Float[Tensor, "senses rows dim"],
    present: Bool[Tensor, "senses rows"],
    pairs: Sequence[tuple[int, int]],
    instructions: Int[Tensor, " rows"],
    *,
    temperature: float,
    log_scale: Float[Tensor, ""] | None,
) -> ContrastiveLoss:
    """`symmetric_info_nce` of many pairs of senses at once; every field has one entry per pair."""
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, found {temperature}.")
    scale: float | Tensor = 1.0 / temperature
    if log_scale is not None:
        # Forward: clamped. Backward: as if not, since a clamp would hold a theta above the bound for ever.
        scale = (log_scale + (log_scale.clamp(max=MAX_LOG_SCALE) - log_scale).detach()).exp()
    first, second = torch.tensor(pairs, device=senses.device).unbind(1)
    there = (present[first] & present[second]).unsqueeze(-1)
    x, x_usable = _directions(senses.index_select(0, first), there)
    y, y_usable = _directions(senses.index_select(0, second), there)
    usable = x_usable & y_usable
    compared = usable[:, :, None] & usable[:, None, :]
    positive = compared & (instructions[:, None] == instructions[None, :])
    # a single instruction: nothing may be pushed apart
    compared = compared & (compared & ~positive).flatten(1).any(1)[:, None, None]
    positive = positive & compared
    logits = (scale * (x @ y.mT)).masked_fill(~compared, torch.finfo(x.dtype).min)
    loss = 0.5 * (_cross_entropy(logits, positive) + _cross_entropy(logits.mT, positive))
    nearest = _hits(logits, positive).sum(-1) + _hits(logits.mT, positive).sum(-1)
    count = positive.any(-1).sum(-1)
    chance = positive.sum((-2, -1)) / count**2  # 0 / 0, NaN, where nothing is compared
    return ContrastiveLoss(loss, nearest / (2 * count), chance.to(loss.dtype))


def _float(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _directions(
    x: Float[Tensor, "pairs rows dim"], present: Bool[Tensor, "pairs rows 1"]
) -> tuple[Float[Tensor, "pairs rows dim"], Bool[Tensor, "pairs rows"]]:
    """Rows of length 1 and which rows have a direction; the others are zero and pass no gradient."""
    x = x.masked_fill(~present, 0.0)
    largest = x.detach().abs().amax(-1, keepdim=True)
    usable = present & (largest > torch.finfo(x.dtype).tiny) & largest.isfinite()
    # Divided by the largest entry first: squares of tiny or huge entries would leave the range of floats.
    x = torch.where(usable, x, 1.0) / torch.where(usable, largest, 1.0)
    return torch.where(usable, x / x.norm(dim=-1, keepdim=True), 0.0), usable.squeeze(-1)


def _cross_entropy(
    logits: Float[Tensor, "pairs rows rows"], positive: Bool[Tensor, "pairs rows rows"]
) -> Float[Tensor, " pairs"]:
    """Mean over rows with a positive of the mean negative log-probability of their positives."""
    log_p = torch.where(positive, logits.log_softmax(-1), 0.0)
    per_row = -log_p.sum(-1) / positive.sum(-1).clamp(min=1)
    return per_row.sum(-1) / positive.any(-1).sum(-1).clamp(min=1)


def _hits(
    logits: Float[Tensor, "pairs rows rows"], positive: Bool[Tensor, "pairs rows rows"]
) -> Bool[Tensor, "pairs rows"]:
    if logits.shape[-1] == 0:
        return positive.any(-1)
    return positive.gather(-1, logits.argmax(-1, keepdim=True)).squeeze(-1)
