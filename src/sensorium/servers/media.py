"""Pictures that prompts refer to by address: each belongs to a session, and nobody guesses where it is."""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sensorium.servers.security import Signer

_session: ContextVar[str | None] = ContextVar("session", default=None)
_MB = 1024 * 1024
_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}


@contextmanager
def pictures_of(session_id: str) -> Iterator[None]:
    """Pictures that are kept inside belong to this session."""
    token = _session.set(session_id)
    try:
        yield
    finally:
        _session.reset(token)


class MediaStore:
    """Keeps encoded pictures; the same picture has the same address throughout a session, and only there.

    Args:
        signer: Makes names that nobody guesses.
        base_url: In front of names; asked at each picture, since a server knows its port late.
        lifetime_s: How long a picture is kept after it was last shown.
        max_mb: Pictures that are kept; the oldest go first.
        prefix: Of names, e.g. the number of the worker.
        clock: Seconds, for tests.
    """

    def __init__(
        self,
        signer: Signer,
        base_url: Callable[[], str],
        *,
        lifetime_s: float,
        max_mb: float,
        prefix: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._signer, self._base_url, self._clock = signer, base_url, clock
        self._prefix = prefix
        self._lifetime_s, self._max_bytes = lifetime_s, int(max_mb * _MB)
        self._kept: OrderedDict[str, tuple[bytes, str, float, str]] = OrderedDict()
        self._num_bytes = 0
        self._lock = threading.Lock()

    def keep(self, data: bytes, mime_type: str) -> str:
        """Keep a picture; returns its address. It is the `Serve` of an observation pipeline."""
        owner = _session.get() or ""
        digest = hashlib.sha256(data).hexdigest()
        name = self._prefix + self._signer.digest(f"picture {owner} {digest}") + _ENDINGS.get(mime_type, "")
        with self._lock:
            self._drop(name)
            self._kept[name] = (data, mime_type, self._clock() + self._lifetime_s, owner)
            self._num_bytes += len(data)
            while self._num_bytes > self._max_bytes and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))
        return f"{self._base_url()}/media/{name}"

    def get(self, name: str) -> tuple[bytes, str] | None:
        """A picture with its type; None when there is none of this name, or no more."""
        with self._lock:
            data, mime_type, until, _ = self._kept.get(name, (b"", "", 0.0, ""))
            if not mime_type or self._clock() > until:
                self._drop(name)
                return None
            return data, mime_type

    def forget(self, session_id: str) -> None:
        """Drop the pictures of a session."""
        with self._lock:
            for name in [name for name, kept in self._kept.items() if kept[3] == session_id]:
                self._drop(name)

    def _drop(self, name: str) -> None:
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._num_bytes -= len(kept[0])
