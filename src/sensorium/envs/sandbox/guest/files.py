"""Files of the work directory, opened without ever following a link."""

import collections
import contextlib
import os
import shutil
import stat
from typing import Union

MAX_DEPTH = 100
"""Levels of directories that a listing descends."""
Entry = list[Union[str, int]]  # noqa: UP007 - older interpreters run this too
"""Path, kind, bytes, modification time in ns."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


def open_below(root: int, path: str, flags: int, *, make_directories: bool = False) -> int:
    """Open `path` below the directory descriptor `root`; no part of it may be a link.

    Raises:
        OSError: A part is missing, a link or no directory; or the path leads outside.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise OSError("the path leads outside the work directory")
    safe = os.O_NOFOLLOW | os.O_CLOEXEC
    if not parts:
        return os.open(".", flags | safe, dir_fd=root)
    current = os.dup(root)
    try:
        for part in parts[:-1]:
            if make_directories:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=current)
            following = os.open(part, _DIRECTORY | safe, dir_fd=current)
            os.close(current)
            current = following
        return os.open(parts[-1], flags | safe, 0o644, dir_fd=current)
    finally:
        os.close(current)


def open_file(root: int, path: str, *, write: bool) -> int:
    """Open a regular file: to read, or (made or emptied) to write.

    Raises:
        OSError: As in `open_below`, or it is no regular file.
    """
    flags = os.O_WRONLY | os.O_CREAT if write else os.O_RDONLY
    descriptor = open_below(root, path, flags | os.O_NONBLOCK, make_directories=write)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        if write:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_socket(directory: str, name: str) -> int:
    """Pin the unix socket `name` of a directory.

    Raises:
        OSError: It is not there.
        ValueError: It is something else.
    """
    place = os.open(directory, _DIRECTORY)
    try:
        descriptor = open_below(place, name, os.O_PATH)
    finally:
        os.close(place)
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("not a socket")
    return descriptor


def remove(root: int, path: str) -> None:
    """Remove a file, a link or a tree; nothing happens where it is not there.

    Raises:
        OSError: It is the work directory itself, or a directory above it is a link.
    """
    parent, _, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", ".."):
        raise OSError("name something in the work directory")
    with contextlib.suppress(FileNotFoundError):
        descriptor = open_below(root, parent, _DIRECTORY)
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=descriptor)
            else:
                os.unlink(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)


def list_below(root: int, path: str, max_entries: int) -> list[Entry]:
    """Everything below a directory, nearest levels first, as far as `max_entries` and `MAX_DEPTH` go.

    Raises:
        OSError: There is no such directory.
    """
    entries: list[Entry] = []
    start = path.strip("/")
    queue = collections.deque([("" if start == "." else start, 0)])
    while queue and len(entries) < max_entries:
        directory, depth = queue.popleft()
        try:
            descriptor = open_below(root, directory, _DIRECTORY)
        except OSError:
            if depth == 0:
                raise
            continue
        try:
            with os.scandir(descriptor) as found:
                for entry in found:
                    if len(entries) >= max_entries:
                        break
                    full = f"{directory}/{entry.name}" if directory else entry.name
                    entries.append(_describe(full, entry))
                    if entry.is_dir(follow_symlinks=False) and depth < MAX_DEPTH:
                        queue.append((full, depth + 1))
        finally:
            os.close(descriptor)
    return entries


def _describe(path: str, entry: "os.DirEntry[str]") -> Entry:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return [path, "other", 0, 0]
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(facts.st_mode), "other")
    return [path, kind, facts.st_size if kind == "file" else 0, facts.st_mtime_ns]
