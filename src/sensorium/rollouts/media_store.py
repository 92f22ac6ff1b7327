"""Pictures and sounds of rows, each kept once under the hash of its content, in a folder beside the file.

In a row stands ``media:<folder>/<sha256>.<ending>`` where the data was; the folder is beside the file that
holds the row, so both can be moved together.
"""

import base64
import binascii
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sensorium.core import ConfigError

_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "image/bmp": "bmp",
    "image/svg+xml": "svg",
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "application/pdf": "pdf",
    "application/octet-stream": "bin",
}
_TYPES = {ending: kind for kind, ending in _ENDINGS.items()}
_SOUNDS = ("wav", "mp3", "flac", "ogg")
_SCHEME = "media:"
_REFERENCE = re.compile(r"media:(?!\.)([^/\\:\0]+)/([0-9a-f]{64})\.([a-z0-9]{2,4})")
_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,")
_BEGINNINGS = ("data:", _SCHEME)
_MAX_DEPTH = 200
_MAX_CACHED_CHARS = 64 * 1024 * 1024
Change = Callable[[str, bool], str]
"""A text, and whether it is bare base64 of a sound -> the text in its place."""


def media_folder(path: Path) -> Path:
    """Where the media of a file of rows are: ``out.jsonl`` -> ``out_media``."""
    return path.with_name(f"{path.stem}_media")


class MediaStore:
    """A folder of media, filled and read by content.

    Args:
        folder: Made when the first file is put in.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: set[str] = set()
        self._unsynced: list[Path] = []

    def put(self, data: bytes, ending: str) -> str:
        """Keep a file; the same content is kept once.

        Returns:
            Its reference.

        Raises:
            OSError: The disk is full or the folder cannot be written.
        """
        name = f"{hashlib.sha256(data).hexdigest()}.{ending}"
        if name not in self._known:
            path = self.folder / name
            if not path.exists() or path.stat().st_size != len(data):
                self.folder.mkdir(parents=True, exist_ok=True)
                building = path.with_name(f".{name}.{secrets.token_hex(4)}.partial")
                try:
                    building.write_bytes(data)
                    building.replace(path)
                except BaseException:
                    building.unlink(missing_ok=True)
                    raise
                self._unsynced.append(path)
            self._known.add(name)
        return f"{_SCHEME}{self.folder.name}/{name}"

    def stored(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row with references in place of embedded media.

        Only what can be given back to the letter is taken out: base64 in its usual form, of known types.
        """
        return _changed(row, self._take)

    def sync(self) -> None:
        """Make what was put in durable; call before the rows that refer to it are made durable."""
        paths, self._unsynced = self._unsynced, []
        for path in paths:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _take(self, text: str, is_sound: bool) -> str:
        match = _DATA_URL.match(text)
        if match is not None and match[1] in _ENDINGS:
            ending, encoded = _ENDINGS[match[1]], text[match.end() :]
        elif is_sound:
            ending, encoded = "wav", text
        else:
            return text
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return text
        if not data or base64.b64encode(data).decode("ascii") != encoded:
            return text
        return self.put(data, ending)


class MediaReader:
    """Puts media back into rows.

    Args:
        base: Folder of the file that holds the rows.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._cache: dict[str, str] = {}
        self._cached_chars = 0

    def inlined(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row with its media embedded.

        Raises:
            ConfigError: A file is missing, or is not what it was.
        """
        return _changed(row, self._give)

    def problems(self, row: Mapping[str, Any]) -> Iterator[str]:
        """What of the media of a row is missing, in words; contents are not read."""
        for reference in _references(row):
            match = _REFERENCE.fullmatch(reference)
            if match is None:
                yield f"{reference[:120]!r} is no reference; expected media:<folder>/<sha256>.<ending>"
            elif not self._path(match).is_file():
                yield f"the file of {reference} is missing; expected {self._path(match)}"

    def read(self, reference: str) -> bytes:
        """The content behind a reference.

        Raises:
            ConfigError: The file is missing, or is not what it was.
        """
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            raise ConfigError(
                f"{reference[:120]!r} is no reference. Expected media:<folder>/<sha256>.<ending>."
            )
        path = self._path(match)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"The file of {reference} cannot be read: {error.strerror}. "
                "The folder of media must lie beside the file of rows."
            ) from error
        if hashlib.sha256(data).hexdigest() != match[2]:
            raise ConfigError(f"{path} is damaged: its content is not what its name says.")
        return data

    def _path(self, match: re.Match[str]) -> Path:
        return self._base / match[1] / f"{match[2]}.{match[3]}"

    def _give(self, text: str, is_sound: bool) -> str:
        if not text.startswith(_SCHEME):
            return text
        known = self._cache.get(text)
        if known is None:
            known = base64.b64encode(self.read(text)).decode("ascii")
            if self._cached_chars + len(known) > _MAX_CACHED_CHARS:
                self._cache.clear()
                self._cached_chars = 0
            self._cache[text] = known
            self._cached_chars += len(known)
        if is_sound:
            return known
        kind = _TYPES.get(text.rpartition(".")[2], _TYPES["bin"])
        return f"data:{kind};base64,{known}"


def may_hold_media(line: bytes) -> bool:
    """Whether a row written as JSON may hold media or references to them; cheap, errs on the side of yes."""
    return b";base64," in line or b"media:" in line or b'"input_audio"' in line


def _references(value: Any) -> Iterator[str]:
    found: list[str] = []

    def collect(text: str, is_sound: bool) -> str:
        if text.startswith(_SCHEME) and _stands_for_media(text):
            found.append(text)
        return text

    _changed(value, collect)
    return iter(dict.fromkeys(found))


def _stands_for_media(text: str) -> bool:
    return "/" in text and "\n" not in text and len(text) < 500


def _changed(row: Mapping[str, Any], change: Change) -> dict[str, Any]:
    changed: dict[str, Any] = _walk(dict(row), change, 0)
    return changed


def _walk(value: Any, change: Change, depth: int) -> Any:
    """The value with its texts changed; what has no changed text in it stays the same object.

    Runs over every row that has a picture: texts, of which there are most, are looked at without a call.
    """
    if isinstance(value, str):
        return change(value, False) if value.startswith(_BEGINNINGS) else value
    if depth > _MAX_DEPTH or not isinstance(value, dict | list):
        return value
    made: Any = None
    for place, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, str):
            if not item.startswith(_BEGINNINGS):
                continue
            new: Any = change(item, False)
        elif isinstance(item, dict):
            new = _sound(item, change) if place == "input_audio" else _walk(item, change, depth + 1)
        elif isinstance(item, list):
            new = _walk(item, change, depth + 1)
        else:
            continue
        if new is not item:
            made = value.copy() if made is None else made
            made[place] = new
    return value if made is None else made


def _sound(sound: dict[str, Any], change: Change) -> dict[str, Any]:
    """A sound of the chat API, ``{"data": <base64>, "format": ...}``."""
    data = sound.get("data")
    if not isinstance(data, str) or sound.get("format") not in _SOUNDS:
        return sound
    new = change(data, True)
    return sound if new == data else {**sound, "data": new}
