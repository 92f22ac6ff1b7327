"""Generalised advantage estimation."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def gae(
    rewards: Float[Tensor, "time env"],
    values: Float[Tensor, "time+1 env"],
    terminated: Bool[Tensor, "time env"],
    ended: Bool[Tensor, "time env"],
    valid: Bool[Tensor, "time env"],
    *,
    gamma: float,
    gae_lambda: float,
) -> Float[Tensor, "time env"]:
    """Generalised advantage estimation: A_t = delta_t + gamma * lambda * A_{t+1}.

    delta_t = r_t + gamma * V_{t+1} * (1 - terminated_t) - V_t. A truncated step bootstraps from the
    value of its last observation, a terminated one does not; both cut the sum.

    Args:
        rewards: Reward of each step, in the task's own unit.
        values: Value of each observation; row t+1 is the observation that step t led to, also where the
            episode ended there (next-step autoreset keeps that row).
        terminated: The task ended at this step.
        ended: The episode ended at this step, terminated or truncated.
        valid: False for steps that nobody took (the reset step of an autoreset, a broken world); their
            advantage is 0 and the step before bootstraps from the value at that point.
        gamma: Discount per environment step, in (0, 1].
        gae_lambda: 0 = one-step TD (low variance), 1 = Monte Carlo (low bias).

    Returns:
        Advantages, not normalised; 0 where not valid.

    Raises:
        ValueError: `gamma` is outside (0, 1] or `gae_lambda` outside [0, 1].

    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16.

    Example:
        >>> one, no = torch.ones(1, 1, dtype=torch.bool), torch.zeros(1, 1, dtype=torch.bool)
        >>> gae(torch.ones(1, 1), torch.zeros(2, 1), one, one, one, gamma=0.9, gae_lambda=0.95)
        tensor([[1.]])
    """
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be in (0, 1], found {gamma}.")
    if not 0 <= gae_lambda <= 1:
        raise ValueError(f"gae_lambda must be in [0, 1], found {gae_lambda}.")
    delta = rewards + gamma * values[1:] * ~terminated - values[:-1]
    advantages = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        following = (delta[t] + gamma * gae_lambda * following * ~ended[t]) * valid[t]
        advantages[t] = following
    return advantages
