"""Making a picture meet limits of bytes and pixels, by measured re-encoding and scaling.

Needs Pillow when imported; `media.image` imports it on demand.
"""

import hashlib
import io
import math
from typing import Literal, NamedTuple

from PIL import Image

from sensorium.core import ObservationError
from sensorium.core.byte_cache import ByteCache
from sensorium.observations.config import ReadConfig
from sensorium.observations.pixels import decode, open_picture, silence, standardise
from sensorium.observations.values import ImageValue

Mime = Literal["image/png", "image/jpeg", "image/webp"]

MIN_QUALITY = 40
"""JPEG quality below which scaling down loses less than squeezing further."""

_MAX_PIXELS = ReadConfig().max_pixels
_SAMPLE_SIDE = 160
_QUALITY_STEP = 15
_CACHE_BYTES = 64 * 1024 * 1024


class Encoded(NamedTuple):
    """A picture that meets its limits."""

    data: bytes
    mime: Mime
    width: int
    height: int
    why: str
    """What was done, in a few words; empty for nothing."""


_cache: ByteCache[Encoded] = ByteCache(_CACHE_BYTES, lambda encoded: len(encoded.data))


def open_value(value: ImageValue) -> Image.Image:
    """Decode the bytes of a value; whatever they are, the picture is upright and of mode ``RGB`` or ``L``.

    Raises:
        ObservationError: It has none, or they cannot be decoded.
    """
    if value.data is None:
        raise ObservationError("The picture is known by its address only.")
    # What was read under a higher limit has its size written down.
    max_pixels = max((value.width or 0) * (value.height or 0), _MAX_PIXELS)
    with silence():
        picture = open_picture(value.data, max_pixels=max_pixels)
        return standardise(decode(picture, value.data, max_pixels=max_pixels)[0]).picture


def fit(value: ImageValue, *, max_bytes: int, max_side_px: int, quality: int) -> Encoded | None:
    """Encode a picture so that it meets both limits, losing as little as possible.

    The original bytes are kept if they fit. Otherwise the longest side is brought to the limit; flat graphics
    (few colours) are tried as PNG, everything is tried as JPEG from `quality` downwards to `MIN_QUALITY`, and
    then the picture is scaled down until the measured size fits. Results are cached.

    Args:
        value: A picture with bytes.
        max_bytes: Limit of the encoded file.
        max_side_px: Limit of the longest side.
        quality: JPEG quality to begin with, 1-100.

    Returns:
        The encoded picture, at most `max_bytes` large; None when not even one pixel fits.

    Raises:
        ObservationError: The bytes cannot be decoded.
    """
    if value.data is None:
        raise ObservationError("The picture is known by its address only.")
    width, height = value.width, value.height
    if width and height and len(value.data) <= max_bytes and max(width, height) <= max_side_px:
        return Encoded(value.data, value.mime, width, height, "")
    key = (hashlib.sha256(value.data).digest(), max_bytes, max_side_px, quality)
    known = _cache.get(key)
    if known is not None:
        return known
    encoded = _fit(value, value.data, max_bytes, max_side_px, quality)
    if encoded is not None:
        _cache.put(key, encoded)
    return encoded


def scaled_size(width: int, height: int, side_px: int) -> tuple[int, int]:
    """Size with the longest side at most `side_px`, in the same proportions, at least one pixel each way."""
    factor = min(side_px / max(width, height), 1.0)
    return max(round(width * factor), 1), max(round(height * factor), 1)


def is_flat(picture: Image.Image) -> bool:
    """Whether it is a drawing, chart or screen (few colours) rather than a photo."""
    width, height = scaled_size(*picture.size, _SAMPLE_SIDE)
    sample = picture.resize((width, height), Image.Resampling.NEAREST)
    return sample.getcolors(max(width * height // 8, 16)) is not None


def _fit(value: ImageValue, data: bytes, max_bytes: int, max_side_px: int, quality: int) -> Encoded | None:
    picture = open_value(value)
    original = picture.size
    if len(data) <= max_bytes and max(original) <= max_side_px:
        return Encoded(data, value.mime, *original, "")
    size = scaled_size(*original, max_side_px)
    flat = is_flat(picture)
    while True:
        scaled = picture if size == original else _resize(picture, size)
        encoded, smallest = _squeeze(scaled, flat, max_bytes, quality)
        if encoded is not None:
            mime, name = ("image/png", "PNG") if encoded[:4] == b"\x89PNG" else ("image/jpeg", "JPEG")
            scale = "" if size == original else f"{size[0]}x{size[1]} of {original[0]}x{original[1]}, "
            why = f"{scale}{name} of {len(encoded) / 1024:,.0f} instead of {len(data) / 1024:,.0f} KB"
            return Encoded(encoded, mime, *size, why)  # type: ignore[arg-type]
        if max(size) == 1:
            return None
        # Bytes grow with the area; a little less than that, so that few rounds are needed.
        factor = min(max(math.sqrt(max_bytes / smallest) * 0.95, 0.25), 0.9)
        size = max(int(size[0] * factor), 1), max(int(size[1] * factor), 1)


def _squeeze(picture: Image.Image, flat: bool, max_bytes: int, quality: int) -> tuple[bytes | None, int]:
    """The best encoding within `max_bytes`, or None; and the smallest size that was measured."""
    sizes: list[int] = []
    if flat or picture.width * picture.height <= 64:  # a JPEG's tables alone take hundreds of bytes
        for optimize in (False, True):  # optimising takes several times as long
            data = _png(picture, optimize)
            if len(data) <= max_bytes:
                return data, len(data)
            sizes.append(len(data))
    steps = [*range(quality, min(MIN_QUALITY, quality - 1), -_QUALITY_STEP), min(MIN_QUALITY, quality)]
    for step in dict.fromkeys(steps):
        data = _jpeg(picture, step)
        if len(data) <= max_bytes:
            return data, len(data)
        sizes.append(len(data))
        if len(data) > 3 * max_bytes:  # quality alone never brings that much
            break
    return None, min(sizes)


def _resize(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    # Two integer steps first: several times faster on large pictures, and no visible difference.
    return picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def _png(picture: Image.Image, optimize: bool) -> bytes:
    buffer = io.BytesIO()
    colours = picture.getcolors(256) if picture.mode == "RGB" else None
    exact = picture.quantize(len(colours), dither=Image.Dither.NONE) if colours else picture
    if colours and exact.convert("RGB").tobytes() != picture.tobytes():
        exact = picture
    exact.save(buffer, "PNG", optimize=optimize)
    return buffer.getvalue()


def _jpeg(picture: Image.Image, quality: int) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality, optimize=True)
    return buffer.getvalue()
