"""One thread per extractor: slow ones do not stall others, and one that never comes back is left behind."""

import threading
import time
from collections import deque
from collections.abc import Callable

IDLE_S = 20.0
"""A thread without work ends after so long; the next work starts another."""
MAX_LOST = 2
"""Calls of one extractor that may hang before it is given no more work."""

Work = Callable[[], None]


class Worker:
    """A queue of work for one extractor, and the daemon thread that does it, piece by piece.

    A daemon thread does not keep the process alive when an extractor hangs.

    Args:
        name: For the name of the thread.
        places: How many pieces of work all workers together do at the same time.
        on_end: Called by each thread when it ends, to release what belongs to it.
    """

    def __init__(self, name: str, places: threading.Semaphore, on_end: Work) -> None:
        self._name, self._places, self._on_end = name, places, on_end
        self._pending: deque[Work] = deque()
        self._changed = threading.Condition()
        self._owner: object | None = None
        self._since: float | None = None
        self._lost = 0
        self._is_closing = False

    @property
    def is_lost(self) -> bool:
        """Whether so many calls hang that no more work is done."""
        with self._changed:
            return self._lost >= MAX_LOST

    def submit(self, work: Work) -> None:
        """Do `work`, which must not raise, after what was submitted before."""
        with self._changed:
            self._is_closing = False
            self._pending.append(work)
            self._start_if_needed()
            self._changed.notify()

    def leave_behind(self, longer_than_s: float) -> None:
        """When the present piece of work has taken so long, let another thread do the others."""
        with self._changed:
            if self._since is not None and time.monotonic() - self._since >= longer_than_s:
                self._since, self._owner = None, None
                self._lost += 1
                self._places.release()
                self._start_if_needed()

    def close(self) -> None:
        """Let the thread end when nothing is left to do; later work starts another."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()

    def _start_if_needed(self) -> None:
        if self._pending and self._owner is None and self._lost < MAX_LOST:
            self._owner = object()
            name = f"sensorium-{self._name}"
            threading.Thread(target=self._run, args=(self._owner,), name=name, daemon=True).start()

    def _run(self, me: object) -> None:
        try:
            while (work := self._next()) is not None:
                self._places.acquire()
                with self._changed:
                    self._since = time.monotonic()
                work()
                with self._changed:
                    if self._owner is not me:  # left behind, and back after all
                        self._lost -= 1
                        self._start_if_needed()
                        return
                    self._since = None
                self._places.release()
        finally:
            self._on_end()

    def _next(self) -> Work | None:
        with self._changed:
            while not self._pending:
                if self._is_closing or not self._changed.wait(IDLE_S):
                    if self._pending:
                        break
                    self._owner = None
                    return None
            return self._pending.popleft()
