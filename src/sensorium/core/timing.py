"""Where time goes, and how many threads may spend it."""

import contextlib
import os
import time
from collections.abc import Iterator


class Stopwatch:
    """Adds up the seconds spent under each name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add the wall time of the block to `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def drain(self) -> dict[str, float]:
        """Return what was added up, and start again at zero."""
        seconds, self.seconds = self.seconds, {}
        return seconds


def available_cores() -> int:
    """Number of cores this process may run on (respects CPU affinity)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_passive_threads(num_threads: int | None = None) -> None:
    """Let waiting OpenMP threads sleep instead of spin; call before torch or numba is imported.

    Spinning threads beside a busy process make a two-thread matrix product many times slower. Settings
    that the user has made in the environment are left as they are.

    Args:
        num_threads: Threads per process for OpenMP, BLAS and numba; all available cores by default.
    """
    threads = str(num_threads or available_cores())
    defaults = {
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "NUMBA_NUM_THREADS": threads,
        "OMP_WAIT_POLICY": "PASSIVE",
        "GOMP_SPINCOUNT": "0",
        "KMP_BLOCKTIME": "0",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
