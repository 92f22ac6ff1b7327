from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sensorium.rewards import divergence_term, safety_term, task_term


def yes(*flags: int) -> NDArray[np.bool_]:
    return np.array(flags, np.bool_)


def numbers(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def counts(*values: int) -> NDArray[np.int64]:
    return np.array(values)


def test_the_task_pays_for_steps_that_were_taken() -> None:
    found = task_term(numbers(1.5, np.nan, -2.0), yes(1, 0, 1))
    assert found.tolist() == [1.5, 0.0, -2.0]
    assert found.dtype == np.float32


def test_divergence_by_hand() -> None:
    # 0.6 / 20; beyond the horizon and where nobody acted, nothing
    found = divergence_term(numbers(0.6, 0.6, np.nan), yes(1, 1, 0), counts(20, 21, 3), max_steps=20)
    assert found.tolist() == pytest.approx([0.03, 0.0, 0.0])


def test_safety_by_hand() -> None:
    found = safety_term(
        violated=yes(0, 1, 0, 1, 1),
        solved=yes(0, 0, 1, 1, 0),
        steps=counts(4, 4, 10, 4, 25),
        violations=counts(0, 2, 3, 4, 21),
        max_steps=20,
        violation_cost=0.5,
    )
    # A safe step pays nothing; a violation costs 0.5 / 20; solving pays 1 - 3/10; solving with a violation at
    # every step pays 1 - 4/4 less that step's cost; the 21st violation costs nothing more.
    assert found.tolist() == pytest.approx([0.0, -0.025, 0.7, -0.025, 0.0])


def test_safety_of_worlds_at_their_beginning() -> None:
    assert safety_term(yes(0), yes(0), counts(0), counts(0), max_steps=5).tolist() == [0.0]


@pytest.mark.parametrize(
    ("violated", "steps", "violations"), [([0], [3], [4]), ([1], [3], [0]), ([0], [3], [-1])]
)
def test_impossible_counts_name_the_world(
    violated: list[int], steps: list[int], violations: list[int]
) -> None:
    with pytest.raises(ValueError, match=r"world 1 has -?\d in 3 steps"):
        safety_term(yes(0, *violated), yes(0, 0), counts(3, *steps), counts(0, *violations), max_steps=9)


@pytest.mark.parametrize("changes", [{"max_steps": 0}, {"violation_cost": -1.0}, {"violation_cost": np.inf}])
def test_settings_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        safety_term(yes(0), yes(0), counts(1), counts(0), **{"max_steps": 9, **changes})


def test_shapes_that_differ_are_named() -> None:
    with pytest.raises(ValueError, match=r"'rewards': \(2,\), 'active': \(1,\)"):
        task_term(numbers(1, 2), yes(1))
    with pytest.raises(ValueError, match="max_steps must be at least 1"):
        divergence_term(numbers(1), yes(1), counts(1), max_steps=0)
