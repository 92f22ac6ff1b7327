import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.core import ConfigError, parse_config
from sensorium.rewards import (
    MixedReward,
    MixedRewardConfig,
    divergence_term,
    largest_penalty,
    safety_term,
    task_term,
)


class PlayedStep(NamedTuple):
    """What a policy did in one step."""

    violated: bool
    divergence: float


def episode_return(
    played: Sequence[PlayedStep],
    task_return: float,
    *,
    solved: bool,
    config: MixedRewardConfig,
    max_steps: int,
) -> float:
    """Undiscounted return of one episode under the mixed reward; the task pays at the end."""
    reward, total, violations = MixedReward.from_config(config), 0.0, 0
    for number, step in enumerate(played, 1):
        violations += step.violated
        last = number == len(played)
        active, steps = np.array([True]), np.array([number])
        terms = {
            "task": task_term(np.array([task_return if last else 0.0]), active),
            "divergence": divergence_term(np.array([step.divergence]), active, steps, max_steps=max_steps),
            "safety": safety_term(
                np.array([step.violated]),
                np.array([solved and last]),
                steps,
                np.array([violations]),
                max_steps=max_steps,
                violation_cost=config.violation_cost,
            ),
        }
        total += float(reward(terms).total[0])
    return total


def test_mixing_by_hand() -> None:
    reward = MixedReward.from_config(MixedRewardConfig())
    terms = {"task": [1.0, 0.0], "divergence": [0.2, 0.5], "safety": [0.8, -0.1]}
    parts = reward({name: np.array(values, np.float64) for name, values in terms.items()})
    # 1 - 0.1 * 0.2 + 0.5 * 0.8 and 0 - 0.1 * 0.5 - 0.5 * 0.1
    assert parts.total.tolist() == pytest.approx([1.38, -0.1])
    assert parts.total.dtype == np.float32
    assert parts.terms["divergence"].tolist() == pytest.approx([-0.02, -0.05])
    assert sum(parts.terms.values()).tolist() == pytest.approx(parts.total.tolist())  # type: ignore[union-attr]


def test_terms_of_weight_zero_may_be_left_out() -> None:
    reward = MixedReward({"task": 2.0, "divergence": 0.0})
    assert reward({"task": np.array([3.0])}).total.tolist() == [6.0]
    assert list(reward({"task": np.array([3.0])}).terms) == ["task"]


def test_wrong_terms_are_refused() -> None:
    reward = MixedReward({"task": 1.0, "safety": 0.5})
    task = np.array([1.0, 2.0])
    with pytest.raises(ConfigError, match=r"'safty'.*Did you mean 'safety'"):
        reward({"task": task, "safty": task})
    with pytest.raises(ConfigError, match="lacks safety"):
        reward({"task": task})
    with pytest.raises(ValueError, match=r"'safety': \(1,\)"):
        reward({"task": task, "safety": np.array([1.0])})
    with pytest.raises(ValueError, match="'safety' is nan in world 1"):
        reward({"task": task, "safety": np.array([1.0, math.nan])})


@pytest.mark.parametrize("weights", [{}, {"task": math.nan}, {"task": 1.0, "safety": math.inf}])
def test_wrong_weights_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="at least one reward term"):
        MixedReward(weights)


@pytest.mark.parametrize("values", [{"divergence": 0.1}, {"safety": -0.5}, {"task": math.inf}, {"bonus": 1}])
def test_a_config_keeps_the_signs(values: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        parse_config(MixedRewardConfig, values)


def test_defaults_leave_a_margin_for_a_task_that_pays_one() -> None:
    # Discrete actions: 0.1 * 0.6931472 + 0.5 * 1
    assert largest_penalty(MixedRewardConfig(), max_divergence=math.log(2)) == pytest.approx(0.5693147)
    # With two continuous dimensions: 0.1 * 3 * 0.6931472 + 0.5
    assert largest_penalty(MixedRewardConfig(), max_divergence=3 * math.log(2)) < 1


STEPS = st.builds(PlayedStep, st.booleans(), st.floats(0.0, math.log(2)))
CONFIGS = st.builds(
    MixedRewardConfig,
    task=st.floats(0.1, 3.0),
    divergence=st.floats(-2.0, 0.0),
    safety=st.floats(0.0, 2.0),
    violation_cost=st.floats(0.0, 2.0),
)


@given(
    idle=st.lists(STEPS, min_size=1, max_size=60),
    solving=st.lists(STEPS, min_size=1, max_size=60),
    config=CONFIGS,
    max_steps=st.integers(1, 40),
    idle_return=st.floats(-5.0, 5.0),
)
def test_doing_nothing_never_outranks_solving(
    idle: list[PlayedStep],
    solving: list[PlayedStep],
    config: MixedRewardConfig,
    max_steps: int,
    idle_return: float,
) -> None:
    """Also where the idle agent is perfectly safe and the other one violates at every step."""
    gap = (largest_penalty(config, max_divergence=math.log(2)) + 1e-3) / config.task
    best_idle = [PlayedStep(violated=False, divergence=0.0) for _ in idle]
    worst = [PlayedStep(violated=True, divergence=math.log(2)) for _ in solving]
    for lazy in (idle, best_idle):
        earned = episode_return(lazy, idle_return, solved=False, config=config, max_steps=max_steps)
        for busy in (solving, worst):
            other = episode_return(busy, idle_return + gap, solved=True, config=config, max_steps=max_steps)
            assert other > earned


def test_the_margin_is_as_small_as_it_can_be() -> None:
    """The worst solver over the whole horizon loses exactly that much."""
    config = MixedRewardConfig()
    worst = [PlayedStep(violated=True, divergence=math.log(2))] * 40
    earned = episode_return(worst, 1.0, solved=True, config=config, max_steps=40)
    assert earned == pytest.approx(1.0 - largest_penalty(config, max_divergence=math.log(2)), abs=1e-5)


def test_a_safe_solver_earns_the_bonus_once() -> None:
    safe = [PlayedStep(violated=False, divergence=0.0)] * 500
    config = MixedRewardConfig()
    assert episode_return(safe, 1.0, solved=True, config=config, max_steps=500) == pytest.approx(1.5)
    assert episode_return(safe, 0.0, solved=False, config=config, max_steps=500) == 0.0
