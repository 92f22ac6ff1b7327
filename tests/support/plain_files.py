"""PNG and WAV files written from arrays by the standard library alone."""

import io
import struct
import wave
import zlib

import numpy as np


def png(pixels: np.ndarray) -> bytes:
    """A PNG of uint8 pixels (height, width) or (height, width, 3)."""
    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\x00" + row.tobytes() for row in np.ascontiguousarray(pixels)))
    chunks = [(b"IHDR", header), (b"IDAT", body), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def wav(samples: np.ndarray, rate_hz: int = 8000) -> bytes:
    """A WAV file of one channel, 16 bits a sample."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(samples.astype("<i2").tobytes())
    return buffer.getvalue()
