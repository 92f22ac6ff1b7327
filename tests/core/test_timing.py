import os
import time

import pytest

from sensorium.core import Stopwatch, available_cores, set_passive_threads


def test_stopwatch_adds_up_and_drains(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 1.0, 10.0, 12.5, 20.0, 20.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    watch = Stopwatch()
    for name in ("a", "a", "b"):
        with watch.measure(name):
            pass
    assert watch.drain() == {"a": 3.5, "b": 0.5}
    assert watch.drain() == {}


def test_stopwatch_counts_a_failing_block(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 2.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    watch = Stopwatch()
    with pytest.raises(KeyError), watch.measure("a"):
        raise KeyError
    assert watch.drain() == {"a": 2.0}


def test_available_cores_respects_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 5, 7}, raising=False)
    assert available_cores() == 3


def test_threads_keep_what_the_user_set(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"OMP_NUM_THREADS": "7"}
    monkeypatch.setattr(os, "environ", environment)
    set_passive_threads(2)
    assert environment["OMP_NUM_THREADS"] == "7"
    assert environment["MKL_NUM_THREADS"] == "2"
    assert environment["OMP_WAIT_POLICY"] == "PASSIVE"
