"""Rounds that are collected while the trainer learns from earlier ones."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from sensorium.trainers.language.collect import Collected

_LOOK_S = 0.2
"""How often a waiting trainer looks whether it was interrupted."""


class CollectingAhead:
    """Collects rounds one after the other, in a thread of its own, up to so many updates ahead.

    Round u is what update u learns from. It begins only once u - `max_staleness` updates are done, so weights
    that it samples with are at most `max_staleness` updates older than those that learn from it.

    Args:
        collect: Collects the round of an update; what it raises is raised by `take`.
        max_staleness: At least 1.
        first: Number of the first round.
        last: Number after that of the last round.
        waiting: Rounds from `first` on that were collected in an earlier session.
    """

    def __init__(
        self,
        collect: Callable[[int], Coroutine[Any, Any, Collected]],
        *,
        max_staleness: int,
        first: int,
        last: int,
        waiting: Sequence[Collected] = (),
    ) -> None:
        self._collect, self._ahead = collect, max_staleness
        self._next, self._last = first + len(waiting), last
        self._done = -1
        self._rounds = deque(waiting)
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._is_closed = False
        self._under_way: tuple[asyncio.AbstractEventLoop, asyncio.Task[Collected]] | None = None
        self._thread = threading.Thread(target=self._work, name="collecting", daemon=True)
        self._thread.start()

    def updated(self, done: int) -> None:
        """Say how many updates are done: a further round may begin."""
        with self._changed:
            self._done = done
            self._changed.notify_all()

    def take(self, is_interrupted: Callable[[], bool]) -> Collected | None:
        """The next round, in order; waits for it. None when the user interrupts before it is there."""
        with self._changed:
            while not self._rounds:
                if self._failure is not None:
                    raise self._failure
                if is_interrupted():
                    return None
                self._changed.wait(_LOOK_S)
            return self._rounds.popleft()

    def waiting(self) -> list[Collected]:
        """Rounds that are collected and not taken."""
        with self._changed:
            return list(self._rounds)

    def close(self) -> None:
        """Cancel the round under way, its episodes are closed, and end the thread; may be called again."""
        with self._changed:
            self._is_closed = True
            if self._under_way is not None:
                loop, task = self._under_way
                loop.call_soon_threadsafe(task.cancel)
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while self._may_begin():
            try:
                made = asyncio.run(self._round(self._next))
            except BaseException as error:  # the trainer shall hear of it, whatever it is
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._rounds.append(made)
                self._next += 1
                self._changed.notify_all()

    def _may_begin(self) -> bool:
        """Wait until the next round may begin; False when there is none any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._next <= self._done + self._ahead)
            return not self._is_closed and self._next < self._last

    async def _round(self, number: int) -> Collected:
        task = asyncio.ensure_future(self._collect(number))
        with self._changed:
            self._under_way = asyncio.get_running_loop(), task
            if self._is_closed:
                task.cancel()
        try:
            return await task
        finally:
            with self._changed:  # a loop that has ended takes no more calls
                self._under_way = None
