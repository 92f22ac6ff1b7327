"""Which senses a policy listened to before and during a fault: the fusion's gates, episode by episode."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """What a fault did in one episode."""

    seed: int
    """Seed of the episode."""
    onset: int
    """First step of the fault; the episode may have ended earlier."""
    struck: bool
    """The policy acted at least once while the fault was there."""
    gates_before: tuple[float, ...] | None
    """Mean gate of each sensor over the steps before the fault, canonical order; None without such steps."""
    gates_during: tuple[float, ...] | None
    """Mean gate of each sensor over the steps of the fault; None without such steps."""


class GateTrace:
    """Sums gates per world until an episode ends.

    Args:
        num_envs: Number of worlds.
        num_sensors: Number of sensors.
    """

    def __init__(self, num_envs: int, num_sensors: int) -> None:
        self._sums = np.zeros((2, num_envs, num_sensors))
        self._counts = np.zeros((2, num_envs), np.int64)

    def add(self, gates: NDArray[np.float32], before: NDArray[np.bool_], during: NDArray[np.bool_]) -> None:
        """Take one step into account.

        Args:
            gates: (N, sensors) share of each sensor in the fused vector.
            before: (N,) worlds that acted, and whose fault was yet to come.
            during: (N,) worlds that acted, and whose fault was there.
        """
        for part, mask in enumerate((before, during)):
            self._sums[part, mask] += gates[mask]
            self._counts[part, mask] += 1

    def close(self, world: int, *, seed: int, onset: int) -> FaultRecord:
        """The record of the episode that ended in `world`; the next one starts from nothing."""
        means = [
            tuple(float(x) for x in self._sums[part, world] / count) if count else None
            for part, count in enumerate(self._counts[:, world].tolist())
        ]
        record = FaultRecord(
            seed=seed,
            onset=onset,
            struck=bool(self._counts[1, world] > 0),
            gates_before=means[0],
            gates_during=means[1],
        )
        self._sums[:, world] = 0.0
        self._counts[:, world] = 0
        return record
