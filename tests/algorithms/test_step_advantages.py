import pytest
import torch

from sensorium.algorithms.group_advantages import group_advantages
from sensorium.algorithms.step_advantages import (
    StepRows,
    gigpo_advantages,
    pairs_as_groups,
    step_group_advantages,
    step_returns,
)

# Episode 1 passes A, B, C with rewards 0, 0, 10; episode 2 passes A, C with 0, 0.
ROWS = StepRows(
    rewards=torch.tensor([0.0, 0, 10, 0, 0]),
    trajectory=torch.tensor([1, 1, 1, 2, 2]),
    step=torch.tensor([0, 1, 2, 0, 1]),
    task=torch.zeros(5, dtype=torch.long),
)
STATES = torch.tensor([0, 1, 2, 0, 2])


def shuffled(rows, states, order):
    return StepRows(*(column[order] for column in rows)), states[order]


def test_returns_are_discounted_within_their_episode():
    torch.testing.assert_close(step_returns(ROWS, 0.95), torch.tensor([9.025, 9.5, 10, 0, 0]))


@pytest.mark.parametrize(
    ("scale", "per_step", "wanted"),
    [
        (False, True, [8.5125, 4, 9, -10.5125, -11]),
        (True, True, [1.4374, 0.7303, 1.4374, -1.80255, -1.80255]),
        (False, False, [9.5125, 5, 10, -9.5125, -10]),
    ],
)
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [3, 1, 4, 0, 2]])
def test_group_in_group_values(scale, per_step, wanted, order):
    order = torch.tensor(order)
    rows, states = shuffled(ROWS, STATES, order)
    made = gigpo_advantages(rows, states, scale=scale, per_step_baseline=per_step)
    torch.testing.assert_close(made, torch.tensor(wanted)[order], atol=1e-4, rtol=0)


def test_without_the_step_term_it_is_a_trajectory_advantage():
    made = gigpo_advantages(ROWS, STATES, step_weight=0.0)
    whole = group_advantages(torch.tensor([10.0, 0]), torch.tensor([0, 0]))
    torch.testing.assert_close(made, whole[ROWS.trajectory - 1])


def test_the_same_state_of_another_task_is_another_state():
    task = torch.tensor([0, 0, 0, 1, 1])
    made = gigpo_advantages(ROWS._replace(task=task), STATES)
    assert made.tolist() == [0.0] * 5  # every group has one member


def test_steps_of_one_task_and_number_are_compared():
    groups = pairs_as_groups(ROWS.task, ROWS.step)
    made = step_group_advantages(torch.tensor([1.0, 2, 9, 3, 4]), groups, scale=False)
    assert made.tolist() == [-1.0, -1.0, 0.0, 1.0, 1.0]


def test_missing_steps_earn_nothing_but_keep_their_time():
    rows = StepRows(
        rewards=torch.tensor([0.0, 1.0]),
        trajectory=torch.tensor([0, 0]),
        step=torch.tensor([0, 3]),
        task=torch.zeros(2, dtype=torch.long),
    )
    torch.testing.assert_close(step_returns(rows, 0.5), torch.tensor([0.125, 1.0]))
