"""An event loop in a thread of its own, for callers that know nothing of event loops or run one already."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_CALL_TIMEOUT_S = 900.0
ResultT = TypeVar("ResultT")


class LoopThread:
    """Runs coroutines one caller at a time, or many; the thread starts with the first.

    Args:
        name: Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None

    def run(self, doing: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run to the end and give back what it returns, or raise what it raises.

        Raises:
            TimeoutError: It took longer than 15 minutes.
        """
        with self._lock:
            if self._running is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name=self._name, daemon=True)
                thread.start()
                self._running = loop, thread
            loop, _ = self._running
        return asyncio.run_coroutine_threadsafe(doing, loop).result(_CALL_TIMEOUT_S)

    def close(self) -> None:
        """End the thread; may be called again, and `run` starts another."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            loop, thread = running
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
