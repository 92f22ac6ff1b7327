"""Pictures of every kind as one kind: upright, sRGB, 8 bits per channel, no transparency.

Needs Pillow when imported; `observations.image` imports it on demand.
"""

import contextlib
import functools
import hashlib
import io
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from sensorium.core import ObservationError
from sensorium.core.byte_cache import ByteCache

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "ICO", "PPM", "JPEG2000", "AVIF")
"""What Pillow may open: no format that starts another program or that has no signature of its own."""

_DEEP_MODES = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
_EXIF_ORIENTATION = 0x0112
_encoded: ByteCache[bytes] = ByteCache(64 * 1024 * 1024, len)


class Standard(NamedTuple):
    """A picture in standard form."""

    picture: Image.Image
    """Mode ``RGB`` or ``L``, upright, sRGB."""
    notes: tuple[str, ...]
    """What was done that a reader should know."""
    is_changed: bool
    """Whether anything was done, so that the original bytes show another picture."""


class _Silence:
    """Counts who is reading pictures, so that Pillow's warnings come back only after the last one.

    ``warnings.catch_warnings`` alone is not safe when several threads enter and leave it in turns.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._block = contextlib.ExitStack()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._depth == 0:
                self._block.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", module="PIL")
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if self._depth == 0:
                    self._block.close()


silence = _Silence()
"""Context in which Pillow's warnings (bomb, damaged EXIF) are not shown: they are checked or noted."""


def open_picture(data: bytes, *, max_pixels: int) -> Image.Image:
    """Read the header of an encoded picture; no pixel is decoded.

    Raises:
        ObservationError: It is no picture of a known format, or holds more than `max_pixels` pixels.
    """
    try:
        picture = Image.open(io.BytesIO(data), formats=_formats())
    except Image.DecompressionBombError as error:
        raise ObservationError(
            f"The picture is too large to be decoded: at most {max_pixels:,} pixels are ({error})"
        ) from error
    except Exception as error:  # a hostile header can fail anywhere in a decoder
        raise ObservationError(_unreadable(data, error)) from error
    check_size(picture, max_pixels)
    return picture


@functools.cache
def _formats() -> tuple[str, ...]:
    """Those of `FORMATS` that this Pillow was built with."""
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def check_size(picture: Image.Image, max_pixels: int) -> None:
    """Refuse an empty or a huge picture by its header.

    Raises:
        ObservationError: It holds no pixel, or more than `max_pixels`.
    """
    width, height = picture.size
    if width < 1 or height < 1:
        raise ObservationError(f"The picture is {width}x{height} pixels: there is nothing to see.")
    if width * height > max_pixels:
        raise ObservationError(
            f"The picture is {width}x{height}, {width * height:,} pixels; at most {max_pixels:,} are decoded."
        )


def decode(picture: Image.Image, data: bytes, *, max_pixels: int) -> tuple[Image.Image, str | None]:
    """Decode an opened picture, and of a file that is cut off as much as there is.

    Args:
        picture: As `open_picture` returned it.
        data: The file it was opened from.
        max_pixels: Limit, as in `open_picture`.

    Returns:
        The decoded picture, and a note when a part of it is missing.

    Raises:
        ObservationError: Nothing could be decoded.
    """
    try:
        picture.load()
    except Exception as error:  # decoders raise OSError, SyntaxError, struct.error, ValueError, ...
        rescued = _rescue(picture, data, max_pixels)
        if rescued is None:
            raise ObservationError(
                f"The {picture.format or ''} picture cannot be decoded: {_short(error)}".replace("  ", " ")
            ) from error
        return rescued, f"the file is damaged or cut off ({_short(error)}); the rest of the picture is blank"
    return picture, None


def standardise(picture: Image.Image) -> Standard:
    """Turn a decoded picture upright, into sRGB with 8 bits, and lay transparency on white."""
    notes: list[str] = []
    profile = picture.info.get("icc_profile")
    upright, is_changed = _upright(picture)
    if upright.mode in _DEEP_MODES:
        upright, note = _eight_bits(upright)
        notes.append(note)
        is_changed = True
    if profile:
        managed = _to_srgb(upright, profile)
        if managed is None:
            notes.append("its colour profile could not be applied; colours are as stored")
        elif managed is not upright:
            upright, is_changed = managed, True
    if upright.has_transparency_data:
        opaque = upright.convert("RGBA")
        is_visible = opaque.getchannel("A").getextrema()[0] != 255
        if is_visible:
            paper = Image.new("RGBA", opaque.size, "white")
            opaque = Image.alpha_composite(paper, opaque)
            notes.append("transparent places are shown white")
        upright, is_changed = opaque.convert("RGB"), is_changed or is_visible
    elif upright.mode not in ("RGB", "L"):
        is_changed = is_changed or upright.mode not in ("P", "1")
        upright = upright.convert("L" if upright.mode in ("1", "LA", "La") else "RGB")
    return Standard(upright, tuple(notes), is_changed)


def array_picture(array: NDArray[Any], *, max_pixels: int) -> tuple[Image.Image, tuple[str, ...]]:
    """Turn an array into a picture.

    Args:
        array: (H, W), (H, W, C) or (C, H, W) with C of 1, 3 or 4; when both fit, channels come last. Leading
            axes of length 1 are dropped. Booleans are black and white; integers within 0-255 and floats
            within 0-1 or 0-255 are taken as they are; everything else is scaled by its range.
        max_pixels: Pixels kept; of a larger array every n-th row and column is shown.

    Returns:
        The picture, and notes on what was done.

    Raises:
        ObservationError: The array has no shape or kind of a picture.
    """
    pixels, notes = _channels_last(array), []
    height, width = pixels.shape[:2]
    if height * width > max_pixels:
        step = int(np.ceil(np.sqrt(height * width / max_pixels)))
        pixels = pixels[::step, ::step]
        notes.append(f"one of every {step} rows and columns of {width}x{height}")
    values, note = _as_bytes(pixels)
    if note:
        notes.append(note)
    picture = Image.fromarray(values[..., 0] if values.shape[-1] == 1 else values)
    return picture, tuple(notes)


def pixel_hash(picture: Image.Image) -> str:
    """SHA-256 of width, height and RGB bytes: the same picture in two lossless encodings has one hash."""
    digest = hashlib.sha256(f"{picture.width}x{picture.height}:RGB:".encode())
    digest.update(picture.convert("RGB").tobytes())
    return digest.hexdigest()


def encode(picture: Image.Image, sha256: str, *, as_jpeg: bool = False) -> bytes:
    """Encode as PNG, without loss, or as JPEG of quality 95 where the original was a JPEG already.

    Episodes of one task show the same pictures again and again, so that what was encoded last is kept.

    Args:
        picture: In standard form.
        sha256: Its `pixel_hash`.
        as_jpeg: Which of the two.
    """
    key = (sha256, picture.mode, as_jpeg)
    data = _encoded.get(key)
    if data is None:
        data = _encode(picture, as_jpeg)
        _encoded.put(key, data)
    return data


def _encode(picture: Image.Image, as_jpeg: bool) -> bytes:
    buffer = io.BytesIO()
    if as_jpeg:
        picture.save(buffer, "JPEG", quality=95, subsampling=0)
    else:
        # Level 1 is several times faster on large pictures and costs a few percent of size.
        picture.save(buffer, "PNG", compress_level=6 if picture.width * picture.height < 1_000_000 else 1)
    return buffer.getvalue()


def _upright(picture: Image.Image) -> tuple[Image.Image, bool]:
    try:
        orientation = picture.getexif().get(_EXIF_ORIENTATION, 1)
    except Exception:  # damaged EXIF: the picture is shown as stored
        return picture, False
    if orientation not in range(2, 9):
        return picture, False
    return ImageOps.exif_transpose(picture), True


def _eight_bits(picture: Image.Image) -> tuple[Image.Image, str]:
    values, note = _as_bytes(np.asarray(picture)[..., None])
    return Image.fromarray(values[..., 0]), note or "more than 8 bits per pixel, shown as they are"


def _to_srgb(picture: Image.Image, profile: bytes) -> Image.Image | None:
    """The picture in sRGB; itself when it is sRGB already, None when the profile is of no use."""
    try:
        from PIL import ImageCms

        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if "srgb" in ImageCms.getProfileDescription(source).lower():
            return picture
        alpha = picture.getchannel("A") if picture.mode in ("RGBA", "LA") else None
        colours = picture
        if picture.mode in ("P", "1", "RGBA", "LA", "PA"):
            colours = picture.convert("L" if picture.mode in ("1", "LA") else "RGB")
        managed = ImageCms.profileToProfile(colours, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
    except Exception:  # damaged profile, profile of another colour space, Pillow built without lcms
        return None
    if managed is None:
        return None
    if alpha is not None:
        managed.putalpha(alpha)
    return managed


def _rescue(picture: Image.Image, data: bytes, max_pixels: int) -> Image.Image | None:
    """What a failed decoder left behind; None when that is nothing."""
    try:
        if picture.format in ("JPEG", "MPO"):
            # With an end mark, the decoder fills up what is missing, also of progressive files.
            again: Image.Image = Image.open(io.BytesIO(data + b"\xff\xd9"), formats=("JPEG",))
            check_size(again, max_pixels)
            again.load()
        else:
            again = picture
            if isinstance(picture, ImageFile.ImageFile):
                picture.tile = []  # nothing more to decode: what is there is the picture
            again.load()
        return again if again.convert("RGB").getbbox() is not None else None
    except Exception:
        return None


def _channels_last(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise ObservationError(f"A picture holds numbers or booleans, found an array of {array.dtype}.")
    pixels = array
    while pixels.ndim > 3 and pixels.shape[0] == 1:
        pixels = pixels[0]
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    fits = pixels.ndim == 3 and pixels.size > 0
    if fits and pixels.shape[-1] not in (1, 3, 4) and pixels.shape[0] in (1, 3, 4):
        pixels = np.moveaxis(pixels, 0, -1)
    if not fits or pixels.shape[-1] not in (1, 3, 4):
        raise ObservationError(
            f"An array of shape {array.shape} is no picture; expected (H, W), (H, W, C) or (C, H, W) with "
            "1, 3 or 4 channels and at least one pixel."
        )
    return pixels


def _as_bytes(pixels: NDArray[Any]) -> tuple[NDArray[np.uint8], str]:
    """Pixels of any number type as uint8, and a note when they were scaled."""
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels), ""
    if pixels.dtype == np.bool_:
        return np.where(pixels, np.uint8(255), np.uint8(0)), ""
    values = pixels.astype(np.float64)
    finite = np.isfinite(values)
    note = "" if finite.all() else f"{int((~finite).sum()):,} values that are not finite are shown black"
    if not finite.any():
        return np.zeros(values.shape, np.uint8), note
    low, high = float(values[finite].min()), float(values[finite].max())
    values = np.where(finite, values, low)
    is_float = pixels.dtype.kind == "f"
    if is_float and low >= 0.0 and high <= 1.0:
        values = values * 255.0
    elif low < 0.0 or high > 255.0 or pixels.dtype == np.uint16:
        # The fourth channel is transparency, which has no range of its own; it is scaled all the same.
        values = (values - low) * (255.0 / (high - low) if high > low else 0.0)
        scaled = f"{pixels.dtype} values from {low:g} to {high:g} are shown as black to white"
        note = f"{scaled}; {note}" if note else scaled
    if not finite.all():
        values = np.where(finite, values, 0.0)
    return np.rint(values).astype(np.uint8), note


def _unreadable(data: bytes, error: Exception) -> str:
    if not data:
        return "The picture file is empty."
    return (
        f"{len(data):,} bytes that begin with {data[:8]!r} are no picture that can be read: {_short(error)}"
    )


def _short(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):  # its message holds the address of an object in memory
        return "no known picture format"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."
