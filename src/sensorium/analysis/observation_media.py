"""Pictures and sounds of a page: each embedded once, scaled when large, until the page is full."""

import base64
import binascii
import hashlib
import io
import re
from typing import NamedTuple

from sensorium.core.errors import MissingDependencyError, require

_DATA_URL = re.compile(r"data:(image/(?:png|jpeg|webp|gif));base64,([A-Za-z0-9+/=\s]+)\Z")
_SCALED_SIDE = 1024
_MAX_PIXELS = 50_000_000


class MediaLimits(NamedTuple):
    """How much a page may hold, bytes of encoded files."""

    one: int = 1_500_000
    """A larger picture is scaled down, a larger sound is left out."""
    all: int = 24_000_000


class Embedded(NamedTuple):
    """A picture or sound as the page refers to it."""

    key: str | None
    """Key in `PageMedia.urls`; None when the page does not hold it."""
    note: str = ""
    """What differs from the original, or why it is not there."""


class PageMedia:
    """Collects what a page embeds; equal bytes are held once."""

    def __init__(self, limits: MediaLimits | None = None) -> None:
        self._limits = limits or MediaLimits()
        self._num_bytes = 0
        self._known: dict[str, Embedded] = {}
        self.urls: dict[str, str] = {}
        """Key -> ``data:`` URL."""

    def image(self, data: bytes, mime: str) -> Embedded:
        """Embed an encoded picture."""
        digest = hashlib.sha256(data).hexdigest()[:16]
        if digest not in self._known:
            self._known[digest] = self._image(digest, data, mime)
        return self._known[digest]

    def image_url(self, url: str) -> Embedded:
        """Embed the picture of a ``data:`` URL; the address of any other is not loaded, only told."""
        match = _DATA_URL.match(url)
        if match is None:
            return Embedded(None, f"loaded by the model's server from {_shortened(url)}")
        try:
            data = base64.b64decode(match[2])
        except binascii.Error:
            return Embedded(None, "its base64 text is broken")
        return self.image(data, match[1])

    def audio(self, data: bytes, mime: str) -> Embedded:
        """Embed an encoded sound."""
        digest = hashlib.sha256(data).hexdigest()[:16]
        if digest not in self._known:
            if not data:
                found = Embedded(None, "it holds no bytes")
            elif len(data) > self._limits.one or not self._has_room(len(data)):
                found = Embedded(None, f"{len(data) / 1e6:.1f} MB, too large for this page")
            else:
                found = self._add(digest, data, mime)
            self._known[digest] = found
        return self._known[digest]

    def audio_base64(self, text: str, mime: str) -> Embedded:
        """Embed a sound that is base64 text."""
        try:
            return self.audio(base64.b64decode(text), mime)
        except binascii.Error:
            return Embedded(None, "its base64 text is broken")

    def _image(self, digest: str, data: bytes, mime: str) -> Embedded:
        if not data:
            return Embedded(None, "it holds no bytes")
        if len(data) <= self._limits.one and self._has_room(len(data)):
            return self._add(digest, data, mime)
        try:
            smaller = _scaled(data)
        except MissingDependencyError:
            return Embedded(None, f"{len(data) / 1e6:.1f} MB, too large for this page without Pillow")
        if smaller is None or len(smaller) > self._limits.one or not self._has_room(len(smaller)):
            return Embedded(None, f"{len(data) / 1e6:.1f} MB, too large for this page")
        return self._add(
            digest, smaller, "image/jpeg", f"shown smaller in this page ({len(data) / 1e6:.1f} MB)"
        )

    def _has_room(self, num_bytes: int) -> bool:
        return self._num_bytes + num_bytes <= self._limits.all

    def _add(self, digest: str, data: bytes, mime: str, note: str = "") -> Embedded:
        self._num_bytes += len(data)
        self.urls[digest] = f"data:{mime};base64,{base64.b64encode(data).decode()}"
        return Embedded(digest, note)


def _scaled(data: bytes) -> bytes | None:
    """The picture as a smaller JPEG; None when it cannot be read."""
    image_module = require("PIL.Image", extra="observe", purpose="scaling large pictures")
    try:
        image = image_module.open(io.BytesIO(data))
        if image.width * image.height > _MAX_PIXELS:
            return None
        image.draft("RGB", (_SCALED_SIDE, _SCALED_SIDE))
        image.thumbnail((_SCALED_SIDE, _SCALED_SIDE))
        buffer = io.BytesIO()
        image.convert("RGB").save(buffer, "JPEG", quality=80)
    except Exception:  # Pillow raises whatever a broken file makes it stumble over
        return None
    return buffer.getvalue()


def _shortened(url: str) -> str:
    return url if len(url) <= 300 else f"{url[:280]}... ({len(url):,} characters)"
