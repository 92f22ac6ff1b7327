"""The work of both sides of `servers`; only the standard library, so that any interpreter can import it."""

import base64
import socket
import struct
import zlib
from functools import lru_cache


def free_port() -> int:
    """A port of the loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@lru_cache(maxsize=1024)
def picture(number: int, size: int) -> bytes:
    """Raw RGB pixels of a square picture, another for every number below 256: a bright block on a gradient.

    Returns:
        ``3 * size * size`` bytes, row by row.
    """
    rows = []
    left, top = (7 * number) % size, (3 * number) % size
    across = bytes((4 * x) & 255 for x in range(size))
    for y in range(size):
        row = bytearray(3 * size)
        row[0::3], row[1::3], row[2::3] = across, bytes([(4 * y) & 255]) * size, bytes([number & 255]) * size
        if top <= y < top + 8:
            width = min(8, size - left)
            row[3 * left : 3 * (left + width)] = b"\xff" * (3 * width)
        rows.append(bytes(row))
    return b"".join(rows)


def png_url(number: int, size: int) -> str:
    """The picture as a data URL with a PNG."""
    pixels = picture(number, size)
    lines = b"".join(b"\0" + pixels[3 * size * y : 3 * size * (y + 1)] for y in range(size))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    png = b"\x89PNG\r\n\x1a\n" + body
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


TOOL_PROMPT = "What is the weather like in Oslo?"
WEATHER_TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": ""}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
"""The tool of NeMo Gym's `example_single_tool_call`, which answers with one sentence."""
