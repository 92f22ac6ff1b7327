"""Generalised advantage estimation over the tokens of an agent's turns."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor


class TokenAdvantages(NamedTuple):
    """Advantages and value targets, 0 where the mask is False."""

    advantages: Float[Tensor, "rows tokens"]
    returns: Float[Tensor, "rows tokens"]


def token_gae(
    rewards: Float[Tensor, "rows tokens"],
    values: Float[Tensor, "rows tokens"],
    mask: Bool[Tensor, "rows tokens"],
    *,
    gamma: float,
    gae_lambda: float,
    bootstrap: Float[Tensor, " rows"] | None = None,
) -> TokenAdvantages:
    """GAE over model tokens; those of tools and environments are passed over, as if they were not there.

        delta_t = r_t + gamma V(next) - V_t,   A_t = delta_t + gamma lambda A(next)

    Args:
        rewards: Of the tokens; usually 0 but at the end of a turn.
        values: Of the states before the tokens.
        mask: Tokens of the model.
        gamma: Discount per token.
        gae_lambda: In [0, 1].
        bootstrap: Value of what comes after the last token of a truncated episode; 0 for one that ended.

    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16.
    """
    next_value = torch.zeros_like(values[:, 0]) if bootstrap is None else bootstrap
    running = torch.zeros_like(next_value)
    advantages = torch.zeros_like(values)
    for t in range(values.shape[1] - 1, -1, -1):
        here = mask[:, t]
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        running = torch.where(here, delta + gamma * gae_lambda * running, running)
        next_value = torch.where(here, values[:, t], next_value)
        advantages[:, t] = torch.where(here, running, 0.0)
    return TokenAdvantages(advantages, torch.where(mask, advantages + values, 0.0))


def turn_ends(mask: Bool[Tensor, "rows tokens"]) -> Bool[Tensor, "rows tokens"]:
    """The last token of each turn: a model token that no model token follows.

    Turns end where the mask says so, never where a reward stands: a turn that earned nothing is a turn.
    """
    following = torch.zeros_like(mask)
    following[:, :-1] = mask[:, 1:]
    return mask & ~following


def turn_gae(
    rewards: Float[Tensor, "rows tokens"],
    values: Float[Tensor, "rows tokens"],
    mask: Bool[Tensor, "rows tokens"],
    *,
    gamma: float,
    gae_lambda: float,
    gamma_turn: float,
    bootstrap: Float[Tensor, " rows"] | None = None,
) -> TokenAdvantages:
    """GAE in two levels: first over turns, then over the tokens inside each turn.

    Over turns, with e_j the last token of turn j:
    delta_j = r(e_j) + gamma_turn V(e_j+1) - V(e_j), A_j = delta_j + gamma_turn lambda A_j+1.
    Inside a turn A_j + V(e_j) is the reward of its last token, and nothing comes after it. With all
    discounts and lambda 1 this is `token_gae`.

    Args:
        rewards: A turn's reward stands on its last token; others are taken where they stand.
        values: Of the states before the tokens.
        mask: Tokens of the model; turns are its unbroken runs.
        gamma: Discount between tokens of a turn.
        gae_lambda: Of both levels.
        gamma_turn: Discount between turns.
        bootstrap: As in `token_gae`.

    Source: Wang et al. 2025, arXiv:2510.16907 (Bi-Level GAE).
    """
    ends = turn_ends(mask)
    of_turns = token_gae(
        torch.where(ends, rewards, 0.0),
        values,
        ends,
        gamma=gamma_turn,
        gae_lambda=gae_lambda,
        bootstrap=bootstrap,
    ).advantages
    advantages = torch.zeros_like(values)
    running = torch.zeros_like(values[:, 0])
    next_value = torch.zeros_like(running)
    for t in range(values.shape[1] - 1, -1, -1):
        here, end = mask[:, t], ends[:, t]
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        inside = delta + gamma * gae_lambda * running
        running = torch.where(here, torch.where(end, of_turns[:, t], inside), running)
        next_value = torch.where(here, values[:, t], next_value)
        advantages[:, t] = torch.where(here, running, 0.0)
    return TokenAdvantages(advantages, torch.where(mask, advantages + values, 0.0))
