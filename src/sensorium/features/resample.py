"""Change of sample rate, in NumPy."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import FeatureError


def resample(waveform: NDArray[np.floating[Any]], *, from_hz: int, to_hz: int) -> NDArray[np.float32]:
    """Resample a whole sound by cutting or extending its spectrum: an ideal low-pass at half the lower rate.

    The sound is padded with at least one block of silence, so that the filter does not wrap its end into
    its beginning. For finished sounds; not for streams.

    Args:
        waveform: (samples,) floating point.
        from_hz: Its sample rate.
        to_hz: The wanted sample rate.

    Returns:
        (ceil(samples * to_hz / from_hz),) float32 of the same amplitude.

    Raises:
        FeatureError: A rate is not positive.
    """
    if from_hz <= 0 or to_hz <= 0:
        raise FeatureError(f"Sample rates are positive, found from_hz={from_hz} and to_hz={to_hz}.")
    divisor = math.gcd(from_hz, to_hz)
    block_in, block_out = from_hz // divisor, to_hz // divisor
    if block_in == block_out or waveform.size == 0:
        return waveform.astype(np.float32)
    # Whole blocks: both lengths are then integers for exactly the same duration.
    blocks = math.ceil(waveform.size / block_in) + math.ceil(256 / block_in)
    spectrum = np.fft.rfft(waveform.astype(np.float64), blocks * block_in)
    resampled = np.fft.irfft(spectrum, blocks * block_out) * (block_out / block_in)
    return resampled[: math.ceil(waveform.size * block_out / block_in)].astype(np.float32)
