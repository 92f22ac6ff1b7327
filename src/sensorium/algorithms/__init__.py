"""Pure functions of reinforcement learning; no loops over data, no networks."""

from sensorium.algorithms.gae import gae
from sensorium.algorithms.ppo import (
    SurrogateLoss,
    adapt_kl_coef,
    clipped_surrogate,
    explained_variance,
    masked_mean,
    normalise_advantages,
    value_loss,
)

__all__ = [
    "SurrogateLoss",
    "adapt_kl_coef",
    "clipped_surrogate",
    "explained_variance",
    "gae",
    "masked_mean",
    "normalise_advantages",
    "value_loss",
]
