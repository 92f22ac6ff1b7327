from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.algorithms import PromotionDecision, Verdict, judge_stage, next_stage


def judge(successes: int, trials: int, below: int = 0, **changes: Any) -> PromotionDecision:
    rule: dict[str, Any] = {"theta": 0.8, "theta_demote": 0.4, "min_episodes": 50, "patience": 3, **changes}
    return judge_stage(successes, trials, below, **rule)


@pytest.mark.parametrize(
    ("successes", "trials", "verdict"),
    [
        # Wilson bounds at 95 %, z = 1.959964. 88 of 100: low 0.8019; 87 of 100: low 0.7902
        (88, 100, Verdict.PROMOTE),
        (87, 100, Verdict.STAY),
        # All of 49 would do (low 0.927), but there are fewer than 50 episodes.
        (49, 49, Verdict.STAY),
        (50, 50, Verdict.PROMOTE),
        (60, 100, Verdict.STAY),
        # 30 of 100: high 0.3958 < 0.4; 31 of 100: high 0.4062
        (30, 100, Verdict.DEMOTE),
        (31, 100, Verdict.STAY),
        (0, 49, Verdict.STAY),
    ],
)
def test_verdicts_by_hand(successes: int, trials: int, verdict: Verdict) -> None:
    assert judge(successes, trials, below=2).verdict == verdict


def test_demotion_needs_patience() -> None:
    decision = judge(10, 100)
    assert (decision.verdict, decision.below) == (Verdict.STAY, 1)
    decision = judge(10, 100, decision.below)
    assert (decision.verdict, decision.below) == (Verdict.STAY, 2)
    assert judge(10, 49, decision.below)[:2] == (Verdict.STAY, 2)  # too few episodes: the count stands
    assert judge(50, 100, decision.below)[:2] == (Verdict.STAY, 0)  # it went better: the count starts anew
    assert judge(10, 100, decision.below)[:2] == (Verdict.DEMOTE, 0)


def test_the_interval_is_what_the_verdict_looked_at() -> None:
    low, high = judge(88, 100).interval
    assert (low, high) == pytest.approx((0.8019, 0.9300), abs=1e-4)


def test_zero_never_demotes() -> None:
    assert judge(0, 10_000, below=50, theta_demote=0.0).verdict == Verdict.STAY


@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.lists(st.integers(1, 40), min_size=1, max_size=40),
    st.tuples(st.floats(0.0, 0.98), st.floats(0.0, 0.98)).filter(lambda pair: pair[0] != pair[1]),
    st.integers(1, 4),
)
def test_a_constant_success_rate_never_swings(
    rate: tuple[int, int], sizes: list[int], thresholds: tuple[float, float], patience: int
) -> None:
    """The same rate at every stage, from windows of any size, leads up, or down, or nowhere."""
    stage, below, moves = 5, 0, set[int]()
    for size in sizes:
        decision = judge(
            rate[0] * size,
            rate[1] * size,
            below,
            theta=max(thresholds),
            theta_demote=min(thresholds),
            min_episodes=20,
            patience=patience,
        )
        below = decision.below
        moves.add(next_stage(stage, decision.verdict, 11) - stage)
    assert not {1, -1} <= moves


def test_stages_end_where_they_end() -> None:
    assert [next_stage(1, verdict, 3) for verdict in Verdict] == [2, 0, 1]
    assert next_stage(2, Verdict.PROMOTE, 3) == 2
    assert next_stage(0, Verdict.DEMOTE, 3) == 0
    with pytest.raises(ValueError, match="stage from 0 to 2, found 3"):
        next_stage(3, Verdict.STAY, 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"theta": 1.0},
        {"theta": 0.4},
        {"theta_demote": -0.1},
        {"min_episodes": 0},
        {"patience": 0},
        {"confidence": 1.0},
    ],
)
def test_refuses_nonsense(changes: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        judge(50, 100, **changes)
    with pytest.raises(ValueError, match="Expected"):
        judge(101, 100)
