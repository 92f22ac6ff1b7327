"""Under the mixed reward, doing nothing never outranks solving: played out in the arena."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from sensorium.envs.embodied import EmbodiedEnvConfig, MultiModalVectorEnv
from sensorium.envs.embodied.arena.expert import ArenaExpert
from sensorium.rewards import MixedReward, MixedRewardConfig, divergence_term, safety_term, task_term

EPISODES, MAX_STEPS = 20, 80
Act = Callable[[Mapping[str, Any], NDArray[np.bool_]], NDArray[np.int64]]


class Played(NamedTuple):
    returns: NDArray[np.float64]
    solved: NDArray[np.bool_]
    violations: NDArray[np.int64]


def play(act: Act, *, divergence: float, config: MixedRewardConfig) -> Played:
    """One episode in each of 20 worlds; returns are sums of the mixed reward."""
    env = MultiModalVectorEnv(
        EmbodiedEnvConfig(
            task="arena/find",
            visual_obs=("rgb", "depth"),
            text_obs=("instruction",),
            proprio=True,
            max_episode_steps=MAX_STEPS,
        ),
        EPISODES,
    )
    mix = MixedReward.from_config(config)
    observation, _ = env.reset(seed=11)
    active = np.ones(EPISODES, np.bool_)
    returns, solved, violations = np.zeros(EPISODES), ~active, np.zeros(EPISODES, np.int64)
    while active.any():
        observation, reward, terminated, truncated, info = env.step(act(observation, active))
        steps, now = info["episode_length"], active & (info["status"] == "success")
        terms = {
            "task": task_term(reward, active),
            "divergence": divergence_term(np.full(EPISODES, divergence), active, steps, max_steps=MAX_STEPS),
            "safety": safety_term(
                info["violated"] & active, now, steps, info["episode_violations"], max_steps=MAX_STEPS
            ),
        }
        returns += mix(terms).total
        solved |= now
        violations[active] = info["episode_violations"][active]
        active = active & ~terminated & ~truncated
    env.close()
    return Played(returns, solved, violations)


def turn_on_the_spot(readings: Mapping[str, Any], active: NDArray[np.bool_]) -> NDArray[np.int64]:
    """There is no action that does nothing; this one touches nothing, and is never unsafe."""
    return np.ones(EPISODES, np.int64)


@pytest.fixture(scope="module")
def config() -> MixedRewardConfig:
    return MixedRewardConfig()


@pytest.fixture(scope="module")
def idle(config: MixedRewardConfig) -> Played:
    """At its best: its policy is the same whatever it perceives."""
    return play(turn_on_the_spot, divergence=0.0, config=config)


@pytest.fixture(scope="module")
def expert(config: MixedRewardConfig) -> Played:
    """At its worst: each sense alone says something else entirely."""
    return play(ArenaExpert("arena/find", EPISODES).act, divergence=math.log(2), config=config)


def test_each_solved_episode_outranks_each_idle_one(idle: Played, expert: Played) -> None:
    assert expert.solved.mean() >= 0.8
    assert not idle.solved.any()
    assert expert.returns[expert.solved].min() > idle.returns.max() + 0.5


def test_idling_is_safe_and_earns_nothing_for_it(idle: Played) -> None:
    assert not idle.violations.any()
    assert idle.returns == pytest.approx(np.full(EPISODES, -0.01 * MAX_STEPS), abs=1e-5)  # the cost of time


def test_the_arena_tells_what_was_unsafe(config: MixedRewardConfig) -> None:
    """Walking on whatever comes runs into walls, and pays for it."""
    blind = play(lambda readings, active: np.zeros(EPISODES, np.int64), divergence=0.0, config=config)
    careless = play(
        lambda readings, active: np.zeros(EPISODES, np.int64),
        divergence=0.0,
        config=MixedRewardConfig(safety=0.0),
    )
    assert blind.violations.max() > 20
    cost = 0.5 * np.minimum(blind.violations, MAX_STEPS) / MAX_STEPS
    assert (careless.returns - blind.returns)[~blind.solved] == pytest.approx(cost[~blind.solved], abs=1e-5)
