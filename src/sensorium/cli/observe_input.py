"""What ``sensorium observe`` was given: files, directories and standard input, read into one observation."""

import errno
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from sensorium.core import Modality, ObservationError
from sensorium.observations.base import Observation, Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.read import read
from sensorium.observations.source import Source
from sensorium.observations.terminal import one_line
from sensorium.observations.values import ProblemValue

STDIN = "-"
STDIN_NAME = "stdin"


def read_files(files: Sequence[str], config: ReadConfig, *, name: str | None = None) -> Observation:
    """Read files in the order given; one that does not exist or may not be read becomes a part that says so.

    Args:
        files: Files and directories as the user wrote them; ``-`` is standard input.
        config: Limits.
        name: What a single file is called, instead of its own name.

    Raises:
        ObservationError: None of them can be read.
    """
    parts: list[Part] = []
    failures: list[str] = []
    taken: set[str] = set()
    for file in files:
        called = name or _free_name(file, taken)
        taken.add(called)
        try:
            parts += read(_raw(file, config, name), name=called, config=config).parts
        except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
            what = getattr(error, "strerror", None) or str(error)
            failures.append(f"{printable(file) or repr(file)}: {what}")
            mend = "Check the name." if isinstance(error, FileNotFoundError) else ""
            problem = ProblemValue(what=what, where=printable(file), mend=mend)
            parts.append(Part(id=called, modality=Modality.TEXT, value=problem))
    if len(failures) == len(files):
        raise ObservationError("Nothing can be read: " + "\n".join(failures))
    return Observation(parts=tuple(parts))


def name_of(file: str) -> str:
    """What the parts of a file are called: the last step of its path."""
    if file == STDIN:
        return STDIN_NAME
    return printable(os.path.basename(os.path.abspath(file)) or file)


def printable(name: str) -> str:
    """A file's name as one line of text: bytes that are no UTF-8 are written in hexadecimal."""
    return one_line(os.fsencode(name).decode("utf-8", "backslashreplace"))


def _raw(file: str, config: ReadConfig, name: str | None) -> Path | Source:
    """The file for the reader to open; the bytes of what can be read only once.

    Args:
        file: As the user wrote it.
        config: Limits.
        name: What a file, not a directory, is called.

    Raises:
        OSError: It does not exist, or may not be read.
    """
    if file == STDIN:
        return Source(sys.stdin.buffer.read(config.max_bytes + 1))
    if not file:
        raise FileNotFoundError(errno.ENOENT, "the name is empty")
    path = Path(file)
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        os.scandir(path).close()
        return path
    with path.open("rb") as stream:
        if stat.S_ISREG(mode):
            return path if name is None else Source(path, path=name)
        return Source(stream.read(config.max_bytes + 1))  # a pipe, e.g. of the shell's <(...)


def _free_name(file: str, taken: set[str]) -> str:
    """The file's name; when an earlier file has it, the path as it was given, or a number."""
    name = name_of(file)
    tried = [name] if file == STDIN else [name, printable(os.path.normpath(file)).lstrip("/")]
    for candidate in tried:
        if candidate and candidate not in taken:
            return candidate
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"
