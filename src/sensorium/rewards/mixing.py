"""Mixing of reward terms: weighted, added up, and each kept for the log."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core.errors import ConfigError, unknown_name
from sensorium.rewards.config import MixedRewardConfig


class RewardParts(NamedTuple):
    """What N worlds earned at one step."""

    total: NDArray[np.float32]
    """(N,) sum of the weighted terms: what the policy learns from."""
    terms: Mapping[str, NDArray[np.float32]]
    """Term -> (N,) its weighted values; logged as `reward/{term}`."""


class MixedReward:
    """Weighted sum of named terms: total = sum_term weight * term.

    Args:
        weights: Term -> weight; a term of weight 0 may be left out of a call.

    Raises:
        ConfigError: There are no terms, or a weight is not finite.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        if not weights or not all(np.isfinite(weight) for weight in weights.values()):
            raise ConfigError(
                f"Expected at least one reward term, each with a finite weight, found {dict(weights)}."
            )
        self.weights: Mapping[str, float] = MappingProxyType(dict(weights))

    @classmethod
    def from_config(cls, config: MixedRewardConfig) -> "MixedReward":
        """Mix the terms `task`, `divergence` and `safety`."""
        return cls({"task": config.task, "divergence": config.divergence, "safety": config.safety})

    def __call__(self, terms: Mapping[str, NDArray[np.floating[Any]]]) -> RewardParts:
        """Weight the terms of one step and add them up.

        Args:
            terms: Term -> (N,) values, before weighting.

        Raises:
            ConfigError: A term has no weight, or one with a weight other than 0 is missing.
            ValueError: Shapes differ, or a value is NaN or infinite; the message names the term.
        """
        for name in terms:
            if name not in self.weights:
                raise unknown_name("reward term", name, self.weights)
        missing = sorted(name for name, weight in self.weights.items() if weight != 0 and name not in terms)
        if missing:
            raise ConfigError(
                f"The reward lacks {', '.join(missing)}; pass its values or set its weight to 0."
            )
        shapes = {name: values.shape for name, values in terms.items()}
        if len(set(shapes.values())) != 1 or any(len(shape) != 1 for shape in shapes.values()):
            raise ValueError(f"Expected one number per world in every reward term, found shapes {shapes}.")
        for name, values in terms.items():
            if not np.all(np.isfinite(values)):
                world = int(np.flatnonzero(~np.isfinite(values))[0])
                raise ValueError(f"Reward term {name!r} is {values[world]} in world {world}.")
        weighted = {name: np.float32(self.weights[name]) * values for name, values in terms.items()}
        parts = {name: values.astype(np.float32) for name, values in weighted.items()}
        return RewardParts(np.sum(list(parts.values()), axis=0, dtype=np.float32), parts)


def largest_penalty(config: MixedRewardConfig, *, max_divergence: float) -> float:
    """Most that divergence and safety can take from an episode: |w_divergence| * D + w_safety * cost.

    A policy that solves a task never ranks below one that does nothing, in undiscounted return and whatever
    its violations, if solving earns more than this more from the task (times its weight): doing nothing earns
    no bonus, so that the other terms can only help the one that solves.

    Args:
        config: Weights.
        max_divergence: D, bound of the divergence of a step, nats: ln 2 for discrete actions,
            ln 2 * (1 + dims) for hybrid ones.

    Example:
        >>> round(largest_penalty(MixedRewardConfig(), max_divergence=0.693), 3)
        0.569
    """
    return -config.divergence * max_divergence + config.safety * config.violation_cost
