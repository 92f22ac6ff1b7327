"""Files and directories: what may be opened, what is passed over, and what is said of the rest.

Pipes, devices and sockets are never opened; links are followed only within the directory that is read.
"""

import os
import stat
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from sensorium.core.errors import ObservationError
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import encodable
from sensorium.observations.terminal import one_line
from sensorium.observations.values import ProblemValue

IGNORED = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "__pycache__",
        "node_modules",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".ipynb_checkpoints",
        ".idea",
        ".vscode",
        ".DS_Store",
    }
)
"""Names of files and directories that are passed over."""
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a directory"),
)
_MAX_DEPTH = 64


class FoundFile(NamedTuple):
    """A file of a directory."""

    path: Path
    name: str
    """Path relative to the directory, with ``/``."""
    size: int
    """Bytes."""


class Listing(NamedTuple):
    """What a directory holds."""

    files: list[FoundFile]
    """Sorted by name, directory by directory; at most ``max_files``."""
    passed_over: list[tuple[str, str]]
    """Relative path and why it is not read."""
    beyond: list[str]
    """Relative paths of files and directories behind ``max_files``."""


class Content(NamedTuple):
    """The beginning of a file, or why there is none."""

    data: bytes
    size: int
    """Bytes of the whole file."""
    problem: ProblemValue | None = None
    notes: tuple[str, ...] = ()
    is_packed: bool = False
    """`data` was unpacked from a ``.gz`` file."""

    @property
    def is_cut(self) -> bool:
        """Whether the file goes on behind `data`."""
        return self.size > len(self.data)


def list_files(root: Path, config: ReadConfig) -> Listing:
    """Find the files of a directory and of those below it, the same way every time.

    Args:
        root: The directory.
        config: ``max_files`` limits how many are listed.
    """
    listing = Listing([], [], [])
    seen: set[tuple[int, int]] = set()
    _walk(root, "", root.resolve(), seen, listing, config.max_files)
    return listing


def _walk(
    directory: Path,
    prefix: str,
    root: Path,
    seen: set[tuple[int, int]],
    listing: Listing,
    max_files: int,
) -> None:
    try:
        state = directory.stat()
        if (state.st_dev, state.st_ino) in seen:
            listing.passed_over.append((prefix or ".", "a link to a directory that is read already"))
            return
        seen.add((state.st_dev, state.st_ino))
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        listing.passed_over.append((prefix or ".", error.strerror or str(error)))
        return
    directories = []
    for entry in entries:
        name = one_line(encodable(f"{prefix}/{entry.name}" if prefix else entry.name))
        if entry.name in IGNORED or entry.name.endswith(".egg-info"):
            listing.passed_over.append((name, "ignored"))
            continue
        try:
            if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(root):
                listing.passed_over.append((name, "a link out of the directory"))
            elif entry.is_dir():
                directories.append((Path(entry.path), name))
            else:
                _list_file(entry, name, listing, max_files)
        except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
            listing.passed_over.append((name, getattr(error, "strerror", None) or "a loop of links"))
    for path, name in directories:
        if name.count("/") >= _MAX_DEPTH:
            listing.passed_over.append((name, "nested too deeply"))
        elif len(listing.files) >= max_files:
            listing.beyond.append(name)
        else:
            _walk(path, name, root, seen, listing, max_files)


def _list_file(entry: "os.DirEntry[str]", name: str, listing: Listing, max_files: int) -> None:
    state = entry.stat()
    kind = kind_of(state.st_mode)
    if kind is not None:
        listing.passed_over.append((name, kind))
    elif len(listing.files) >= max_files:
        listing.beyond.append(name)
    else:
        listing.files.append(FoundFile(Path(entry.path), name, state.st_size))


def kind_of(mode: int) -> str | None:
    """What a path is when it is not an ordinary file, e.g. ``a pipe``; None for a file."""
    if stat.S_ISREG(mode):
        return None
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "not an ordinary file")


def suffix_of(path: str) -> str:
    """The ending of a file's name in lower case; what stands before ``.gz`` of a packed one."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1].lower()
    name = name.removesuffix(".gz").removesuffix(".gzip")
    return name.rsplit(".", 1)[1] if "." in name[1:] else ""


def file_bytes(raw: Any, max_bytes: int) -> bytes | None:
    """Content of a file: given as bytes, as a path or open, then one byte more than `max_bytes` at most.

    Returns:
        None for anything else.

    Raises:
        ObservationError: The file is open for text.
        OSError: It cannot be opened.
    """
    if isinstance(raw, bytes | bytearray | memoryview):
        return bytes(raw)
    if isinstance(raw, os.PathLike):
        with open(raw, "rb") as file:
            return file.read(max_bytes + 1)
    if not callable(getattr(raw, "read", None)):
        return None
    content = raw.read(max_bytes + 1)
    if not isinstance(content, bytes):
        raise ObservationError("The file is open for text; open it with mode 'rb'.")
    return content


def read_content(path: Path, config: ReadConfig) -> Content:
    """Read a file up to ``max_bytes``; ``.gz`` files are unpacked up to as much.

    Never raises: what is wrong is in the answer.
    """
    shown = encodable(str(path))
    try:
        kind = kind_of(path.stat().st_mode)
        if kind is not None:
            problem = ProblemValue(what=f"{shown} is {kind}: it is not opened", where=shown)
            return Content(b"", 0, problem)
        # Between the look and the opening a file may become a pipe; without blocking that does no harm.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            data = file.read(config.max_bytes)
    except OSError as error:
        return Content(b"", 0, _unreadable(error, shown))
    except ValueError as error:  # a path with a NUL
        return Content(b"", 0, ProblemValue(what=f"the path cannot be opened: {error}", where=shown))
    notes: tuple[str, ...] = ()
    if size > len(data):
        notes = (f"the first {len(data):,} of {size:,} bytes were read",)
    if data[:2] == b"\x1f\x8b" and path.suffix.lower() in (".gz", ".gzip", ".svgz"):
        return unpacked(data, size, config, shown)
    return Content(data, size, None, notes)


def unpacked(data: bytes, size: int, config: ReadConfig, shown: str) -> Content:
    """Unpack gzip data up to ``max_bytes``; never raises.

    Args:
        data: The packed bytes, as many as were read.
        size: Bytes of the whole packed file.
        config: Limits.
        shown: Name of the file, for the problem of a damaged one.
    """
    plain, rest = bytearray(), data
    notes: tuple[str, ...] = (f"unpacked from {size:,} bytes",)
    while rest[:2] == b"\x1f\x8b" and len(plain) < config.max_bytes:  # packed files may be joined
        unpacker = zlib.decompressobj(wbits=31)
        try:
            plain += unpacker.decompress(rest, config.max_bytes - len(plain))
        except zlib.error as error:
            if not plain:
                what = f"the gzip file is damaged: {error}"
                return Content(b"", size, ProblemValue(what=what, where=shown, mend="Pack it again."))
            notes += (f"the gzip file is damaged behind what is shown: {error}",)
            break
        rest = unpacker.unconsumed_tail or unpacker.unused_data
        if unpacker.unconsumed_tail:
            notes += (f"only the first {len(plain):,} unpacked bytes were read",)
            return Content(bytes(plain), len(plain) + 1, None, notes, is_packed=True)
        if not unpacker.eof:
            notes += ("the gzip file is cut off",)
    return Content(bytes(plain), len(plain), None, notes, is_packed=True)


def _unreadable(error: OSError, shown: str) -> ProblemValue:
    mends = {
        FileNotFoundError: "Check the path.",
        PermissionError: "Check the permissions of the file.",
    }
    return ProblemValue(
        what=f"{shown} cannot be read: {error.strerror or error}",
        where=shown,
        mend=mends.get(type(error), ""),
    )
