import pytest
import torch

from sensorium.algorithms.group_advantages import (
    group_advantages,
    group_statistics,
    no_signal,
    normalised_over_tokens,
    singleton_share,
)
from sensorium.algorithms.ppo import normalise_advantages

REWARDS = torch.tensor([1.0, 0, 0, 1, 0.25, 0.75])
GROUPS = torch.tensor([7, 7, 7, 7, 3, 3])


@pytest.mark.parametrize(
    ("estimator", "wanted"),
    [
        ("grpo", [0.86602, -0.86602, -0.86602, 0.86602, -0.7071, 0.7071]),
        ("dr_grpo", [0.5, -0.5, -0.5, 0.5, -0.25, 0.25]),
        ("rloo", [0.666667, -0.666667, -0.666667, 0.666667, -0.5, 0.5]),
    ],
)
def test_values_of_reference_implementations(estimator, wanted):
    made = group_advantages(REWARDS, GROUPS, estimator=estimator)
    torch.testing.assert_close(made, torch.tensor(wanted), atol=1e-5, rtol=0)


def test_rows_may_stand_in_any_order():
    order = torch.tensor([4, 0, 5, 2, 1, 3])
    made = group_advantages(REWARDS[order], GROUPS[order])
    torch.testing.assert_close(made, group_advantages(REWARDS, GROUPS)[order])


def test_reinforce_with_baseline_whitens_over_all_tokens():
    lengths = torch.tensor([3, 3, 2, 3, 3, 3])
    mask = torch.arange(3) < lengths[:, None]
    spread = group_advantages(REWARDS, GROUPS, estimator="dr_grpo")[:, None].expand(6, 3)
    made = normalise_advantages(spread, mask)
    wanted = torch.tensor([1.06733, -1.20075, -1.20075, 1.06733, -0.63373, 0.50031])
    torch.testing.assert_close(made[:, 0], wanted, atol=1e-5, rtol=0)
    assert made[2, 2] == 0
    by_row = normalised_over_tokens(group_advantages(REWARDS, GROUPS, estimator="dr_grpo"), lengths)
    torch.testing.assert_close(by_row, wanted, atol=1e-5, rtol=0)
    nothing = normalised_over_tokens(REWARDS, torch.zeros(6, dtype=torch.long))
    assert nothing.tolist() == [0] * 6


def test_failed_rows_are_no_part_of_a_baseline_even_when_nan():
    rewards = torch.tensor([1.0, 0, float("nan"), float("nan")])
    groups = torch.tensor([0, 0, 0, 1])
    mask = torch.tensor([True, True, False, False])
    made = group_advantages(rewards, groups, mask, estimator="dr_grpo")
    assert made.tolist() == [0.5, -0.5, 0.0, 0.0]
    assert group_statistics(rewards, groups, mask).size.tolist() == [2, 2, 2, 0]


@pytest.mark.parametrize("estimator", ["grpo", "dr_grpo", "rloo"])
def test_a_group_of_one_has_no_advantage(estimator):
    made = group_advantages(torch.tensor([5.0, 1, 0]), torch.tensor([0, 1, 1]), estimator=estimator)
    assert made[0] == 0
    assert torch.isfinite(made).all()


def test_groups_without_signal_are_told():
    rewards = torch.tensor([1.0, 1, 0, 1, 3, 2])
    groups = torch.tensor([0, 0, 1, 1, 2, 3])
    mask = torch.tensor([True] * 5 + [False])
    assert no_signal(rewards, groups, mask).tolist() == [True, True, False, False, True, True]
    assert singleton_share(groups, mask) == pytest.approx(1 / 5)
    assert singleton_share(groups[:0]) == 0.0


def test_a_group_that_is_all_alike_has_advantages_of_exactly_0():
    alike = torch.full((7,), 0.2)  # whose float32 sum is not 7 times 0.2
    assert (group_advantages(alike, torch.zeros(7).long()) == 0).all()
    assert group_statistics(alike, torch.zeros(7).long(), torch.ones(7).bool()).mean[0] == alike[0]
