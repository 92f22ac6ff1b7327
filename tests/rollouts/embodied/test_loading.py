"""Minibatches that are prepared ahead arrive in order, are bounded in number, and lose no error."""

import threading
import time

import pytest

from sensorium.rollouts.embodied.loading import prefetched


@pytest.mark.parametrize("ahead", [0, 1, 3, 100])
def test_everything_arrives_in_order(ahead: int) -> None:
    assert list(prefetched(lambda x: x * x, range(20), ahead=ahead)) == [(x, x * x) for x in range(20)]
    assert list(prefetched(lambda x: x, [], ahead=ahead)) == []


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_never_more_than_asked_for_is_prepared(ahead: int) -> None:
    prepared: list[int] = []

    def prepare(x: int) -> int:
        prepared.append(x)
        return x

    for done, _ in enumerate(prefetched(prepare, range(10), ahead=ahead)):
        time.sleep(0.01)
        # One is in our hands, `ahead` wait, and one more is held by the thread that finds no room.
        assert len(prepared) <= done + 1 + (ahead + 1 if ahead else 0)
    assert prepared == list(range(10))


@pytest.mark.parametrize("ahead", [0, 2])
def test_an_error_comes_when_its_turn_comes(ahead: int) -> None:
    def prepare(x: int) -> int:
        if x == 3:
            raise ValueError("three")
        return x

    batches = prefetched(prepare, range(10), ahead=ahead)
    assert [next(batches)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(batches)
    assert not [t for t in threading.enumerate() if t.name == "sensorium-loader"]


def test_stopping_early_ends_the_thread() -> None:
    batches = prefetched(lambda x: x, range(1000), ahead=2)
    assert next(batches) == (0, 0)
    batches.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name == "sensorium-loader"]
