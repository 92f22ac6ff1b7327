"""Preparing minibatches while the one before is trained on."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

_POLL_S = 0.1
"""How often a loader that waits for room looks whether it is still wanted."""


def prefetched(
    prepare: Callable[[ItemT], ResultT], items: Sequence[ItemT], *, ahead: int
) -> Iterator[tuple[ItemT, ResultT]]:
    """Yield ``(item, prepare(item))`` in order, with up to `ahead` results prepared beforehand.

    A thread prepares; it waits when `ahead` results are waiting, so that memory stays bounded, and ends when
    the caller stops early. Worth it where preparing copies much and leaves the interpreter free, such as
    gathering frames for a GPU; on a CPU whose cores are all busy with training it gains nothing.

    Args:
        prepare: Called once per item, in order.
        items: What to prepare.
        ahead: Results that may wait; 0 prepares each when it is asked for, without a thread.

    Raises:
        Exception: Whatever `prepare` raised, when its item's turn comes.
    """
    if ahead == 0:
        for item in items:
            yield item, prepare(item)
        return
    ready: queue.Queue[tuple[ItemT, ResultT | BaseException]] = queue.Queue(ahead)
    unwanted = threading.Event()

    def work() -> None:
        for item in items:
            try:
                result: ResultT | BaseException = prepare(item)
            except BaseException as error:  # raised again where the result is wanted
                result = error
            while not unwanted.is_set():
                try:
                    ready.put((item, result), timeout=_POLL_S)
                    break
                except queue.Full:
                    continue
            if unwanted.is_set() or isinstance(result, BaseException):
                return

    thread = threading.Thread(target=work, name="sensorium-loader", daemon=True)
    thread.start()
    try:
        for _ in items:
            item, result = ready.get()
            if isinstance(result, BaseException):
                raise result
            yield item, result
    finally:
        unwanted.set()
        thread.join()
