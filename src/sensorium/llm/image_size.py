"""Width and height of an encoded picture, read from its header without decoding it."""

import base64
import binascii
import struct

from sensorium.llm.embedded_pictures import encoded

_HEAD_CHARS = 64 * 1024
"""Base64 characters looked at first; in photographs a preview may come before the size, then all is read."""
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG segment that holds the size (ITU-T T.81, table B.1)."""


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a PNG, JPEG, WebP or GIF; None when it is none of these or cut short.

    Source: PNG (ISO 15948, 11.2.2), JPEG (ITU-T T.81, B.2.2), WebP (RFC 9649, 2.5 to 2.7), GIF89a (18).
    """
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
            return _positive(*struct.unpack_from(">II", data, 16))
        if data[:6] in (b"GIF87a", b"GIF89a"):
            return _positive(*struct.unpack_from("<HH", data, 6))
        if data.startswith(b"\xff\xd8"):
            return _jpeg_size(data)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _webp_size(data)
    except (struct.error, IndexError):
        return None
    return None


def data_url_size(url: str) -> tuple[int, int] | None:
    """Width and height of the picture in a base64 ``data:`` URL; None when they cannot be read there."""
    text = encoded(url)
    if text is None:
        return None
    for part in (text[:_HEAD_CHARS], text):
        try:
            data = base64.b64decode(part + "=" * (-len(part) % 4))
        except (binascii.Error, ValueError):
            return None
        if (size := image_size(data)) is not None:
            return size
    return None


def _positive(width: int, height: int) -> tuple[int, int] | None:
    return (width, height) if width > 0 and height > 0 else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 9 <= len(data):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker == 0xFF:  # fill byte
            place += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD7:  # without content
            place += 2
        elif marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return _positive(width, height)
        else:
            place += 2 + max(2, struct.unpack_from(">H", data, place + 2)[0])
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (1 + int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
        return (width, height) if len(data) >= 30 else None
    if kind == b"VP8L" and data[20] == 0x2F:
        bits = struct.unpack_from("<I", data, 21)[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return _positive(width & 0x3FFF, height & 0x3FFF)
    return None
