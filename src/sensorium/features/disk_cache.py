"""Arrays kept on disk between runs; a cache that cannot be read or written only costs time.

Every entry is a plain ``.npy`` file (``numpy.load`` reads it) with a checksum behind the data, written to a
temporary file, flushed to the disk and renamed, so that readers never see half an entry.
"""

import hashlib
import io
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core.files import atomic_write_bytes

_CHECKSUM_BYTES = 16


def cache_folder(*parts: str) -> Path:
    """Folder for files that can be made again: ``$XDG_CACHE_HOME/sensorium``, else ``~/.cache/sensorium``.

    The folder need not exist. A relative XDG_CACHE_HOME is ignored, as its specification asks.
    """
    configured = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(configured):
        return Path(configured, "sensorium", *parts)
    try:
        home = Path.home()
    except RuntimeError:  # an account without a home folder
        home = Path(tempfile.gettempdir(), f"sensorium-{os.getuid()}")
    return home.joinpath(".cache", "sensorium", *parts)


class ArrayCache:
    """A folder of arrays by text key.

    Args:
        folder: Where entries lie; made when the first one is stored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """File that holds the entry of `key`, whether or not it exists."""
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]
        return self.folder / name[:2] / f"{name}.npy"

    def load(self, key: str) -> NDArray[Any] | None:
        """Return the array stored under `key`; None when there is none or its file is damaged."""
        try:
            data = self.path(key).read_bytes()
            body, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
            if _checksum(body) != checksum:
                return None
            array: NDArray[Any] = np.load(io.BytesIO(body), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return array

    def store(self, key: str, array: NDArray[Any]) -> bool:
        """Keep `array` under `key`, replacing what was there; False when the folder cannot be written."""
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        body = buffer.getvalue()
        try:
            atomic_write_bytes(self.path(key), body + _checksum(body))
        except OSError:
            return False
        return True


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()
