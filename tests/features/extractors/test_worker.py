import threading
import time

import pytest

from sensorium.features.extractors import worker as workers
from sensorium.features.extractors.worker import Worker


def nothing() -> None:
    pass


def test_work_is_done_in_order_by_one_thread() -> None:
    worker, done, seen = Worker("x", threading.Semaphore(1), nothing), threading.Event(), []
    for n in range(20):
        worker.submit(lambda n=n: seen.append((n, threading.get_ident())))  # type: ignore[misc]
    worker.submit(done.set)
    assert done.wait(5)
    assert [n for n, _ in seen] == list(range(20))
    assert len({thread for _, thread in seen}) == 1


def test_no_more_places_than_there_are() -> None:
    places, busy, most = threading.Semaphore(2), [], []
    lock, done = threading.Lock(), threading.Semaphore(0)

    def work() -> None:
        with lock:
            busy.append(1)
            most.append(len(busy))
        time.sleep(0.005)
        with lock:
            busy.pop()
        done.release()

    for n in range(5):
        worker = Worker(f"worker-{n}", places, nothing)
        worker.submit(work)
        worker.submit(work)
    for _ in range(10):
        assert done.acquire(timeout=5)
    assert max(most) <= 2


def test_work_that_hangs_is_left_behind_and_counted_back() -> None:
    places, go, started, after = (
        threading.Semaphore(1),
        threading.Event(),
        threading.Event(),
        threading.Event(),
    )
    worker = Worker("x", places, nothing)

    def hang() -> None:
        started.set()
        go.wait(10)

    worker.submit(hang)
    worker.submit(after.set)
    assert started.wait(5)
    worker.leave_behind(60.0)  # not for so long yet
    assert not after.wait(0.05)
    worker.leave_behind(0.0)
    assert after.wait(5)  # another thread has gone on, in the place that was given back
    assert not worker.is_lost
    started.clear()
    worker.submit(hang)
    assert started.wait(5)
    worker.leave_behind(0.0)
    assert worker.is_lost
    later = threading.Event()
    worker.submit(later.set)
    assert not later.wait(0.05)  # nothing more is begun
    go.set()
    assert later.wait(5)
    assert not worker.is_lost
    for _ in range(100):
        if places._value == 1:
            break
        time.sleep(0.01)
    assert places._value == 1


def test_threads_end_when_idle_or_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = threading.Semaphore(0)
    worker = Worker("x", threading.Semaphore(1), ends.release)
    worker.submit(nothing)
    worker.close()
    assert ends.acquire(timeout=5)
    monkeypatch.setattr(workers, "IDLE_S", 0.01)
    done = threading.Event()
    worker.submit(done.set)
    assert done.wait(5)
    assert ends.acquire(timeout=5)
    again = threading.Event()
    worker.submit(again.set)
    assert again.wait(5)
    worker.close()
