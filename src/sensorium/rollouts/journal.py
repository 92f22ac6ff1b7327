"""A file of rows that survives a killed process: whole lines or none, and one writer at a time."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from sensorium.core import RunDirectoryError
from sensorium.rollouts.jsonl import line_problem

_BLOCK = 1 << 20


class Repair(NamedTuple):
    """What was done to the end of a file that a killed process left."""

    cut_bytes: int = 0
    """Of a last line that was not written to its end."""
    ended_line: bool = False
    """Whether a whole last line lacked only its line end."""

    def describe(self, path: Path) -> str | None:
        """In words; None when nothing was done."""
        if self.cut_bytes:
            return f"{path.name}: the last line was torn; {self.cut_bytes:,} bytes of it were cut off."
        if self.ended_line:
            return f"{path.name}: the last line had no line end; it was given one."
        return None


class Journal:
    """Appends rows to a file. One row is one write, so a killed process leaves at most one torn line.

    While it is open no other process can open it for writing, also when its owner is killed with -9: then
    the lock is gone, too.

    Args:
        path: The file; made if it does not exist, with its parent directories.

    Raises:
        RunDirectoryError: Another process writes to it.
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            self._file = -1
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise RunDirectoryError(
                    f"{path} is being written by another process. Wait for it, or choose another --output."
                ) from error
            raise
        self._dirty = False

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self._file).st_size

    def repair(self) -> Repair:
        """Cut a torn last line off."""
        size = self.size
        end, tail = size, b""
        while end > 0 and b"\n" not in tail:
            start = max(0, end - _BLOCK)
            tail = os.pread(self._file, end - start, start) + tail
            end = start
        last = tail[tail.rfind(b"\n") + 1 :]
        if not last:
            return Repair()
        if isinstance(line_problem(last), dict):
            os.write(self._file, b"\n")
            return Repair(ended_line=True)
        os.ftruncate(self._file, size - len(last))
        os.fsync(self._file)
        return Repair(cut_bytes=len(last))

    def clear(self) -> None:
        """Remove all rows."""
        os.ftruncate(self._file, 0)

    def append(self, line: bytes) -> None:
        """Write one row.

        Args:
            line: JSON without line ends.

        Raises:
            OSError: The disk is full; the file is as it was before.
        """
        data = line + b"\n"
        written = 0
        try:
            while written < len(data):  # twice for a signal, or a disk that is about to be full
                written += os.write(self._file, data[written:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.size - written)  # nobody else writes to it
            raise
        self._dirty = True

    def sync(self) -> None:
        """Make what was written durable; slow, may be called in a thread."""
        if self._dirty and self._file >= 0:
            self._dirty = False
            os.fsync(self._file)

    def close(self) -> None:
        """Make all rows durable and let others write; may be called again."""
        if self._file < 0:
            return
        try:
            self.sync()
        finally:
            os.close(self._file)
            self._file = -1


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, leaving out a torn last line; nothing is changed.

    Raises:
        RunDirectoryError: Another line is no JSON object: the file is damaged, or no file of rows.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            data = line.strip()
            if not data:
                continue
            value = line_problem(data)
            if isinstance(value, dict):
                yield value
            elif line.endswith(b"\n"):
                raise RunDirectoryError(
                    f"{path} line {number} is damaged: {value}. Remove the line; with --resume its rollout "
                    "is run again."
                )
