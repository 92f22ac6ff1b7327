"""Weights of the mixed reward."""

from pydantic import Field

from sensorium.core.config import Config


class MixedRewardConfig(Config):
    """Weights of the terms: task - 0.1 * divergence + 0.5 * safety by default."""

    task: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """Weight of the environment's own reward."""
    divergence: float = Field(default=-0.1, le=0, allow_inf_nan=False)
    """Weight of the divergence between the policy given one sense and given all, averaged over an episode of
    full length; 0 or below. As a loss (`loss/alignment`) it reaches the network directly: prefer that, and
    set 0 here."""
    safety: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    """Weight of the safety term: a bonus of up to 1 for a solved episode, less the cost of violations."""
    violation_cost: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """What an episode of full length pays if every step is a violation; each one costs its share of this.
    Weighted by `safety`."""
