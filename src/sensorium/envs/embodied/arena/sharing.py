"""Sharing the worlds of one call among threads: compiled loops hold no interpreter lock."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sensorium.core import available_cores

_WORLDS_PER_THREAD = 32


class WorldThreads:
    """Runs a compiled loop over slices of the worlds. What it computes does not depend on the slices.

    Args:
        num_threads: How many at most; 0 takes the available cores.
    """

    def __init__(self, num_threads: int) -> None:
        self._limit = num_threads or available_cores()
        self._pool: ThreadPoolExecutor | None = None

    def run(self, num_worlds: int, loop: Callable[..., None], *arguments: Any) -> None:
        """Call `loop(*arguments, first, last)` until worlds 0 to `num_worlds` are done."""
        threads = max(1, min(self._limit, num_worlds // _WORLDS_PER_THREAD))
        cuts = [num_worlds * part // threads for part in range(threads + 1)]
        if threads == 1:
            loop(*arguments, 0, num_worlds)
            return
        self._pool = self._pool or ThreadPoolExecutor(self._limit, thread_name_prefix="arena")
        futures = [
            self._pool.submit(loop, *arguments, first, last) for first, last in itertools.pairwise(cuts[1:])
        ]
        loop(*arguments, 0, cuts[1])
        for future in futures:
            future.result()

    def close(self) -> None:
        """Stop the threads; may be called twice."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
