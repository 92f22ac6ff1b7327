"""One process at a time trains a run."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sensorium.core import RunDirectoryError, require

LOCK_FILE = "training.lock"

_LOG = logging.getLogger(__name__)


@contextmanager
def only_process(run: Path) -> Iterator[None]:
    """Hold the lock of a run's directory; the system frees it when the process ends, however it ends.

    A file system without locks is written to without one.

    Raises:
        RunDirectoryError: Another process holds it, or the directory cannot be written.
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
    except NotImplementedError:
        _LOG.warning("%s is on a file system without locks: see to it that one process trains it", run)
    except OSError as error:
        raise RunDirectoryError(f"{run} cannot be written: {error.strerror or error}.") from error
    try:
        yield
    finally:
        lock.release()
