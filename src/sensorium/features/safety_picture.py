"""Pictures as a judge gets them: byte for byte, or smaller."""

import base64
import io
from typing import NamedTuple

from sensorium.core import FeatureError, require
from sensorium.llm.image_size import image_size
from sensorium.llm.messages import ImageBlock

_MIMES = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8", "image/jpeg"),
    (b"RIFF", "image/webp"),
    (b"GIF8", "image/gif"),
)


class PictureError(FeatureError):
    """A picture cannot be read or does not fit the judge's window."""


class Picture(NamedTuple):
    """An encoded picture."""

    data: bytes
    mime: str
    width: int
    """Pixels."""
    height: int
    """Pixels."""


def read_picture(data: bytes) -> Picture:
    """Read kind and size from the header.

    Raises:
        PictureError: It is no PNG, JPEG, WebP or GIF, or its header is cut short.
    """
    size = image_size(data)
    mime = next((mime for start, mime in _MIMES if data.startswith(start)), None)
    if size is None or mime is None:
        raise PictureError(f"its {len(data)} bytes are no PNG, JPEG, WebP or GIF with a complete header")
    return Picture(data, mime, *size)


def embedded(picture: Picture) -> ImageBlock:
    """The picture inside a ``data:`` URL."""
    text = base64.b64encode(picture.data).decode("ascii")
    return ImageBlock(
        url=f"data:{picture.mime};base64,{text}", width=picture.width, height=picture.height, detail=None
    )


def shrunk(picture: Picture, width: int, height: int, *, max_pixels: int) -> Picture:
    """A smaller copy, as JPEG on white.

    Raises:
        PictureError: It has more than `max_pixels` pixels, or cannot be decoded.
        MissingDependencyError: Pillow is not installed.
    """
    pillow = require("PIL.Image", extra="observe", purpose="shrinking pictures")
    if picture.width * picture.height > max_pixels:
        raise PictureError(
            f"a picture of {picture.width}x{picture.height} is too large to be shrunk; "
            f"{max_pixels:,} pixels are allowed"
        )
    try:
        with pillow.open(io.BytesIO(picture.data)) as opened:
            if opened.width * opened.height > max_pixels:
                raise PictureError("its header gives two sizes")
            opened.draft("RGB", (width, height))
            whole = opened.convert("RGBA").resize((width, height), pillow.Resampling.LANCZOS)
        ground = pillow.new("RGBA", whole.size, "white")
        ground.alpha_composite(whole)
        buffer = io.BytesIO()
        ground.convert("RGB").save(buffer, "JPEG", quality=85)
    except PictureError:
        raise
    except Exception as error:  # Pillow's decoders raise nearly anything for broken files
        raise PictureError(f"it cannot be decoded ({type(error).__name__}: {error})") from error
    return Picture(buffer.getvalue(), "image/jpeg", width, height)
