"""Noise of a sensor's own scale: what a broken sensor delivers that does not know it is broken."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sensorium.core import Modality
from sensorium.envs.embodied import SensorSpec
from sensorium.nn import RunningNorm
from sensorium.policies.embodied import ActorCritic


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseScale:
    """Distribution of one sensor's noise.

    Integers are uniform over the range. Floats are Gaussian, clipped to the range, where a mean and a
    deviation are known; else uniform over the range, or standard normal where it has no end.
    """

    shape: tuple[int, ...]
    """Shape of one reading of one world."""
    dtype: str
    low: float
    """Smallest value that the sensor delivers; -inf where there is none."""
    high: float
    mean: NDArray[np.float32] | None = None
    """Broadcasts over the last axis of a reading."""
    std: NDArray[np.float32] | None = None

    def draw(self, random: np.random.Generator) -> NDArray[Any]:
        """One reading, `shape` in `dtype`."""
        if np.issubdtype(np.dtype(self.dtype), np.integer):
            return random.integers(int(self.low), int(self.high), self.shape, dtype=self.dtype, endpoint=True)
        if self.mean is None and np.isfinite([self.low, self.high]).all():
            return random.uniform(self.low, self.high, self.shape).astype(self.dtype)
        values = random.standard_normal(self.shape, dtype=np.float32)
        if self.mean is not None and self.std is not None:
            values = self.mean + self.std * values
        return values.clip(self.low, self.high).astype(self.dtype)


def noise_scales(sensors: Mapping[str, SensorSpec], policy: ActorCritic) -> dict[str, NoiseScale]:
    """Noise of every sensor that is not text; means and deviations are those of the policy's filters.

    Args:
        sensors: What the environment delivers.
        policy: Its observation filters saw the training's readings.
    """
    filters = dict(policy.perception.filters.items())
    scales: dict[str, NoiseScale] = {}
    for name, spec in sensors.items():
        if spec.modality is Modality.TEXT or spec.space.shape is None:
            continue
        running = filters.get(name)
        mean, std = None, None
        if isinstance(running, RunningNorm):
            mean = running.mean.detach().cpu().numpy()
            std = running.var.detach().sqrt().cpu().numpy()
        low, high = _range(spec.space)
        scales[name] = NoiseScale(
            shape=spec.space.shape,
            dtype=np.dtype(spec.space.dtype).name,
            low=low,
            high=high,
            mean=mean,
            std=std,
        )
    return scales


def _range(space: spaces.Space[Any]) -> tuple[float, float]:
    """Smallest and largest value of any space of arrays."""
    if isinstance(space, spaces.Box):
        return float(space.low.min()), float(space.high.max())
    if isinstance(space, spaces.MultiDiscrete):
        return float(space.start.min()), float((space.start + space.nvec - 1).min())
    return 0.0, 1.0  # MultiBinary


def garbled(text: str, random: np.random.Generator) -> str:
    """The same words in random order."""
    words = text.split()
    return " ".join(words[i] for i in random.permutation(len(words)))
