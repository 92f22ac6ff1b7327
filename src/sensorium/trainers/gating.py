"""How fast each sense learns: from what the senses contribute to factors on their learning rates."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from sensorium.algorithms import MovingAverage, cggm, ogm_ge, softmax_gates, z_scores
from sensorium.trainers.config import CGGMGate, GateConfig, NoGate, OGMGate, ShapleyGate
from sensorium.trainers.diagnostics import Contributions


class UpdateGate:
    """Holds the moving average behind the gates of a run.

    A gate k multiplies the *learning rate* of its sense's parameters: Adam divides by the gradient's own
    running size, so that a factor on the gradient would be cancelled.

    Args:
        config: Which rule.
        sensors: The senses.
    """

    def __init__(self, config: GateConfig, sensors: Sequence[str]) -> None:
        self.config = config
        self.sensors = tuple(sensors)
        self._average = MovingAverage(0.0 if isinstance(config, NoGate) else config.decay)
        self._alone: dict[str, float] | None = None

    @property
    def on(self) -> bool:
        """Whether gates can differ from 1."""
        config = self.config
        off = isinstance(config, NoGate) or (isinstance(config, ShapleyGate) and math.isinf(config.tau))
        return not off and len(self.sensors) > 1

    def update(self, found: Contributions) -> dict[str, float]:
        """Let the average see a measurement; returns the gate of each sense for the coming update.

        A sense without a score, absent throughout the rollout or without a value to improve on, keeps a gate
        of 1, and the others are balanced among themselves.
        """
        config = self.config
        gates = dict.fromkeys(self.sensors, 1.0)
        if not self.on or isinstance(config, NoGate):
            return gates
        scores = self._score(found)
        self._average = self._average.updated(scores)
        heard = [name for name in self.sensors if name in scores]
        if heard:
            gates |= self._gates(config, heard)
        return gates

    def _gates(self, config: ShapleyGate | OGMGate | CGGMGate, sensors: Sequence[str]) -> dict[str, float]:
        means = torch.tensor(self._average.means(sensors), dtype=torch.float64)
        if isinstance(config, ShapleyGate):
            z = z_scores(means, min_std=config.min_spread)
            gates = softmax_gates(z, tau=config.tau, k_min=config.k_min, k_max=config.k_max)
        elif isinstance(config, OGMGate):
            gates = ogm_ge(means, alpha=config.alpha, k_min=config.k_min)
        else:
            gates = cggm(means, rho=config.rho, k_min=config.k_min, k_max=config.k_max)
        return dict(zip(sensors, gates.tolist(), strict=True))

    def _score(self, found: Contributions) -> Mapping[str, float]:
        if isinstance(self.config, ShapleyGate):
            return found.shapley
        if not isinstance(self.config, CGGMGate):
            return found.alone
        before, self._alone = self._alone, dict(found.alone)
        return {} if before is None else {n: x - before[n] for n, x in found.alone.items() if n in before}

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint must keep."""
        return {"average": self._average.to_json(), "alone": self._alone}

    def from_json(self, values: Mapping[str, Any]) -> None:
        """Go on where `to_json` was called."""
        self._average = MovingAverage.from_json(values["average"])
        self._alone = values["alone"]
