"""How loud a sound is, measured block by block."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SILENCE_DBFS = -50.0
"""A frame of 20 ms below this counts as silent."""


class Measures(NamedTuple):
    """Measures of a sound; full scale is an absolute sample of 1."""

    frames: int
    """Frames that were heard."""
    peak_dbfs: float | None
    """20 log10 of the greatest absolute sample; None when all are 0."""
    loudness_dbfs: float | None
    """10 log10 of the mean square over frames and channels; None when all samples are 0."""
    silence_share: float
    """Share of the 20 ms windows whose mean square lies below `SILENCE_DBFS`, in [0, 1]."""
    num_non_finite: int
    """Samples that were NaN or infinite; they count as 0."""


class Tally:
    """Measures of a sound that comes in blocks.

    Args:
        rate_hz: Frames per second.
    """

    def __init__(self, rate_hz: int) -> None:
        self.window = max(rate_hz // 50, 1)
        """Frames of 20 ms."""
        self._frames = 0
        self._square = 0.0
        self._peak = 0.0
        self._windows = 0
        self._silent = 0
        self._non_finite = 0

    def add(self, block: NDArray[np.float32]) -> None:
        """Add (frames, channels); windows do not cross blocks."""
        finite = np.isfinite(block)
        if not finite.all():
            self._non_finite += int((~finite).sum())
            block = np.where(finite, block, np.float32(0.0))
        block = np.clip(block, -1.0, 1.0)
        self._frames += len(block)
        self._peak = max(self._peak, float(np.max(np.abs(block), initial=0.0)))
        power = np.mean(np.square(block, dtype=np.float64), axis=1)
        self._square += float(power.sum())
        starts = np.arange(0, len(power), self.window)
        if starts.size:
            lengths = np.diff(np.append(starts, len(power)))
            level = np.add.reduceat(power, starts) / lengths
            self._windows += len(level)
            self._silent += int((level < 10.0 ** (SILENCE_DBFS / 10.0)).sum())

    def measures(self) -> Measures:
        """What has been measured so far."""
        mean = self._square / max(self._frames, 1)
        return Measures(
            frames=self._frames,
            peak_dbfs=20.0 * math.log10(self._peak) if self._peak > 0.0 else None,
            loudness_dbfs=10.0 * math.log10(mean) if mean > 0.0 else None,
            silence_share=self._silent / max(self._windows, 1),
            num_non_finite=self._non_finite,
        )
