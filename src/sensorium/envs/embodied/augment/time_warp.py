"""Sensors whose clocks run unevenly, never ahead of the world."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.augment.config import RandomTimeWarp


class TimeWarp:
    """Keeps the last readings of each sensor and shows the one that its clock has reached.

        lag(t + 1) = clip(lag(t) + 1 - speed(t), 0, max_lag);  shown at t is the reading of t - floor(lag(t))

    speed(t) is interpolated linearly between knots of N(1, sigma), at least 0.

    Args:
        config: Strength.
        sensors: Those that are warped.
        num_envs: How many worlds.
        max_episode_steps: Decides how many knots an episode needs.
    """

    def __init__(
        self, config: RandomTimeWarp, sensors: tuple[str, ...], num_envs: int, max_episode_steps: int
    ) -> None:
        self.config = config
        self.sensors = sensors
        self._worlds = np.arange(num_envs)
        self._num_knots = max_episode_steps // config.knot_steps + 2
        self._knots = np.ones((len(sensors), num_envs, self._num_knots), np.float32)
        self._lag = np.zeros((len(sensors), num_envs), np.float32)
        self._slots = config.max_lag_steps + 1
        self._readings: dict[str, NDArray[Any]] = {}
        self._times_s: dict[str, NDArray[np.float32]] = {}
        self._now = 0

    def begin(self, world: int, rng: np.random.Generator) -> None:
        """Draw the clocks of a world's new episode."""
        drawn = rng.normal(1.0, self.config.sigma, (len(self.sensors), self._num_knots))
        self._knots[:, world] = np.maximum(drawn, 0.0)
        self._lag[:, world] = 0.0

    def __call__(self, observation: dict[str, Any], step_count: NDArray[np.int64]) -> None:
        """Replace readings and their timestamps in `observation` by those that the clocks have reached.

        Args:
            observation: Readings of all worlds; its entries are replaced, not written to.
            step_count: (N,) steps since each world's episode began.
        """
        self._now = (self._now + 1) % self._slots
        speed = self._speed(step_count)
        started = step_count == 0
        lag = np.where(started, 0.0, np.clip(self._lag + 1.0 - speed, 0.0, self.config.max_lag_steps))
        self._lag = lag.astype(np.float32)
        age = np.minimum(np.floor(self._lag).astype(np.int64), step_count)  # nothing from the episode before
        slot = (self._now - age) % self._slots
        stamps = observation["timestamp_s"]
        for m, name in enumerate(self.sensors):
            observation[name] = self._shown(self._readings, name, observation[name], slot[m])
            stamps[name] = self._shown(self._times_s, name, stamps[name], slot[m])

    def _shown(
        self, store: dict[str, NDArray[Any]], name: str, reading: NDArray[Any], slot: NDArray[np.int64]
    ) -> NDArray[Any]:
        if name not in store:
            store[name] = np.repeat(reading[None], self._slots, axis=0)
        store[name][self._now] = reading
        return store[name][slot, self._worlds]

    def _speed(self, step_count: NDArray[np.int64]) -> NDArray[np.float32]:
        """(sensors, N) how far each clock moves in the step that led here."""
        position = np.maximum(step_count - 1, 0) / self.config.knot_steps
        knot = np.minimum(position.astype(np.int64), self._num_knots - 2)
        share = (position - knot).astype(np.float32)
        before, after = self._knots[:, self._worlds, knot], self._knots[:, self._worlds, knot + 1]
        speed: NDArray[np.float32] = before + (after - before) * share
        return speed
