"""The sound of a part, decoded: one channel, at the rate that a listener needs."""

import io

import numpy as np
from numpy.typing import NDArray

from sensorium.core import FeatureError, require
from sensorium.features.resample import resample
from sensorium.observations.base import Part
from sensorium.observations.values import AudioValue

_BLOCK_S = 60
_MARGIN_S = 1


def has_sound(part: Part) -> bool:
    """Whether the part is a sound."""
    return isinstance(part.value, AudioValue)


def decode_sound(part: Part, *, rate_hz: int, max_duration_s: float) -> NDArray[np.float32]:
    """Decode the sound of a part, mix its channels to one, and change its sample rate.

    Args:
        part: One with an `AudioValue`.
        rate_hz: The wanted sample rate.
        max_duration_s: Seconds from the beginning that are decoded.

    Returns:
        (samples,) float32 in about [-1, 1], finite; empty for a sound without samples.

    Raises:
        FeatureError: The file is broken.
        MissingDependencyError: soundfile is not installed.
    """
    soundfile = require("soundfile", extra="observe", purpose="listening to sounds")
    value = part.value
    if not isinstance(value, AudioValue):
        raise FeatureError(f"expected a sound, found {value.kind}")
    if not value.data:
        return np.zeros(0, np.float32)
    stream = io.BytesIO(value.data)
    try:
        with soundfile.SoundFile(stream) as file:
            from_hz = int(file.samplerate)
            samples = file.read(int(max_duration_s * from_hz), dtype="float32", always_2d=True)
    except Exception as error:  # libsndfile's errors, and what a truncated header leads to
        reason = str(error).replace(repr(stream), "the data")
        raise FeatureError(f"the sound cannot be decoded ({type(error).__name__}: {reason})") from error
    mono = np.nan_to_num(samples.mean(axis=1, dtype=np.float32), nan=0.0, posinf=1.0, neginf=-1.0)
    return _resample_in_blocks(mono, from_hz, rate_hz)


def _resample_in_blocks(mono: NDArray[np.float32], from_hz: int, to_hz: int) -> NDArray[np.float32]:
    """The same as `resample`, a minute at a time: a long sound must not need several times its memory."""
    if len(mono) <= (_BLOCK_S + 2 * _MARGIN_S) * from_hz or from_hz == to_hz:
        return resample(mono, from_hz=from_hz, to_hz=to_hz)
    pieces = []
    for start in range(0, -(-len(mono) // from_hz), _BLOCK_S):  # whole seconds: they match at both rates
        first = max(0, start - _MARGIN_S)
        block = mono[first * from_hz : (start + _BLOCK_S + _MARGIN_S) * from_hz]
        changed = resample(block, from_hz=from_hz, to_hz=to_hz)
        pieces.append(changed[(start - first) * to_hz :][: _BLOCK_S * to_hz])
    return np.concatenate(pieces)


def frame_levels(waveform: NDArray[np.float32], *, rate_hz: int, frame_s: float) -> NDArray[np.float32]:
    """Loudness of consecutive frames, root mean square in dB relative to full scale.

    Args:
        waveform: (samples,).
        rate_hz: Its sample rate.
        frame_s: Length of a frame, seconds; an unfinished last frame counts as one when it is all there is.

    Returns:
        (frames,) float32, not below -120.
    """
    size = max(1, round(rate_hz * frame_s))
    whole = len(waveform) // size
    if whole == 0:
        frames = waveform[None] if len(waveform) else np.zeros((0, 1), np.float32)
    else:
        frames = waveform[: whole * size].reshape(whole, size)
    power = np.square(frames, dtype=np.float64).mean(axis=1)
    levels: NDArray[np.float32] = (10.0 * np.log10(np.maximum(power, 1e-12))).astype(np.float32)
    return levels
