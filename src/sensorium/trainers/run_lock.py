"""One process at a time trains a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sensorium.core import RunDirectoryError, require

LOCK_FILE = "training.lock"


@contextmanager
def only_process(run: Path) -> Iterator[None]:
    """Hold the lock of a run's directory; the system frees it when the process ends, however it ends.

    Raises:
        RunDirectoryError: Another process holds it.
    """
    filelock = require("filelock", extra="rl", purpose="training")
    lock = filelock.FileLock(run / LOCK_FILE, blocking=False)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise RunDirectoryError(
            f"{run} is being trained by another process: only one can. Wait for it or stop it; or choose "
            f"another --seed or --runs."
        ) from error
    try:
        yield
    finally:
        lock.release()
