import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sensorium.algorithms import MovingAverage, cggm, coalition_worth, ogm_ge, softmax_gates, z_scores

YES = torch.ones(4, dtype=torch.bool)
RETURNS = torch.tensor([0.0, 2.0, 4.0, 6.0])  # mean 3, variance (9 + 1 + 1 + 9) / 4 = 5
KL = torch.tensor([0.1, 0.2, 0.3, 0.4])
FLOATS = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=9)


def test_worth_by_hand() -> None:
    values = torch.tensor([1.0, 1.0, 5.0, 5.0])  # residuals -1, 1, -1, 1: variance 1
    # explained 1 - 1 / 5 = 0.8, mean KL 0.25: 0.5 * 0.8 - 2 * 0.25
    worth = coalition_worth(RETURNS, values, KL, YES, ev_weight=0.5, kl_weight=2.0)
    assert worth.item() == pytest.approx(-0.1)


def test_a_critic_that_is_off_by_a_constant_explains_everything() -> None:
    assert coalition_worth(RETURNS, RETURNS + 7.0, 0 * KL, YES).item() == pytest.approx(1.0)


def test_a_hopeless_critic_costs_at_most_one() -> None:
    worth = coalition_worth(RETURNS, torch.tensor([1e9, 0.0, 0.0, -1e9]), KL, YES)
    assert worth.item() == pytest.approx(-1.0 - 0.25)


@pytest.mark.parametrize("constant", [0.0, 0.1, -12345.678])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constant_returns_have_nothing_to_explain(constant: float, dtype: torch.dtype) -> None:
    returns = torch.full((1000,), constant, dtype=dtype)
    kl, mask = torch.full((1000,), 0.25, dtype=dtype), torch.ones(1000, dtype=torch.bool)
    worth = coalition_worth(returns, torch.randn(1000, dtype=dtype), kl, mask)
    assert worth.dtype == dtype
    assert worth.item() == pytest.approx(-0.25)


def test_masked_steps_are_never_read() -> None:
    bad = torch.full((2,), float("nan"))
    mask = torch.cat([YES, torch.zeros(2, dtype=torch.bool)])
    values = torch.tensor([1.0, 1.0, 5.0, 5.0])
    worth = coalition_worth(
        torch.cat([RETURNS, bad]), torch.cat([values, bad]), torch.cat([KL, bad]), mask, kl_weight=2.0
    )
    assert worth.item() == pytest.approx(0.3)
    assert coalition_worth(RETURNS, values, KL, ~YES).item() == 0.0


@pytest.mark.parametrize("weights", [{"ev_weight": -1.0}, {"kl_weight": math.inf}, {"kl_weight": math.nan}])
def test_worth_refuses_nonsense(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(weights))} must be a finite number"):
        coalition_worth(RETURNS, RETURNS, KL, YES, **weights)


def test_moving_average_by_hand() -> None:
    average = MovingAverage(0.9).updated({"rgb": 1.0}).updated({"rgb": 3.0})
    # (0.9 * 0.1 * 1 + 0.1 * 3) / (1 - 0.81) = 0.39 / 0.19
    assert average.means(["rgb"]) == pytest.approx([39 / 19])


def test_a_sense_that_joins_later_is_not_pulled_to_zero() -> None:
    average = MovingAverage(0.9)
    for _ in range(50):
        average = average.updated({"rgb": 2.0})
    average = average.updated({"rgb": 2.0, "speech": 5.0})
    assert average.means(["speech", "rgb", "depth"]) == pytest.approx([5.0, 2.0, 0.0])
    unmoved = average.updated({"speech": math.nan, "rgb": math.inf})
    assert unmoved == average


def test_moving_average_goes_through_a_checkpoint_bit_for_bit() -> None:
    average = MovingAverage(0.7)
    for i in range(9):
        average = average.updated({"rgb": 1 / (i + 3), "instruction": math.sin(i)})
    again = MovingAverage.from_json(json.loads(json.dumps(average.to_json())))
    assert again == average
    assert again.updated({"rgb": 0.1}) == average.updated({"rgb": 0.1})


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"decay": 0.9, "sums": [1], "weights": {}},
        {"decay": 0.9, "sums": {"rgb": "x"}, "weights": {"rgb": 1.0}},
        {"decay": 0.9, "sums": {"rgb": 1.0}, "weights": {}},
        {"decay": 0.9, "sums": {"rgb": 1.0}, "weights": {"rgb": 0.0}},
        {"decay": 1.0, "sums": {}, "weights": {}},
    ],
)
def test_a_damaged_average_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"found"):
        MovingAverage.from_json(values)


def test_z_scores_by_hand() -> None:
    # mean 2, population std sqrt(2 / 3) = 0.8164966; 1 / 0.8164966 = 1.2247449
    z = z_scores(torch.tensor([3.0, 2.0, 1.0]))
    assert z.tolist() == pytest.approx([1.2247449, 0.0, -1.2247449])


@pytest.mark.parametrize("phi", [[0.1] * 3, [1e-9] * 7, [-12345.678] * 5, [0.3], [0.0, 0.0]])
def test_equal_contributions_have_no_score(phi: list[float]) -> None:
    assert z_scores(torch.tensor(phi)).tolist() == [0.0] * len(phi)


def test_gates_by_hand() -> None:
    z = torch.tensor([1.2247449, 0.0, -1.2247449])
    # exp(-z) = 0.2938326, 1, 3.4033012, sum 4.6971338; times 3 / sum
    free = softmax_gates(z, tau=1.0, k_min=0.0, k_max=3.0)
    assert free.tolist() == pytest.approx([0.1876672, 0.6386873, 2.1736455], abs=1e-5)
    clipped = softmax_gates(z, tau=1.0, k_min=0.5, k_max=2.0)
    assert clipped.tolist() == pytest.approx([0.5, 0.6386873, 2.0], abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_no_gating_is_exactly_one(dtype: torch.dtype) -> None:
    for senses in range(1, 65):
        ones = torch.ones(senses, dtype=dtype)
        z = torch.randn(senses, dtype=dtype) * 3
        assert torch.equal(softmax_gates(z, tau=math.inf, k_min=0.1, k_max=2.0), ones)
        assert torch.equal(softmax_gates(0 * z, tau=0.3, k_min=0.1, k_max=2.0), ones)


@given(FLOATS, st.floats(0.01, 100))
def test_gates_are_fair_and_finite(phi: list[float], tau: float) -> None:
    contributions = torch.tensor(phi, dtype=torch.float64)
    z = z_scores(contributions)
    free = softmax_gates(z, tau=tau, k_min=0.0, k_max=100.0)
    assert free.mean().item() == pytest.approx(1.0)
    order = contributions.argsort(stable=True)
    assert (free[order].diff() <= 1e-9).all()  # whoever contributes more learns no faster
    kept = softmax_gates(z, tau=tau, k_min=0.25, k_max=1.5)
    assert kept.min() >= 0.25
    assert kept.max() <= 1.5


@pytest.mark.parametrize(
    ("scores", "alpha", "expected"),
    [
        # rho = 0.6 / 0.3 = 2, tanh(0.5 * 2) = 0.7615942; the weaker one is left alone
        ([0.6, 0.3], 0.5, [0.2384058, 1.0]),
        # rho = 0.9 / 0.3 = 3, tanh(0.1 * 3) = 0.2913126; the others: 0.3 / 0.6 < 1
        ([0.9, 0.3, 0.3], 0.1, [0.7086874, 1.0, 1.0]),
        ([0.5, 0.5], 0.8, [1.0, 1.0]),
        ([0.0, 0.0], 0.8, [1.0, 1.0]),
        ([-1.0, -2.0], 0.8, [1.0, 1.0]),
        ([1.0, 0.0, -3.0], 0.8, [0.05, 1.0, 1.0]),  # infinitely far ahead
        ([0.7], 0.8, [1.0]),
        ([0.9, 0.1], 0.0, [1.0, 1.0]),
    ],
)
def test_ogm_ge_by_hand(scores: list[float], alpha: float, expected: list[float]) -> None:
    gates = ogm_ge(torch.tensor(scores), alpha=alpha, k_min=0.05)
    assert gates.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("improvements", "expected"),
    [
        # 1.3 * (4 - 3) / 4 and 1.3 * (4 - 1) / 4
        ([3.0, 1.0], [0.325, 0.975]),
        ([2.0, 1.0, 1.0], [0.65, 0.975, 0.975]),
        ([1.0, -1.0], [0.1, 1.2]),  # shares 1 and 0: 0 and 1.3, clipped
        ([-1.0, -2.0, 0.0], [1.3 * 2 / 3] * 3),  # nobody improved: equal shares
        ([1e-44, 1e-44], [0.65, 0.65]),
        ([1e38, 3e38], [0.975, 0.325]),
        ([5.0], [1.0]),
    ],
)
def test_cggm_by_hand(improvements: list[float], expected: list[float]) -> None:
    gates = cggm(torch.tensor(improvements), rho=1.3, k_min=0.1, k_max=1.2)
    assert gates.tolist() == pytest.approx(expected, abs=1e-6)


@given(FLOATS)
def test_gates_from_the_literature_stay_in_bounds(numbers: list[float]) -> None:
    for gates in (
        ogm_ge(torch.tensor(numbers), alpha=0.5, k_min=0.1),
        cggm(torch.tensor(numbers), k_min=0.1, k_max=1.5),
    ):
        assert gates.shape == (len(numbers),)
        assert ((gates >= 0.1) & (gates <= 1.5)).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_gates_keep_the_dtype(dtype: torch.dtype) -> None:
    x = torch.tensor([1.0, 2.0, 4.0], dtype=dtype)
    found: list[Tensor] = [z_scores(x), ogm_ge(x, alpha=0.1), cggm(x)]
    found.append(softmax_gates(x, tau=1.0, k_min=0.1, k_max=2.0))
    assert [one.dtype for one in found] == [dtype] * 4


def test_gates_refuse_nonsense() -> None:
    z = torch.zeros(2)
    for tau in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="tau must be above 0"):
            softmax_gates(z, tau=tau, k_min=0.5, k_max=2.0)
    for k_min, k_max in ((-0.1, 2.0), (1.1, 2.0), (0.5, 0.9)):
        with pytest.raises(ValueError, match="so that a gate can be 1"):
            softmax_gates(z, tau=1.0, k_min=k_min, k_max=k_max)
    with pytest.raises(ValueError, match="alpha must be"):
        ogm_ge(z, alpha=-0.1)
    with pytest.raises(ValueError, match="rho must be"):
        cggm(z, rho=0.0)


def test_a_small_spread_is_not_blown_up() -> None:
    phi = torch.tensor([0.30, 0.32, 0.28])  # std 0.0163, a sixth of the least spread
    torch.testing.assert_close(z_scores(phi, min_std=0.1), torch.tensor([0.0, 0.2, -0.2]))
    torch.testing.assert_close(z_scores(phi * 100, min_std=0.1), z_scores(phi * 100))
    with pytest.raises(ValueError, match="min_std"):
        z_scores(phi, min_std=-1.0)
