"""A store of pictures and sounds that clients load by address, each under the hash of its bytes."""

import contextlib
import hashlib
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sensorium.core.byte_cache import ByteCache
from sensorium.core.errors import ObservationError
from sensorium.core.files import atomic_write_bytes

_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mpeg": "mp3",
}
_MIMES = {ending: mime for mime, ending in _ENDINGS.items()}
_NAME = re.compile(r"[0-9a-f]{64}\.(" + "|".join(_MIMES) + r")\Z")


class Media(NamedTuple):
    """What the store holds under one name."""

    data: bytes
    mime: str


class MediaStore:
    """Keeps encoded media under names made of their content, so that equal content is kept once.

    Thread-safe. When the limit is reached, what was used longest ago goes (in a folder: what was stored or
    stored again longest ago).

    Args:
        max_bytes: Limit of everything kept.
        folder: Where files lie; made when the first one is stored. None keeps them in memory.

    Example:
        >>> store = MediaStore()
        >>> serve = store.server("http://localhost:8000/media")
        >>> serve(b"...", "image/png")[:33]
        'http://localhost:8000/media/ab5df'
    """

    def __init__(self, max_bytes: int = 256 * 1024 * 1024, folder: Path | None = None) -> None:
        self.max_bytes = max_bytes
        self.folder = folder
        self._memory: ByteCache[Media] = ByteCache(max_bytes, lambda media: len(media.data))
        self._lock = threading.Lock()

    def add(self, data: bytes, mime: str) -> str:
        """Keep `data` and return its name, e.g. ``3f2a...e1.png``.

        Raises:
            ObservationError: The type is not one of pictures or sounds, or `data` alone exceeds the limit.
            OSError: The folder cannot be written.
        """
        if mime not in _ENDINGS:
            raise ObservationError(f"A media store keeps {', '.join(sorted(_ENDINGS))}; found {mime!r}.")
        if len(data) > self.max_bytes:
            raise ObservationError(
                f"{len(data):,} bytes do not fit a media store of {self.max_bytes:,}; raise its max_bytes."
            )
        name = f"{hashlib.sha256(data).hexdigest()}.{_ENDINGS[mime]}"
        if self.folder is None:
            self._memory.put(name, Media(data, mime))
            return name
        with self._lock:
            path = self.folder / name
            if path.is_file():
                os.utime(path)
            else:
                atomic_write_bytes(path, data)
                self._make_room(name)
        return name

    def get(self, name: str) -> Media | None:
        """What was kept under `name`; None when there is none (any more), or it is no name of this store."""
        match = _NAME.match(name)
        if match is None:  # a request from outside: never a path
            return None
        if self.folder is None:
            return self._memory.get(name)
        try:
            return Media((self.folder / name).read_bytes(), _MIMES[match[1]])
        except OSError:
            return None

    @staticmethod
    def url_for(name: str, base_url: str) -> str:
        """Address of a name below `base_url`."""
        return f"{base_url.rstrip('/')}/{name}"

    def server(self, base_url: str) -> Callable[[bytes, str], str]:
        """A function that keeps (data, mime) and returns its address: what `image_variants` calls `serve`."""

        def serve(data: bytes, mime: str) -> str:
            return self.url_for(self.add(data, mime), base_url)

        return serve

    def _make_room(self, newest: str) -> None:
        assert self.folder is not None
        files = []
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):  # another process removed it
                if _NAME.match(path.name):
                    status = path.stat()
                    files.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.max_bytes:
                return
            if path.name != newest:
                path.unlink(missing_ok=True)
                total -= size
