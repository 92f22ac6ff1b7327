"""Files and directories as parts."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sensorium.core.counted import counted
from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.contents import modality_of_kind, parts_of_kind, parts_of_modality
from sensorium.observations.decoding import encodable
from sensorium.observations.files import FoundFile, Listing, list_files, read_content
from sensorium.observations.kinds import Kind, kind_of_bytes
from sensorium.observations.source import Source
from sensorium.observations.values import ProblemValue, TextValue

if TYPE_CHECKING:
    from sensorium.observations.read import Reader

_CUT: tuple[Kind, ...] = ("code", "structured", "table", "text")
"""Kinds of which the beginning of a file says something."""
_WHOLE: tuple[Kind, ...] = ("image", "array", "arrays", "workbook", "database")
"""Kinds of which a file is read as a whole or not at all."""
_IN_PLACE: tuple[Kind, ...] = ("table", "database")
"""Kinds whose reader takes the file itself, of whatever size, and reads a sample."""
_MAX_NAMED = 200
"""Of more files the listing names the directories only: it would be longer than what it tells of."""
_MAX_LISTED = 200
_FILE_SHARE = 32
"""Of a text or table in a directory this part of ``max_bytes`` is read (2 MB by default)."""
_TOTAL_SHARE = 4
"""Of the files of a directory together this part of ``max_bytes`` (16 MB by default)."""
_HEAD = ReadConfig(max_bytes=8_192)
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
    sources = _chosen(listing, reader.config)
    value = TextValue(text=_listed(listing, sources, reader.config.max_files))
    reader.add([Part(id=name, modality=Modality.TEXT, value=value)], source)
    for file in sources:
        limit = max(1, reader.config.max_bytes // _FILE_SHARE)
        _read_file(reader, source, file.path, f"{name}/{file.name}", limit)


def _chosen(listing: Listing, config: ReadConfig) -> list[FoundFile]:
    """Files with a reader, the small ones first until all together are too much; the rest is passed over."""
    readable: list[FoundFile] = []
    for file in listing.files:
        words = _binary(file.path)
        if words is None:
            readable.append(file)
        else:
            listing.passed_over.append((file.name, words))
    total, left = config.max_bytes // _TOTAL_SHARE, config.max_bytes // _TOTAL_SHARE
    chosen: set[str] = set()
    for file in sorted(readable, key=lambda file: file.size):
        cost = min(file.size, config.max_bytes // _FILE_SHARE)
        if cost <= left or not chosen:
            left -= cost
            chosen.add(file.name)
        else:
            why = f"{_size(file.size)}; of a directory {_size(total)} are read, small files first"
            listing.passed_over.append((file.name, why))
    return [file for file in readable if file.name in chosen]


def _read_file(reader: "Reader", source: Source, path: Path, part_id: str, limit: int | None = None) -> None:
    """Add the parts of a file.

    Args:
        reader: Takes the parts.
        source: What is known of it.
        path: The file.
        part_id: Its id.
        limit: Bytes of a text or table that are read when they are fewer than the config's.
    """
    source = dataclasses.replace(source, raw=path, path=source.path or encodable(path.name))
    config = reader.config
    head = read_content(path, _HEAD)
    kind, words = kind_of_bytes(head.data, path.name)
    if limit is not None and kind in _CUT and not head.data.startswith(b"PAR1"):
        config = config.model_copy(update={"max_bytes": limit})
    is_plain = head.problem is None and not head.is_packed
    if is_plain and kind in _IN_PLACE and source.modality in (None, Modality.TABLE):
        reader.add(parts_of_kind(kind, path, source, part_id, config, words), source)
        return
    content = read_content(path, config)
    problem = content.problem
    modality = source.modality or Modality.TEXT
    if problem is None and content.is_cut and kind in _WHOLE:
        mend = "Raise reading.max_bytes, or make it smaller."
        what = f"the file has {content.size:,} bytes, more than the limit of {config.max_bytes:,}"
        problem = ProblemValue(what=what, where=part_id, mend=mend)
        modality = modality_of_kind(kind)
    if problem is not None:
        reader.add([Part(id=part_id, modality=modality, value=problem)], source)
        return
    source = dataclasses.replace(source, is_cut=source.is_cut or content.is_cut)
    if source.modality is not None:
        filled = dataclasses.replace(source, raw=content.data)
        reader.add(parts_of_modality(source.modality, filled, part_id, config), source, content.notes)
        return
    reader.read_bytes(content.data, source, part_id, content.notes)


def _binary(path: Path) -> str | None:
    """What a file is that nobody can read as text; None for files that have a reader."""
    if path.suffix.lower() in _LIBRARIES:
        return "binary"
    content = read_content(path, _HEAD)
    if content.problem is not None:
        return None  # its part says why
    head = content.data
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


def _listed(listing: Listing, read: Sequence[FoundFile], max_files: int) -> str:
    if len(read) > _MAX_NAMED:
        lines = _directories(read)
    else:
        lines = [f"{file.name} ({_size(file.size)})" for file in read] or ["no files that can be read"]
    if listing.passed_over or listing.beyond:
        lines.append("not read:")
        lines += [f"- {name}: {why}" for name, why in listing.passed_over[:_MAX_LISTED]]
        if rest := len(listing.passed_over[_MAX_LISTED:]) + len(listing.beyond):
            why = f": there are more than {max_files:,} files" if listing.beyond else ""
            lines.append(f"- and {rest:,} more{why}")
    return "\n".join(lines)


def _directories(files: Sequence[FoundFile]) -> list[str]:
    """A line for every directory with the number and size of the files in it, and a first one for all."""
    sizes: dict[str, list[int]] = {}
    for file in files:
        sizes.setdefault(file.name.rpartition("/")[0], []).append(file.size)
    total, places = _size(sum(file.size for file in files)), "directory" if len(sizes) == 1 else "directories"
    lines = [f"{len(files):,} files ({total}) in {len(sizes):,} {places}:"]
    for directory, own in [*sizes.items()][:_MAX_LISTED]:
        lines.append(f"{directory or '.'}/ ({counted(len(own), 'file')}, {_size(sum(own))})")
    if len(sizes) > _MAX_LISTED:
        lines.append(f"and {len(sizes) - _MAX_LISTED:,} more")
    return lines


def _size(size: int) -> str:
    if size < 1_024:
        return f"{size} B"
    return f"{size / 1_024:,.1f} kB" if size < 1_024**2 else f"{size / 1_024**2:,.1f} MB"
