import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.core import wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # p = 0.5, n = 4, z = 1.959964: centre 0.5, half = z sqrt(1/16 + z^2/64) / (1 + z^2/4)
        (2, 4, 0.150039, 0.849961),
        # 0 of 10: high = z^2/n / (1 + z^2/n) = 0.384146 / 1.384146
        (0, 10, 0.0, 0.277533),
        (10, 10, 0.722467, 1.0),
        (389, 400, 0.951435, 0.984575),
    ],
)
def test_wilson_by_hand(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson_interval(successes, trials)
    assert interval.low == pytest.approx(low, abs=2e-6)
    assert interval.high == pytest.approx(high, abs=2e-6)


def test_wilson_solves_its_defining_equation() -> None:
    """The bounds are the rates p with |k/n - p| = z sqrt(p (1 - p) / n)."""
    for bound in wilson_interval(37, 120, confidence=0.9):
        z = abs(37 / 120 - bound) / math.sqrt(bound * (1 - bound) / 120)
        assert z == pytest.approx(1.6448536, abs=1e-6)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_stays_within_bounds(case: tuple[int, int]) -> None:
    successes, trials = case
    low, high = wilson_interval(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    assert low < high
    mirrored = wilson_interval(trials - successes, trials)
    assert mirrored.low == pytest.approx(1 - high)


def test_wilson_without_trials_knows_nothing() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("arguments", [(-1, 5), (6, 5), (1, 5, 0.0), (1, 5, 1.0), (0, 0, 95.0)])
def test_wilson_refuses_nonsense(arguments: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        wilson_interval(*arguments)
