"""Pictures that stand in a message themselves, in a base64 ``data:`` URL."""

import base64
import binascii
import io
from typing import Any

from sensorium.core import require


def encoded(url: str) -> str | None:
    """The base64 text of a ``data:`` URL; None when it is an address, or of another encoding."""
    head, comma, text = url.partition(",")
    return text if comma and head.startswith("data:") and head.endswith(";base64") else None


def content(url: str) -> bytes | None:
    """The bytes in a ``data:`` URL; None when it is an address, or cannot be decoded."""
    text = encoded(url)
    if text is None:
        return None
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None


def picture(url: str) -> Any:
    """The picture in a ``data:`` URL, as a `PIL.Image.Image` of mode RGB.

    Raises:
        MissingDependencyError: Pillow is not installed.
        ValueError: It is an address, or holds no picture that can be read; the message says which.
    """
    images = require("PIL.Image", extra="observe", purpose="pictures in messages")
    data = content(url)
    if data is None:
        raise ValueError(f"{url[:60]!r} is no data: URL with base64")
    try:
        with images.open(io.BytesIO(data)) as read:
            return read.convert("RGB")
    except (OSError, ValueError, SyntaxError, images.DecompressionBombError) as error:
        raise ValueError(str(error)) from error  # Pillow reports a broken PNG as a SyntaxError
