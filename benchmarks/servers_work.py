"""The work that both sides do in `servers`; only the standard library, so that every interpreter can import it."""

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
    """Raw RGB pixels of a square picture, another one for every number below 256: a bright block on a gradient.

    Returns:
        ``3 * size * size`` bytes, row by row.
    """
    rows = []
    left, top = (7 * number) % size, (3 * number) % size
    for y in range(size):
        row = bytearray(value for x in range(size) for value in ((4 * x) & 255, (4 * y) & 255, number & 255))
        if top <= y < top + 8:
            block = row[3 * left : 3 * (left + 8)]
            row[3 * left : 3 * (left + 8)] = b"\xff" * len(block)
        rows.append(bytes(row))
    return b"".join(rows)


def png_url(number: int, size: int) -> str:
    """The picture as a data URL with a PNG."""
    pixels = picture(number, size)
    lines = b"".join(b"\0" + pixels[3 * size * y : 3 * size * (y + 1)] for y in range(size))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
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
