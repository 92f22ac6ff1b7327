"""Where features are kept: in memory, and on disk between runs; a cache that fails only costs time."""

import contextlib
import functools
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sensorium.core import MissingDependencyError, require
from sensorium.core.byte_cache import ByteCache

_BUSY_S = 5.0
"""How long another process that is writing is waited for; then the entry is not kept. Reading never waits."""


class FeatureCache:
    """Packed entries by key, the nearest place first. Thread-safe, and shared by processes on disk.

    Args:
        folder: Folder on disk; None keeps entries in memory only.
        limit_bytes: Size on disk at which the oldest entries make room.
        memory_bytes: Size in memory at which those not used for longest make room.

    Attributes:
        note: What is wrong with the cache on disk; empty when nothing is.
    """

    def __init__(self, folder: Path | None, *, limit_bytes: int, memory_bytes: int) -> None:
        self.note = ""
        self._folder, self._limit_bytes = folder, limit_bytes
        self._memory: ByteCache[bytes] = ByteCache(memory_bytes, len)
        self._disk: Any = None
        self._disk_lock = threading.Lock()

    def load(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Those of the entries that are there."""
        found: dict[str, bytes] = {}
        absent = []
        for key in keys:
            entry = self._memory.get(key)
            if entry is None:
                absent.append(key)
            else:
                found[key] = entry
        if absent and (disk := self._opened()) is not None:
            with self._tolerant():
                for key in absent:
                    entry = disk.get(key)
                    if isinstance(entry, bytes):
                        found[key] = entry
                        self._memory.put(key, entry)
        return found

    def store(self, entries: Mapping[str, bytes]) -> None:
        """Keep entries, replacing what was there."""
        for key, entry in entries.items():
            self._memory.put(key, entry)
        if entries and (disk := self._opened()) is not None:
            with self._tolerant(), disk.transact(retry=False):
                for key, entry in entries.items():
                    disk.set(key, entry)

    def forget(self, key: str) -> None:
        """Drop an entry that turned out to be damaged."""
        self._memory.discard(key)
        if (disk := self._opened()) is not None:
            with self._tolerant():
                disk.delete(key)

    def close_thread(self) -> None:
        """Close the connection of the calling thread, which is about to end."""
        if (disk := self._disk) is not None:
            with contextlib.suppress(sqlite3.Error, OSError):
                disk.close()

    def close(self) -> None:
        """Close what is open on disk; a later call opens it again."""
        with self._disk_lock:
            if self._disk is not None:
                with contextlib.suppress(sqlite3.Error, OSError):
                    self._disk.close()
                self._disk = None

    def _opened(self) -> Any:
        """The cache on disk; None when there is none."""
        if self._folder is None or self.note:
            return None
        if self._disk is None:
            with self._disk_lock:
                if self._disk is None and not self.note:
                    self._disk = self._open(self._folder)
        return self._disk

    def _open(self, folder: Path) -> Any:
        try:
            return _opened_cache(folder, self._limit_bytes)
        except MissingDependencyError as error:
            self.note = f"features are not kept on disk: {error}"
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                _remove(folder)
                with contextlib.suppress(sqlite3.Error, OSError):
                    return _opened_cache(folder, self._limit_bytes)
            self.note = _failed(folder, error)
        return None

    @contextlib.contextmanager
    def _tolerant(self) -> Iterator[None]:
        """What goes wrong on disk is noted; a damaged file is replaced, a busy one is left alone."""
        diskcache = _diskcache()
        try:
            yield
        except diskcache.Timeout:
            pass
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) and "busy" not in str(error):
                self.note = _failed(self._folder, error)
        except (sqlite3.DatabaseError, ValueError) as error:
            folder = self._folder
            self.close()
            if folder is not None:
                _remove(folder)
                with self._disk_lock:
                    self._disk = self._open(folder)
            if self._disk is None:
                self.note = self.note or _failed(folder, error)
        except OSError as error:
            self.note = _failed(self._folder, error)


def _remove(folder: Path) -> None:
    """Remove a cache that is damaged, and nothing else that may lie in the folder."""
    for pattern in ("cache.db*", "[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*.val"):
        for path in folder.glob(pattern):
            with contextlib.suppress(OSError):
                path.unlink()


def _failed(folder: Path | None, error: Exception) -> str:
    return f"features are not kept on disk: {folder} cannot be used ({type(error).__name__}: {error})"


def _opened_cache(folder: Path, limit_bytes: int) -> Any:
    return _diskcache().Cache(
        str(folder),
        timeout=_BUSY_S,
        disk=_plain_disk(),
        size_limit=limit_bytes,
        eviction_policy="least-recently-stored",  # reading writes nothing
    )


def _diskcache() -> Any:
    return require("diskcache", extra="observe", purpose="keeping features on disk")


@functools.cache
def _plain_disk() -> type[Any]:
    """A disk that reads text and bytes only: a folder that somebody tampered with must not run code."""
    base: Any = _diskcache().Disk
    pickled = _diskcache().core.MODE_PICKLE

    class PlainDisk(base):  # type: ignore[misc]
        def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
            if mode == pickled:
                return None
            return super().fetch(mode, filename, value, read)

    return PlainDisk
