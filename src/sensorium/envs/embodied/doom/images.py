"""The engine's picture to a small square one, in a few NumPy calls (about 30 us from 160x120 to 48x48)."""

import numpy as np
from numpy.typing import NDArray

DEPTH_M_PER_COUNT = 7.25 / 32.0
"""Metres per count of the engine's 8-bit depth: 7.25 map units, measured, at 32 map units to the metre."""

MAX_DEPTH_M = 255 * DEPTH_M_PER_COUNT
"""Largest value that depth can take."""

_METRES = (np.arange(256) * DEPTH_M_PER_COUNT).astype(np.float32)


class Shrinker:
    """Squeezes the whole 4:3 picture into a square: the field of view stays, the aspect does not.

    rgb is the mean of as many whole pixels as fit into each target pixel's footprint (all of it where the
    factor is whole, 2x3 of 2.5x3.33 from 160x120 to 48x48). depth is the pixel nearest to the centre, because
    the mean of a near and a far surface would be a place where nothing is.

    Args:
        resolution: Engine picture, (width, height).
        size: Height and width of the result; larger than the picture repeats pixels.
    """

    def __init__(self, resolution: tuple[int, int], size: int) -> None:
        width, height = resolution
        self._source = (height, width * 3)
        self._rows = _taps(height, size)
        columns = _taps(width, size)
        self._columns = [(3 * column[:, None] + np.arange(3)).ravel() for column in columns]
        self._count = len(self._rows) * len(columns)
        sum_dtype = np.uint16 if self._count * 256 <= 65536 else np.uint32
        self._row = np.empty((size, width * 3), np.uint8)
        self._tall = np.empty((size, width * 3), sum_dtype)
        self._tap = np.empty((size, size * 3), sum_dtype)
        self._total = np.empty((size, size * 3), sum_dtype)
        centre_rows, centre_columns = _centres(height, size), _centres(width, size)
        self._nearest = (centre_rows[:, None] * width + centre_columns).ravel()

    def rgb(self, picture: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """Shrink (height, width, 3) into `out` (size, size, 3)."""
        source, tall, total = picture.reshape(self._source), self._tall, self._total
        for tap, rows in enumerate(self._rows):
            source.take(rows, axis=0, out=self._row, mode="clip")
            np.copyto(tall, self._row) if tap == 0 else np.add(tall, self._row, out=tall)
        tall.take(self._columns[0], axis=1, out=total, mode="clip")
        for columns in self._columns[1:]:
            tall.take(columns, axis=1, out=self._tap, mode="clip")
            np.add(total, self._tap, out=total)
        total += self._count // 2
        total //= self._count
        out[...] = total.reshape(out.shape)

    def depth(self, picture: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Shrink (height, width) counts into `out` (size, size, 1) metres."""
        counts = picture.reshape(-1).take(self._nearest)
        out[...] = _METRES.take(counts).reshape(out.shape)


def _taps(length: int, size: int) -> list[NDArray[np.intp]]:
    """Source indices of each target pixel: as many arrays as whole source pixels fit into its footprint."""
    count = max(1, length // size)
    first = np.rint((np.arange(size) + 0.5) * length / size - count / 2).astype(np.intp)
    return [np.clip(first + tap, 0, length - 1) for tap in range(count)]


def _centres(length: int, size: int) -> NDArray[np.intp]:
    return ((np.arange(size) + 0.5) * length / size).astype(np.intp)
