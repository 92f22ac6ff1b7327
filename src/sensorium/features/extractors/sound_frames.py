"""A sound as frames of 20 ms: loudness, pitch, and how even its spectrum is."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.features.audio import log_mel
from sensorium.features.extractors.waveform import frame_levels

RATE_HZ = 16_000
"""Sample rate at which sounds are looked at."""

FRAME_S = 0.02
"""Seconds from frame to frame."""

_N_FFT = 1024
_N_MELS = 40
_PITCH_HZ = (60.0, 2000.0)
_CHUNK = 4096  # frames whose spectra are held at once


class SoundFrames(NamedTuple):
    """Measures of each frame."""

    level_dbfs: NDArray[np.float32]
    """(T,) loudness of its 20 ms."""
    flatness: NDArray[np.float32]
    """(T,) geometric over arithmetic mean of the power of mel bands: high for noise, near 0 for tones."""
    periodicity: NDArray[np.float32]
    """(T,) height of the best peak of the autocorrelation, 0 to 1: near 1 for tones and vowels."""
    pitch_hz: NDArray[np.float32]
    """(T,) frequency of that peak, 60 to 2000 Hz, of pure tones up to 8000; NaN when hardly any power is
    there, as in a chord, whose notes have a common divisor that nobody hears."""
    log_mel: NDArray[np.float32]
    """(T, 40) natural logarithm of mel power."""


def sound_frames(waveform: NDArray[np.float32]) -> SoundFrames:
    """Measure a sound; an unfinished last frame is filled up with silence.

    Args:
        waveform: (samples,) at `RATE_HZ`.
    """
    hop = round(RATE_HZ * FRAME_S)
    filled = np.pad(waveform, (0, -len(waveform) % hop)).astype(np.float32)
    levels = frame_levels(filled, rate_hz=RATE_HZ, frame_s=FRAME_S)
    # Windows of 64 ms, centred on the frames: `log_mel` looks back only, so it is fed from later on.
    ahead = (_N_FFT - hop) // 2
    padded = np.pad(filled, (0, ahead))
    mel = log_mel(padded, sample_rate_hz=RATE_HZ, frame_rate_hz=1.0 / FRAME_S, n_mels=_N_MELS, n_fft=_N_FFT)[
        ahead // hop :
    ][: len(levels)]
    mel = np.pad(mel, ((0, len(levels) - len(mel)), (0, 0)), mode="edge") if len(mel) else mel
    power = np.exp(mel.astype(np.float64))
    flatness = np.exp(mel.astype(np.float64).mean(axis=1)) / np.maximum(power.mean(axis=1), 1e-30)
    periodicity, pitch = _pitches(filled, len(levels))
    return SoundFrames(levels, flatness.astype(np.float32), periodicity, pitch, mel)


def _pitches(waveform: NDArray[np.float32], count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Best peak of the autocorrelation of each frame's window, normalised by that of the window itself."""
    hop = round(RATE_HZ * FRAME_S)
    window = np.hanning(_N_FFT)
    own = np.fft.irfft(np.abs(np.fft.rfft(window, 2 * _N_FFT)) ** 2)[:_N_FFT]
    shortest, longest = int(RATE_HZ / _PITCH_HZ[1]), int(RATE_HZ / _PITCH_HZ[0])
    side = (_N_FFT - hop) // 2
    padded = np.pad(waveform, (side, side + hop))
    windows = np.lib.stride_tricks.sliding_window_view(padded, _N_FFT)[::hop][:count]
    heights, pitches = [np.zeros(0)], [np.zeros(0)]
    for start in range(0, count, _CHUNK):
        block = windows[start : start + _CHUNK].astype(np.float64)
        block = (block - block.mean(axis=1, keepdims=True)) * window
        spectrum = np.abs(np.fft.rfft(block, 2 * _N_FFT, axis=1)) ** 2
        correlation = np.fft.irfft(spectrum, axis=1)[:, : longest + 2]
        correlation /= np.maximum(correlation[:, :1], 1e-12) * (own[: longest + 2] / own[0])
        height, lag = _best_peak(correlation, shortest, longest)
        heights.append(np.clip(height, 0.0, 1.0))
        pitches.append(_checked(RATE_HZ / lag, spectrum))
    return np.concatenate(heights).astype(np.float32), np.concatenate(pitches).astype(np.float32)


def _best_peak(
    correlation: NDArray[np.float64], shortest: int, longest: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Height and lag of the first peak nearly as high as the highest: multiples of a period are peaks too."""
    inner = correlation[:, shortest : longest + 1]
    before, after = correlation[:, shortest - 1 : longest], correlation[:, shortest + 1 : longest + 2]
    peaks = np.where((inner >= before) & (inner > after), inner, 0.0)
    highest = peaks.max(axis=1)
    first = (peaks >= 0.93 * highest[:, None]).argmax(axis=1)
    rows = np.arange(len(inner))
    a, b, c = before[rows, first], inner[rows, first], after[rows, first]
    bend = a - 2.0 * b + c
    shift = np.where(np.abs(bend) > 1e-12, 0.5 * (a - c) / np.where(np.abs(bend) > 1e-12, bend, 1.0), 0.0)
    return peaks[rows, first], shortest + first + np.clip(shift, -0.5, 0.5)


def _checked(pitch_hz: NDArray[np.float64], spectrum: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take the strongest line where it holds nearly all power, and drop pitches that have hardly any."""
    line_hz = RATE_HZ / (2 * _N_FFT)
    total = np.maximum(spectrum.sum(axis=1), 1e-30)
    rows = np.arange(len(spectrum))
    top = np.clip(spectrum.argmax(axis=1), 1, spectrum.shape[1] - 2)
    a, b, c = (np.log(np.maximum(spectrum[rows, top + offset], 1e-30)) for offset in (-1, 0, 1))
    bend = np.minimum(a - 2.0 * b + c, -1e-9)
    pure_hz = (top + np.clip(0.5 * (a - c) / bend, -0.5, 0.5)) * line_hz
    is_pure = (_power_near(spectrum, pure_hz / line_hz) > 0.9 * total) & (pure_hz > 400.0)
    lower = _power_near(spectrum, pitch_hz / line_hz) + _power_near(spectrum, 2.0 * pitch_hz / line_hz)
    return np.where(is_pure, pure_hz, np.where(lower > 0.05 * total, pitch_hz, np.nan))


def _power_near(spectrum: NDArray[np.float64], line: NDArray[np.float64]) -> NDArray[np.float64]:
    """Power within four lines, the width that the window gives a pure tone."""
    rows = np.arange(len(spectrum))
    centre = np.rint(line).astype(np.int64)
    lines = (np.clip(centre + offset, 0, spectrum.shape[1] - 1) for offset in range(-4, 5))
    power: NDArray[np.float64] = np.stack([spectrum[rows, one] for one in lines]).sum(axis=0)
    return power
