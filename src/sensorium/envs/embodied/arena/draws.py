"""Random numbers inside compiled loops: SplitMix64, one state per world.

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.compiled import compiled

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3, _SHIFT_4 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@compiled
def uniform(rng: NDArray[np.uint64], low: float, high: float) -> float:
    """Draw a float in [low, high); `rng` is the state, (1,) uint64, and moves on."""
    rng[0] += _GAMMA
    z = rng[0]
    z = (z ^ (z >> _SHIFT_1)) * _MIX_1
    z = (z ^ (z >> _SHIFT_2)) * _MIX_2
    z = z ^ (z >> _SHIFT_3)
    return low + (high - low) * (float(z >> _SHIFT_4) * 1.1102230246251565e-16)


@compiled
def integer(rng: NDArray[np.uint64], count: int) -> int:
    """Draw an integer in [0, count)."""
    return int(uniform(rng, 0.0, 1.0) * count)


@compiled
def shuffle(rng: NDArray[np.uint64], values: NDArray[np.int64]) -> None:
    """Shuffle a vector in place."""
    for last in range(values.size - 1, 0, -1):
        other = integer(rng, last + 1)
        values[last], values[other] = values[other], values[last]
