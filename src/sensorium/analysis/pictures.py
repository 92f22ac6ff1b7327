"""Sights and sounds as data URIs, so that a page needs no file beside it."""

import base64
import io
import wave

import numpy as np
from numpy.typing import NDArray

from sensorium.core.errors import require
from sensorium.llm.embedded_pictures import content

MAX_PICTURE_SIDE = 160
"""Larger pictures are scaled down to this many pixels, which bounds the size of the page."""

MAX_EMBEDDED_SIDE = 320
"""The same for pictures that a language model was shown: text in them stays readable."""

MAX_SOUND_S = 20.0
"""Longer sounds are cut."""

_COLOURS = np.array(
    [
        [10, 8, 24],
        [40, 20, 84],
        [92, 28, 110],
        [150, 44, 108],
        [206, 70, 84],
        [240, 118, 54],
        [252, 184, 66],
        [252, 246, 186],
    ],
    dtype=np.float64,
)
"""From quiet or far (dark) to loud or near (bright); brightness rises steadily, so it reads in grey too."""


_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")


def value_range(values: NDArray[np.floating]) -> tuple[float, float]:
    """Range that shows `values` well: 1st to 99th percentile of the finite ones, never empty."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return 0.0, 1.0
    low, high = (float(q) for q in np.percentile(finite, [1.0, 99.0]))
    return (low, high) if high > low else (low, low + 1.0)


def colour_picture(pixels: NDArray[np.uint8]) -> str:
    """PNG of an rgb frame.

    Args:
        pixels: (height, width, 3) uint8.

    Returns:
        A data URI; at most `MAX_PICTURE_SIDE` pixels on a side.

    Raises:
        MissingDependencyError: Pillow is not installed.
    """
    image_module = require("PIL.Image", extra="rl", purpose="the pictures of a report")
    image = image_module.fromarray(np.ascontiguousarray(pixels, dtype=np.uint8))
    image.thumbnail((MAX_PICTURE_SIDE, MAX_PICTURE_SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return _data_uri("image/png", buffer.getvalue())


def embedded_picture(url: str) -> str | None:
    """PNG of an embedded picture, at most `MAX_EMBEDDED_SIDE` pixels on a side.

    Args:
        url: A ``data:`` URL with base64, of any format that Pillow reads.

    Returns:
        A data URI; None when it holds no picture.

    Raises:
        MissingDependencyError: Pillow is not installed.
    """
    image_module = require("PIL.Image", extra="rl", purpose="the pictures of a report")
    buffer = io.BytesIO()
    try:
        with image_module.open(io.BytesIO(content(url) or b"")) as image:
            image.thumbnail((MAX_EMBEDDED_SIDE, MAX_EMBEDDED_SIDE))
            kept = image if image.mode in _PNG_MODES else image.convert("RGB")
            kept.save(buffer, "PNG", optimize=True)
    except (OSError, ValueError, SyntaxError, image_module.DecompressionBombError):
        return None  # Pillow reports a broken PNG as a SyntaxError
    return _data_uri("image/png", buffer.getvalue())


def depth_picture(depth: NDArray[np.float32], limits: tuple[float, float]) -> str:
    """PNG of a depth frame: near is bright, `limits[1]` and everything beyond is dark.

    Args:
        depth: (height, width, 1); what is not finite counts as far.
        limits: Smallest and largest distance to tell apart, the same for all frames of a film.
    """
    near, far = limits
    distance = np.nan_to_num(depth[..., 0].astype(np.float64), nan=far, posinf=far, neginf=near)
    return colour_picture(_coloured((far - distance) / (far - near)))


def spectrogram_picture(log_mel: NDArray[np.float32], limits: tuple[float, float]) -> str:
    """PNG of a log-mel spectrogram: time runs to the right, pitch upwards, loud is bright.

    Args:
        log_mel: (frames, mels), or (channels, frames, mels) for one above the other, the left ear on top.
        limits: Quietest and loudest value to tell apart.
    """
    low, high = limits
    channels = log_mel[None] if log_mel.ndim == 2 else log_mel
    shares = (np.nan_to_num(channels.astype(np.float64), nan=low, neginf=low, posinf=high) - low) / (
        high - low
    )
    rows = [_coloured(channel.T[::-1]) for channel in shares]
    gap = np.full((1, rows[0].shape[1], 3), 128, dtype=np.uint8)
    stacked = [part for row in rows for part in (row, gap)][:-1]
    return colour_picture(np.concatenate(stacked))


def sound_clip(samples: NDArray[np.float32], sample_rate_hz: int) -> str:
    """16-bit mono WAV of a waveform, cut after `MAX_SOUND_S`.

    Args:
        samples: (samples,) in [-1, 1]; louder ones are clipped, what is not finite is silent.
        sample_rate_hz: Samples per second.
    """
    cut = np.nan_to_num(samples[: int(MAX_SOUND_S * sample_rate_hz)].astype(np.float64))
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate_hz)
        file.writeframes((np.clip(cut, -1.0, 1.0) * 32767).astype("<i2").tobytes())
    return _data_uri("audio/wav", buffer.getvalue())


def _coloured(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Colours of an array of shares; what lies outside [0, 1] gets the colour of the nearer end."""
    stops = np.linspace(0.0, 1.0, len(_COLOURS))
    channels = [np.interp(shares, stops, _COLOURS[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def _data_uri(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
