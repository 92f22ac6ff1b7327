"""Readings of sensors as raw states that a language model can be shown."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import Modality
from sensorium.envs.embodied.base import SensorSpec
from sensorium.observations import Source

_RATE = re.compile(r"(\d+) ?(k?)Hz")
_SILENT_DB = -60.0
_CLEAR_DB = 3.0
_QUIET_DB, _LOUD_DB = -40.0, -20.0
_DEFAULT_RATE_HZ = 16_000


def picture(rgb: NDArray[np.uint8]) -> Source:
    """A camera's picture."""
    return Source(np.ascontiguousarray(rgb), modality=Modality.IMAGE)


def depth_picture(depth: NDArray[np.float32], farthest_m: float) -> dict[str, Any]:
    """Distances as a grey picture, with the scale that it is drawn in, and a few of them in words.

    Args:
        depth: (H, W, 1) metres.
        farthest_m: What is drawn white.

    Returns:
        Name -> raw state.
    """
    metres = np.asarray(depth, np.float32)[..., 0]
    grey = (255.0 * np.clip(metres / farthest_m, 0.0, 1.0)).round().astype(np.uint8)
    thirds = np.array_split(metres[metres.shape[0] // 3 : 2 * metres.shape[0] // 3], 3, axis=1)
    left, middle, right = (float(part.min()) for part in thirds)
    words = (
        f"depth picture: black is 0 m, white is {farthest_m:g} m and more. Nearest thing at eye level: "
        f"{left:.1f} m on the left, {middle:.1f} m ahead, {right:.1f} m on the right."
    )
    return {"depth": picture(np.repeat(grey[..., None], 3, axis=2)), "depth_scale": words}


def rate_of(spec: SensorSpec) -> int:
    """Samples per second of a sensor that delivers waveforms."""
    found = _RATE.search(spec.unit)
    return int(found[1]) * (1000 if found[2] else 1) if found else _DEFAULT_RATE_HZ


def sound(samples: NDArray[np.float32], rate_hz: int) -> Source:
    """A waveform (samples,) or (channels, samples) in [-1, 1]."""
    clipped = np.clip(np.asarray(samples, np.float32), -1.0, 1.0)
    return Source((clipped if clipped.ndim == 1 else clipped.T, rate_hz), modality=Modality.AUDIO)


def sound_in_words(samples: NDArray[np.float32], rate_hz: int) -> str:
    """How a stereo sound is heard: loudness, direction, main frequency.

    Args:
        samples: (2, N) left and right in [-1, 1].
        rate_hz: Samples per second.
    """
    stereo = np.atleast_2d(np.asarray(samples, np.float64))
    levels = [_level_db(channel) for channel in stereo]
    if max(levels) < _SILENT_DB:
        return "silence"
    gap = levels[0] - levels[-1]
    side = "the left" if gap > _CLEAR_DB else "the right" if gap < -_CLEAR_DB else "ahead or behind"
    loud = "loud" if max(levels) > _LOUD_DB else "faint" if max(levels) < _QUIET_DB else "clear"
    power = np.abs(np.fft.rfft(stereo.mean(axis=0) * np.hanning(stereo.shape[1]))) ** 2
    main_hz = float(np.fft.rfftfreq(stereo.shape[1], 1.0 / rate_hz)[int(power[1:].argmax()) + 1])
    shown = " and ".join(
        f"{level:.0f} dB {ear}" for level, ear in zip(levels, ("left", "right"), strict=False)
    )
    return f"{loud} sound from {side}: {shown}, strongest at {main_hz:.0f} Hz"


def _level_db(channel: NDArray[np.float64]) -> float:
    return float(20.0 * np.log10(max(float(np.sqrt((channel**2).mean())), 1e-9)))
