"""A fingerprint of how a picture looks: near-duplicates have nearly the same bits."""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core.byte_cache import ByteCache
from sensorium.observations.values import ImageValue

SIDE = 32
"""Pixels of the grey square that is looked at."""

NUM_BITS = 64

_LOW = 8
_FLAT = 1e-3
_cache: ByteCache[int] = ByteCache(2**20, lambda _: 128)


def phash(image: ImageValue | NDArray[Any]) -> int:
    """64 bits of a picture's lowest frequencies (DCT hash).

    The picture is made grey and squeezed to 32x32 by averaging; of its two-dimensional DCT-II the 8x8 lowest
    coefficients are kept; a bit is set where the coefficient exceeds the median of the 63 besides the mean
    brightness, most significant bit first, row by row. The bit of the mean brightness itself tells a light
    picture (mean above half of full scale) from a dark one. Scaling, re-encoding and small changes of
    brightness flip few bits (about 0-6); unrelated pictures differ in about 32. All bits but the first are 0
    in a picture of one colour.

    Args:
        image: A picture with bytes, or grey or RGB pixels (H, W) or (H, W, 3), uint8.

    Returns:
        An integer in [0, 2**64).

    Raises:
        ObservationError: The picture has no bytes, or they cannot be decoded.

    Source:
        Zauner, "Implementation and Benchmarking of Perceptual Image Hash Functions" (2010), section 3.2.
    """
    if not isinstance(image, ImageValue):
        from PIL import Image

        return _hash_picture(Image.fromarray(np.ascontiguousarray(image)))
    known = None if image.sha256 is None else _cache.get(image.sha256)
    if known is None:
        from sensorium.representations.media.encode import open_value

        known = _hash_picture(open_value(image))
        if image.sha256 is not None:
            _cache.put(image.sha256, known)
    return known


def phash_distance(first: int, second: int) -> int:
    """Number of bits in which two fingerprints differ, 0-64."""
    return (first ^ second).bit_count()


def _hash_picture(picture: Any) -> int:
    from PIL import Image

    small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX, reducing_gap=2.0)
    grey = np.asarray(small, np.float64) / 255.0
    basis = _basis()
    low = (basis @ grey @ basis.T).ravel()
    others = low[1:]
    bits = np.empty(NUM_BITS, bool)
    bits[0] = grey.mean() > 0.5
    # Rounding noise around zero would make the bits of a blank picture random.
    bits[1:] = (others > np.median(others)) & (np.abs(others) > _FLAT)
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


@functools.cache
def _basis() -> NDArray[np.float64]:
    """Rows of the orthonormal DCT-II: (8 lowest frequencies, 32 samples)."""
    frequency, sample = np.arange(_LOW)[:, None], np.arange(SIDE)[None, :]
    basis: NDArray[np.float64] = np.cos(np.pi * frequency * (2 * sample + 1) / (2 * SIDE))
    basis *= np.sqrt(np.where(frequency == 0, 1.0, 2.0) / SIDE)
    basis.setflags(write=False)
    return basis
