"""The engine's picture to a small square one."""

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.compiled import compiled

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
        self._rows = _taps(height, size)
        self._columns = _taps(width, size)
        count = self._rows.shape[0] * self._columns.shape[0]
        # Looking the mean up is several times faster than dividing, and as exact.
        self._means = ((np.arange(255 * count + 1) + count // 2) // count).astype(np.uint8)
        self._sums = np.empty(width * 3, np.uint32)
        self._centre_rows, self._centre_columns = _centres(height, size), _centres(width, size)

    def rgb(self, picture: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """Shrink (height, width, 3) into `out` (size, size, 3)."""
        lines = picture.reshape(len(picture), -1)
        _mean_pixels(lines, self._rows, self._columns, self._means, self._sums, out)

    def depth(self, picture: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Shrink (height, width) counts into `out` (size, size, 1) metres."""
        _nearest_metres(picture, self._centre_rows, self._centre_columns, _METRES, out)


@compiled
def _mean_pixels(
    lines: NDArray[np.uint8],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    means: NDArray[np.uint8],
    sums: NDArray[np.uint32],
    out: NDArray[np.uint8],
) -> None:
    for i in range(out.shape[0]):
        sums[:] = 0
        for tap in range(rows.shape[0]):
            line = lines[rows[tap, i]]
            for k in range(sums.shape[0]):
                sums[k] = np.uint32(sums[k] + np.uint32(line[k]))  # kept narrow, so that it is vectorised
        for j in range(out.shape[1]):
            red, green, blue = np.uint32(0), np.uint32(0), np.uint32(0)
            for tap in range(columns.shape[0]):
                k = 3 * columns[tap, j]
                red += sums[k]
                green += sums[k + 1]
                blue += sums[k + 2]
            out[i, j, 0], out[i, j, 1], out[i, j, 2] = means[red], means[green], means[blue]


@compiled
def _nearest_metres(
    picture: NDArray[np.uint8],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    metres: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    for i in range(out.shape[0]):
        line = picture[rows[i]]
        for j in range(out.shape[1]):
            out[i, j, 0] = metres[line[columns[j]]]


def _taps(length: int, size: int) -> NDArray[np.intp]:
    """(taps, size) source indices of each target pixel: as many as whole pixels fit into its footprint."""
    count = max(1, length // size)
    first = np.rint((np.arange(size) + 0.5) * length / size - count / 2).astype(np.intp)
    taps: NDArray[np.intp] = np.clip(first + np.arange(count)[:, None], 0, length - 1)
    return taps


def _centres(length: int, size: int) -> NDArray[np.intp]:
    return ((np.arange(size) + 0.5) * length / size).astype(np.intp)
