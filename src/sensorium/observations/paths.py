"""Files and directories as parts."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.files import Listing, list_files, read_content
from sensorium.observations.kinds import Kind, kind_of_bytes
from sensorium.observations.source import Source
from sensorium.observations.terminal import encodable
from sensorium.observations.values import ProblemValue, TextValue

if TYPE_CHECKING:
    from sensorium.observations.read import Reader

_STREAMED: tuple[Kind, ...] = ("table",)
"""Kinds of which a file larger than ``max_bytes`` is read as a sample."""
_MAX_LISTED = 200
_LIBRARIES = (
    ".so",
    ".pyd",
    ".dll",
    ".dylib",
    ".o",
    ".a",
    ".pyc",
    ".class",
    ".exe",
    ".bin",
    ".woff",
    ".woff2",
)


def read_path(reader: "Reader", source: Source, path: Path, part_id: str) -> None:
    """Add the parts of a file, or of a directory with all its files.

    A directory begins with a part that lists what it holds and what was passed over; its files lie in it:
    ``project``, ``project/src/main.py``.
    """
    name = part_id or encodable(path.name or path.resolve().name or "files")
    name = reader.reserve(name)
    try:
        is_directory = path.is_dir()
    except (OSError, ValueError):
        is_directory = False
    if not is_directory:
        _read_file(reader, source, path, name)
        return
    listing = list_files(path, reader.config)
    binaries: list[tuple[str, str]] = []
    sources = []
    for file in listing.files:
        words = _binary(file.path)
        if words is None:
            sources.append(file)
        else:
            binaries.append((file.name, words))
    listing.passed_over.extend(binaries)
    value = TextValue(text=_listed(listing, {file.name for file in sources}))
    reader.add([Part(id=name, modality=Modality.TEXT, value=value)], source)
    for file in sources:
        _read_file(reader, source, file.path, f"{name}/{file.name}")


def _read_file(reader: "Reader", source: Source, path: Path, part_id: str) -> None:
    source = dataclasses.replace(source, raw=path, path=source.path or encodable(path.name))
    config = reader.config
    head = _head(path)
    if isinstance(head, bytes) and source.modality in (None, Modality.TABLE):
        kind, words = kind_of_bytes(head, path.name)
        is_packed = head[:2] == b"\x1f\x8b"
        if kind in _STREAMED and not is_packed:
            from sensorium.observations.contents import parts_of_kind

            reader.add(parts_of_kind(kind, path, source, part_id, config, words), source)
            return
    content = read_content(path, config)
    if content.problem is not None:
        modality = source.modality or Modality.TEXT
        reader.add([Part(id=part_id, modality=modality, value=content.problem)], source)
        return
    if content.size > len(content.data) and _needs_whole(content.data, path):
        mend = "Raise reading.max_bytes, or make it smaller."
        what = f"the file has {content.size:,} bytes, more than the limit of {config.max_bytes:,}"
        problem = ProblemValue(what=what, where=part_id, mend=mend)
        reader.add([Part(id=part_id, modality=_modality(content.data, path), value=problem)], source)
        return
    if source.modality is not None:
        from sensorium.observations.contents import parts_of_modality

        filled = dataclasses.replace(source, raw=content.data)
        reader.add(parts_of_modality(source.modality, filled, part_id, config), source, content.notes)
        return
    reader.read_bytes(content.data, source, part_id, content.notes)


def _head(path: Path) -> bytes | None:
    """The first bytes of an ordinary file; None when it cannot or must not be opened."""
    content = read_content(path, ReadConfig(max_bytes=8_192))
    if content.problem is not None:
        return None
    return content.data


def _needs_whole(data: bytes, path: Path) -> bool:
    kind, _ = kind_of_bytes(data[:8_192], path.name)
    return kind in ("image", "audio", "array", "arrays", "workbook")


def _modality(data: bytes, path: Path) -> Modality:
    from sensorium.observations.contents import modality_of_kind

    return modality_of_kind(kind_of_bytes(data[:8_192], path.name)[0])


def _binary(path: Path) -> str | None:
    """What a file is that nobody can read as text; None for files that have a reader."""
    if path.suffix.lower() in _LIBRARIES:
        return "binary"
    head = _head(path)
    if head is None:
        return None  # its part says why
    kind, words = kind_of_bytes(head, path.name)
    if kind == "binary":
        return words
    if (
        kind in ("text", "code", "structured")
        and b"\0" in head[:1_024]
        and head[:2] not in (b"\xff\xfe", b"\xfe\xff")
    ):
        return "binary"
    return None


def _listed(listing: Listing, read: set[str]) -> str:
    lines = [f"{file.name} ({_size(file.size)})" for file in listing.files if file.name in read]
    if not lines:
        lines = ["no files that can be read"]
    if listing.passed_over:
        lines.append("not read:")
        shown = listing.passed_over[:_MAX_LISTED]
        lines += [f"- {name}: {why}" for name, why in shown]
        if len(listing.passed_over) > len(shown):
            lines.append(f"- and {len(listing.passed_over) - len(shown):,} more")
    return "\n".join(lines)


def _size(size: int) -> str:
    if size < 1_024:
        return f"{size} B"
    return f"{size / 1_024:,.1f} kB" if size < 1_024**2 else f"{size / 1_024**2:,.1f} MB"
