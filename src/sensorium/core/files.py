"""Files that are either complete or absent: write beside, fsync, rename.

A full disk or a killed process leaves the previous file or directory as it was.
"""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARTIAL_SUFFIX = ".partial"
"""Ending of the name of everything that is not finished yet; readers skip such names."""


def atomic_write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data`, completely or not at all; missing parent directories are made.

    Raises:
        OSError: The disk is full or the directory cannot be written; `path` is as it was before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    building = _partial_sibling(path)
    try:
        with building.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        building.replace(path)
    except BaseException:
        building.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def atomic_write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, completely or not at all.

    Args:
        path: File to write; replaced if it exists.
        value: Anything `json` can write. NaN and infinity have no JSON form and are refused.

    Raises:
        ValueError: `value` holds NaN or infinity; nothing was written.
        TypeError: `value` holds an object that JSON cannot express; nothing was written.
        OSError: As in `atomic_write_bytes`.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    atomic_write_bytes(path, (text + "\n").encode())


@contextlib.contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Yield an empty directory to fill; it becomes `path` when the block ends without an error.

    It is built beside `path` under a hidden name that ends in `PARTIAL_SUFFIX`, and removed if the block
    raises.

    Args:
        path: Directory that will exist afterwards; missing parents are made.

    Raises:
        FileExistsError: `path` exists already, before or at the end; it is not touched.
        OSError: The disk is full or the parent cannot be written; `path` does not exist.

    Example:
        >>> with atomic_directory(Path("/tmp/checkpoint")) as building:  # doctest: +SKIP
        ...     (building / "weights.bin").write_bytes(b"...")
    """
    _refuse_existing(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    building = _partial_sibling(path)
    building.mkdir()
    try:
        yield building
        _sync_tree(building)
        _refuse_existing(path)  # a rename would silently replace an empty directory
        building.rename(path)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    _sync_directory(path.parent)


def _partial_sibling(path: Path) -> Path:
    """A free hidden name in the same directory, so that the rename stays within one file system."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise FileExistsError(f"{path} exists already; remove it or choose another name.")


def _sync_tree(directory: Path) -> None:
    for root, _, names in os.walk(directory):
        for name in names:
            descriptor = os.open(Path(root, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        _sync_directory(Path(root))


def _sync_directory(directory: Path) -> None:
    """Make a rename durable; some file systems cannot sync a directory, and then there is nothing to do."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
