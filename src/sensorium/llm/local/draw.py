"""Choosing the next token of every running request, each by its own settings and its own random number."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sensorium.core import ModelError
from sensorium.llm.local.jobs import Choice, TokenTold


def choose(
    logits: Float[Tensor, "requests vocabulary"], choices: Sequence[Choice]
) -> tuple[Int[Tensor, " requests"], Float[Tensor, "requests vocabulary"]]:
    """Draw one token per request by inverting the cumulative distribution at its random number.

    All work is within rows, so that a request's token does not depend on the others.

    Args:
        logits: As the model gave them, float32.
        choices: One per row.

    Returns:
        The tokens, and the log-probabilities that they were drawn from (one-hot at temperature 0).

    Raises:
        ModelError: Logits are not finite, or no token may come.
    """
    allowed = scaled = _masked(logits, choices)
    column = logits.new_tensor
    if any(choice.temperature != 1 for choice in choices):
        scaled = allowed - allowed.amax(dim=-1, keepdim=True)  # at most 0: no temperature overflows
        scaled = scaled / column([choice.temperature or 1.0 for choice in choices])[:, None]
    logp = torch.log_softmax(_truncated(scaled, choices), dim=-1)
    total = logp.exp().cumsum(dim=-1)
    whole = total[:, -1:]
    if not bool(torch.isfinite(whole).all()):
        raise ModelError(
            "The model gave logits that are not finite, or no token that may come. Are its weights intact "
            "(did training diverge), and is the precision enough for them?"
        )
    point = column([choice.uniform for choice in choices])[:, None] * whole
    point = torch.minimum(point, torch.nextafter(whole, torch.zeros_like(whole)))
    drawn = torch.searchsorted(total, point, right=True)[:, 0].clamp(max=logits.shape[-1] - 1)
    if all(choice.temperature > 0 for choice in choices):
        return drawn, logp
    is_greedy = torch.tensor([choice.temperature == 0 for choice in choices], device=logits.device)
    tokens = torch.where(is_greedy, allowed.argmax(dim=-1), drawn)
    certain = torch.full_like(logp, -torch.inf).scatter_(1, tokens[:, None], 0.0)
    return tokens, torch.where(is_greedy[:, None], certain, logp)


def told_of(
    tokens: Sequence[int],
    temperatures: Sequence[float],
    logits: Float[Tensor, "requests vocabulary"],
    drawn: Float[Tensor, "requests vocabulary"],
    *,
    is_own: bool = False,
) -> list[TokenTold]:
    """Log-probabilities of tokens that were taken, one per request.

    Args:
        tokens: Taken.
        temperatures: Of their requests.
        logits: As the model gave them, float32.
        drawn: From `choose`.
        is_own: Whether the model's own distributions were drawn from, nothing changed or cut.
    """
    taken = torch.tensor(tokens, device=logits.device)[:, None]
    if is_own:
        return [TokenTold(one, one, one) for one in drawn.gather(1, taken)[:, 0].tolist()]
    own = tempered = logits.log_softmax(-1)
    if any(temperature not in (0.0, 1.0) for temperature in temperatures):
        divisor = logits.new_tensor([temperature or 1.0 for temperature in temperatures])[:, None]
        tempered = (logits / divisor).log_softmax(-1)
    columns = (found.gather(1, taken)[:, 0].tolist() for found in (own, tempered, drawn))
    return [TokenTold(*row) for row in zip(*columns, strict=True)]


def likeliest(logits: Float[Tensor, " vocabulary"], count: int) -> list[tuple[int, float]]:
    """The likeliest tokens with their log-probabilities, likeliest first; at most the whole vocabulary."""
    best = logits.log_softmax(-1).topk(min(count, logits.shape[-1]))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


def _masked(
    logits: Float[Tensor, "requests vocabulary"], choices: Sequence[Choice]
) -> Float[Tensor, "requests vocabulary"]:
    if all(choice.mask is None for choice in choices):
        return logits
    width = logits.shape[-1]
    allowed = np.ones((len(choices), width), dtype=np.bool_)
    for row, choice in zip(allowed, choices, strict=True):
        if choice.mask is not None:
            known = min(width, len(choice.mask))
            row[:known] = choice.mask[:known]
            row[known:] = False  # logits that stand for no token
    return logits.masked_fill(torch.from_numpy(~allowed).to(logits.device), -torch.inf)


def _truncated(
    scaled: Float[Tensor, "requests vocabulary"], choices: Sequence[Choice]
) -> Float[Tensor, "requests vocabulary"]:
    """Keep the `top_k` likeliest tokens, and of them the fewest that have the probability `top_p`."""
    rows = [i for i, choice in enumerate(choices) if choice.top_k > 0 or choice.top_p < 1.0]
    if not rows:
        return scaled
    width = scaled.shape[-1]
    ordered, order = scaled[rows].sort(dim=-1, descending=True, stable=True)
    limits = [min(choices[i].top_k or width, width) for i in rows]
    rank = torch.arange(width, device=scaled.device)
    ordered = ordered.masked_fill(rank >= rank.new_tensor(limits)[:, None], -torch.inf)
    probabilities = torch.softmax(ordered, dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities
    shares = [choices[i].top_p if choices[i].top_p < 1.0 else torch.inf for i in rows]
    is_dropped = before >= before.new_tensor(shares)[:, None]
    is_dropped[:, 0] = False
    kept = torch.empty_like(ordered).scatter_(1, order, ordered.masked_fill(is_dropped, -torch.inf))
    result = scaled.clone()
    result[rows] = kept
    return result
