"""Sound to log-mel frames, in NumPy: causal windows, a stated frame count, a stated floor.

Frame `i` hears the last `n_fft` samples before time `(i + 1) / frame_rate_hz` and nothing later, so the
frames of a sound that is still going on never change when more of it arrives. A frame is the same, bit for
bit, whatever else is computed in the same call.
"""

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import FeatureError

MEL_FLOOR = 1e-8
"""Smallest mel power that is told apart from silence: 80 dB below a full-scale sine."""

LOG_MEL_FLOOR = float(np.log(np.float32(MEL_FLOOR)))
"""Log-mel value of silence, and of padding: ln(MEL_FLOOR), about -18.42."""


def frame_count(num_samples: int, *, sample_rate_hz: int, frame_rate_hz: float) -> int:
    """Number of frames that `num_samples` samples give: floor(num_samples * frame_rate / sample_rate).

    Computed without rounding error; an unfinished last frame is left out. A tenth of a second at 16 kHz
    and 40 frames per second gives exactly 4 frames.
    """
    return math.floor(num_samples / _hop(sample_rate_hz, frame_rate_hz))


def mel_filterbank(
    sample_rate_hz: int,
    n_fft: int,
    n_mels: int,
    f_min_hz: float = 50.0,
    f_max_hz: float | None = None,
) -> NDArray[np.float32]:
    """Triangular filters, equally spaced on the HTK mel scale, mel = 2595 log10(1 + f / 700).

    Every triangle rises from its left neighbour's centre to 1 at its own centre and falls to 0 at its right
    neighbour's centre (no area normalisation).

    Args:
        sample_rate_hz: Samples per second.
        n_fft: Samples per window.
        n_mels: Number of filters.
        f_min_hz: Left edge of the first filter.
        f_max_hz: Right edge of the last filter; half the sample rate by default.

    Returns:
        (n_mels, n_fft // 2 + 1) float32 in [0, 1]; cached and read-only.

    Raises:
        FeatureError: The edges are not 0 <= f_min_hz < f_max_hz <= sample_rate_hz / 2, or the spectrum is
            so coarse that a filter would hold no frequency at all.
    """
    return _filterbank(sample_rate_hz, n_fft, n_mels, f_min_hz, f_max_hz)


def log_mel(
    waveform: NDArray[Any],
    *,
    sample_rate_hz: int,
    frame_rate_hz: float,
    n_mels: int,
    n_fft: int,
    f_min_hz: float = 50.0,
    f_max_hz: float | None = None,
) -> NDArray[np.float32]:
    """Natural logarithm of mel power, ln(max(filterbank @ |FFT(hann * x)|^2, MEL_FLOOR)).

    The spectrum is scaled so that a sine of amplitude 1 at a filter's centre has mel power of about 1 (log
    0). Frame `i` is the Hann window over the `n_fft` samples that end before sample
    floor((i + 1) * sample_rate_hz / frame_rate_hz); before the sound begins there is silence.

    Args:
        waveform: (..., samples) floating point, in [-1, 1].
        sample_rate_hz: Samples per second.
        frame_rate_hz: Frames per second; need not divide the sample rate.
        n_mels: Number of mel channels.
        n_fft: Samples per window, at least sample_rate_hz / frame_rate_hz, so that no sample goes unheard.
        f_min_hz: Lowest frequency.
        f_max_hz: Highest frequency; half the sample rate by default.

    Returns:
        (..., frames, n_mels) float32, at least LOG_MEL_FLOOR, with frames as told by `frame_count`.

    Raises:
        FeatureError: The waveform is not floating point, the window is shorter than the time between two
            frames, or the filters do not fit (see `mel_filterbank`).
    """
    if not np.issubdtype(waveform.dtype, np.floating):
        raise FeatureError(
            f"A waveform holds floats in [-1, 1], found {waveform.dtype}; divide integer samples by their "
            f"full scale (32768 for int16)."
        )
    hop = _hop(sample_rate_hz, frame_rate_hz)
    if n_fft < hop:
        raise FeatureError(
            f"A window of n_fft={n_fft} samples is shorter than the {float(hop):g} samples between two "
            f"frames; use n_fft >= {math.ceil(hop)} or a higher frame_rate_hz."
        )
    filters = mel_filterbank(sample_rate_hz, n_fft, n_mels, f_min_hz, f_max_hz)
    frames = frame_count(waveform.shape[-1], sample_rate_hz=sample_rate_hz, frame_rate_hz=frame_rate_hz)
    ends = np.array([math.floor((i + 1) * hop) for i in range(frames)], dtype=np.int64)
    padding = [(0, 0)] * (waveform.ndim - 1) + [(n_fft, 0)]
    padded = np.pad(waveform.astype(np.float32, copy=False), padding)
    # After padding by n_fft, the window that ends before sample `end` starts at index `end`.
    windows = np.lib.stride_tricks.sliding_window_view(padded, n_fft, axis=-1)[..., ends, :]
    spectrum = np.fft.rfft(windows * _window(n_fft), axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    # Not a matrix product: BLAS rounds differently when the batch is larger or smaller.
    mel: NDArray[np.float32] = np.einsum("...k,mk->...m", power, filters)
    log_power: NDArray[np.float32] = np.log(np.maximum(mel, np.float32(MEL_FLOOR)))
    return log_power


def _hop(sample_rate_hz: int, frame_rate_hz: float) -> Fraction:
    if sample_rate_hz <= 0 or frame_rate_hz <= 0:
        raise FeatureError(
            f"Rates are positive, found sample_rate_hz={sample_rate_hz} and frame_rate_hz={frame_rate_hz}."
        )
    return Fraction(sample_rate_hz) / Fraction(frame_rate_hz).limit_denominator(10_000)


@functools.cache
def _window(n_fft: int) -> NDArray[np.float32]:
    """Periodic Hann window, scaled so that a full-scale sine has power 1 in its own bin."""
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(n_fft) / n_fft)
    window: NDArray[np.float32] = (hann / (0.5 * hann.sum())).astype(np.float32)
    window.setflags(write=False)
    return window


@functools.cache
def _filterbank(
    sample_rate_hz: int, n_fft: int, n_mels: int, f_min_hz: float, f_max_hz: float | None
) -> NDArray[np.float32]:
    top_hz = sample_rate_hz / 2 if f_max_hz is None else f_max_hz
    if not 0 <= f_min_hz < top_hz <= sample_rate_hz / 2 or n_mels < 1 or n_fft < 2:
        raise FeatureError(
            f"Mel filters need 0 <= f_min_hz < f_max_hz <= {sample_rate_hz / 2:g} (half the sample rate), "
            f"n_mels >= 1 and n_fft >= 2; found {f_min_hz:g}, {top_hz:g}, n_mels={n_mels}, n_fft={n_fft}."
        )
    low, high = (2595.0 * np.log10(1.0 + np.array([f_min_hz, top_hz]) / 700.0)).tolist()
    corners_hz = 700.0 * (10.0 ** (np.linspace(low, high, n_mels + 2) / 2595.0) - 1.0)
    left, centre, right = (corners_hz[offset : offset + n_mels, None] for offset in range(3))
    bins_hz = np.arange(n_fft // 2 + 1) * (sample_rate_hz / n_fft)
    rising, falling = (bins_hz - left) / (centre - left), (right - bins_hz) / (right - centre)
    filters: NDArray[np.float32] = np.maximum(0.0, np.minimum(rising, falling)).astype(np.float32)
    empty = np.flatnonzero(filters.max(axis=1) <= 0.0)
    if empty.size:
        raise FeatureError(
            f"With n_fft={n_fft} at {sample_rate_hz} Hz, bins are {sample_rate_hz / n_fft:.3g} Hz apart "
            f"and {empty.size} of {n_mels} mel filters hold none; raise n_fft, or lower n_mels."
        )
    filters.setflags(write=False)
    return filters
