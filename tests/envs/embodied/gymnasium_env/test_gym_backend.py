"""Episodes of any Gymnasium environment: seeds, ends, success, failures."""

import json
import logging
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from odd_gym import ID, Odd, register_odd

from sensorium.core import ConfigError, EnvError
from sensorium.envs.embodied import Backend, MultiModalGym, MultiModalVectorEnv

TASK, DRAWN = f"gym/{ID}", f"gym/{ID.replace('Odd', 'DrawnOdd')}"
STATE: dict[str, Any] = {"visual_obs": [], "proprio": True}


@pytest.fixture(autouse=True)
def odd() -> None:
    register_odd()


def make(task: str = TASK, num_envs: int = 1, options: Any = None, **settings: Any) -> MultiModalVectorEnv:
    senses = {**STATE, "backend_options": options or {}} | settings
    env = MultiModalGym(task, num_envs=num_envs, **senses)
    assert isinstance(env, MultiModalVectorEnv)
    return env


def odd_env(num_envs: int = 1, options: Any = None, **kwargs: Any) -> MultiModalVectorEnv:
    return make(TASK, num_envs, {"kwargs": kwargs, **(options or {})})


def episode(env: MultiModalVectorEnv, seed: int, num_steps: int = 5) -> list[bytes]:
    """What is perceived and earned with fixed actions."""
    observation, _ = env.reset(seed=seed)
    course = [observation["proprio"].tobytes()]
    env.action_space.seed(0)
    for _ in range(num_steps):
        observation, reward, *_ = env.step(env.action_space.sample())
        course += [observation["proprio"].tobytes(), reward.tobytes()]
    return course


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("gym/CartPole-v1", {"visual_obs": ["rgb"], "image_size": 8}),
        ("gym/Pendulum-v1", {"action_space": "continuous"}),
        ("gym/FrozenLake-v1", {}),
        ("gym/minigrid:MiniGrid-GoToDoor-5x5-v0", {"visual_obs": ["rgb"], "text_obs": ["instruction"]}),
    ],
)
def test_gymnasium_checker_passes(task: str, settings: dict[str, Any]) -> None:
    if "minigrid" in task:
        pytest.importorskip("minigrid")
    env = MultiModalGym(task, **{**STATE, **settings}, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*A Box observation space (max|min)imum value is -?inf.*")
        warnings.filterwarnings("ignore", message=".*not wrapped.*|.*spec.*")
        check_env(env, skip_render_check=True)
    picture = env.render()
    assert picture is not None
    assert picture.dtype == np.uint8
    assert max(picture.shape) <= 240
    assert task != "gym/CartPole-v1" or picture.shape == (160, 240, 3)  # of 400 x 600
    assert isinstance(env.worlds.backend, Backend)
    assert json.loads(json.dumps(env.worlds.backend.describe(0)))["task"] == task
    env.close()
    env.close()  # twice is harmless


@pytest.mark.parametrize("task", ["gym/CartPole-v1", "gym/Blackjack-v1", "gym/Acrobot-v1"])
def test_the_seed_alone_decides_an_episode(task: str) -> None:
    env, other = make(task, 3), make(task, 3)
    first = episode(env, seed=4)
    other.reset(seed=9)
    assert episode(other, seed=4) == first  # whatever ran before
    assert episode(env, seed=5) != first
    alone = make(task, 1)
    observation, _ = alone.reset(seed=5)  # world 1 of seed 4
    assert observation["proprio"].tobytes() in env.reset(seed=4)[0]["proprio"].tobytes()
    for one in (env, other, alone):
        one.close()


def test_worlds_that_are_not_active_stand_still() -> None:
    env = make("gym/CartPole-v1", 3)
    env.reset(seed=0)
    backend = env.worlds.backend
    before = np.array(backend.observe()["proprio"])
    step = backend.step(np.zeros(3, np.int64), None, np.array([True, False, True]))
    after = np.array(backend.observe()["proprio"])
    assert step.reward.tolist() == [1.0, 0.0, 1.0]
    assert (before != after).any(axis=1).tolist() == [True, False, True]
    reading: Any = backend.observe()["proprio"]
    reading.fill(0)
    np.testing.assert_array_equal(np.asarray(backend.observe()["proprio"]), after)  # fresh copies
    env.close()


def test_only_the_limit_of_the_config_counts() -> None:
    gymnasium.register("sensorium-tests/Short-v0", entry_point=Odd, max_episode_steps=3)
    try:
        assert make("gym/sensorium-tests/Short-v0").config.max_episode_steps == 3  # the default
        env = make("gym/sensorium-tests/Short-v0", max_episode_steps=5)
        env.reset(seed=0)
        ends = [bool(env.step(np.zeros(1, np.int64))[3][0]) for _ in range(5)]
        assert ends == [False] * 4 + [True]
    finally:
        gymnasium.registry.pop("sensorium-tests/Short-v0")


def test_an_environment_that_truncates_itself_is_believed() -> None:
    env = odd_env(2, ends=lambda n: (1.0, n == 3, n in (2, 3), {}))
    env.reset(seed=0)
    actions = np.zeros(2, np.int64)
    _, _, terminated, truncated, info = env.step(actions)
    assert not (terminated | truncated).any()
    _, _, terminated, truncated, info = env.step(actions)
    assert (terminated.tolist(), truncated.tolist()) == ([False] * 2, [True] * 2)
    assert info["status"].tolist() == ["truncated"] * 2  # no failure
    assert info["episode_return"].tolist() == [2.0, 2.0]
    _, reward, _, truncated, info = env.step(actions)  # begins the next episode
    assert (reward.tolist(), truncated.tolist()) == ([0.0, 0.0], [False, False])
    assert info["episode_length"].tolist() == [0, 0]


def test_terminated_and_truncated_at_once_is_terminated() -> None:
    env = odd_env(ends=lambda n: (-1.0, True, True, {}))
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(np.zeros(1, np.int64))
    assert (terminated[0], truncated[0], info["status"][0]) == (True, False, "failure")


@pytest.mark.parametrize(
    ("options", "ends", "status"),
    [
        ({}, lambda n: (1.0, n == 2, False, {}), "success"),
        ({}, lambda n: (0.0, n == 2, False, {}), "failure"),
        ({}, lambda n: (1.0, False, n == 2, {}), "truncated"),
        ({}, lambda n: (-1.0, n == 2, False, {"is_success": n == 2}), "success"),
        ({}, lambda n: (1.0, n == 2, False, {"success": np.False_}), "failure"),
        ({}, lambda n: (1.0, n == 2, False, {"is_success": False, "success": True}), "failure"),
        ({"success_key": "won"}, lambda n: (-1.0, n == 2, False, {"won": 1, "success": False}), "success"),
        ({"success_key": "won"}, lambda n: (1.0, n == 2, False, {"success": True}), "failure"),
        ({"success_return": 3.0}, lambda n: (1.5, n == 2, False, {"success": False}), "success"),
        ({"success_return": 3.1}, lambda n: (1.5, n == 2, False, {"success": True}), "failure"),
        ({"success_return": 3.0}, lambda n: (1.5, False, n == 2, {}), "success"),
    ],
)
def test_when_an_episode_is_solved(options: Any, ends: Callable[[int], Any], status: str) -> None:
    env = odd_env(options=options, ends=ends)
    env.reset(seed=0)
    assert env.step(np.zeros(1, np.int64))[4]["status"][0] == "running"
    assert env.step(np.zeros(1, np.int64))[4]["status"][0] == status


def test_a_registered_threshold_is_the_return_of_success(caplog: pytest.LogCaptureFixture) -> None:
    env = make("gym/CartPole-v1", options={"success_return": 4}, max_episode_steps=4)
    env.reset(seed=0)
    statuses = [env.step(np.array([n % 2]))[4]["status"][0] for n in range(4)]
    assert statuses[-1] == "success"  # at the step limit, too
    env = make("gym/CartPole-v1", max_episode_steps=4)
    assert "return reaches 475" in env.worlds.backend.describe(0)["solved_when"]
    assert "made for 500 steps; max_episode_steps is 4" in caplog.text  # it cannot be reached
    env.reset(seed=0)
    assert [env.step(np.array([n % 2]))[4]["status"][0] for n in range(4)][-1] == "truncated"


def broken_at(*steps: Any, times: int = 1) -> Callable[[Any], None]:
    """Raises at these steps, so many times in all."""
    left = [times]

    def breaks(when: Any) -> None:
        if when in steps and left[0] > 0:
            left[0] -= 1
            raise ZeroDivisionError("the engine stalled")

    return breaks


def test_a_world_that_raises_has_failed_and_is_made_anew(caplog: pytest.LogCaptureFixture) -> None:
    env = odd_env(2, breaks=broken_at(2))  # whichever world comes there first
    env.reset(seed=0)
    actions = np.zeros(2, np.int64)
    env.step(actions)
    before = env.worlds.backend.observe()["proprio"][0]
    with caplog.at_level(logging.WARNING):
        _, reward, terminated, truncated, info = env.step(actions)
    assert info["status"].tolist() == ["error", "running"]
    assert (terminated.tolist(), truncated.tolist()) == ([False, False], [True, False])
    assert reward.tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(env.worlds.backend.observe()["proprio"][0], before)  # its last reading
    assert "world 0 of gym/sensorium-tests/Odd-v0" in caplog.text
    assert "ZeroDivisionError: the engine stalled" in caplog.text
    _, _, _, _, info = env.step(actions)  # the next episode
    assert info["status"].tolist() == ["running", "running"]


def test_a_reset_that_raises_is_tried_again() -> None:
    env = odd_env(breaks=broken_at("reset", times=2))
    _, info = env.reset(seed=0)
    assert info["status"].tolist() == ["running"]


@pytest.mark.parametrize(("when", "doing"), [("reset", "reset"), (1, "step")])
def test_failures_in_a_row_end_the_run(when: Any, doing: str) -> None:
    env = odd_env(options={"max_failures": 3}, breaks=broken_at(when, times=9))

    def play() -> None:
        env.reset(seed=0)
        for _ in range(9):
            env.step(np.zeros(1, np.int64))

    with pytest.raises(
        EnvError,
        match=rf"World 0 of gym/sensorium-tests/Odd-v0 \(seed \d+\) raised an exception 3 times in a row "
        rf"\(max_failures\); the last time in {doing}\(\): ZeroDivisionError: the engine stalled",
    ):
        play()


def test_steps_that_work_forgive_earlier_failures() -> None:
    env = odd_env(options={"max_failures": 2}, breaks=broken_at(2, times=9))
    env.reset(seed=0)
    statuses = [env.step(np.zeros(1, np.int64))[4]["status"][0] for _ in range(9)]
    assert statuses == ["running", "error", "running"] * 3


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        (
            {"ends": lambda n: (float("nan"), False, False, {})},
            r"World 0 .*gave the reward nan.*RewardWrapper",
        ),
        ({"observed": lambda n: np.array([0.0, np.inf if n else 0.0])}, r"not finite .*obs\[1\]"),
        ({"observed": lambda n: np.zeros(2 + n)}, r"'obs' as float64 of shape \(3,\)"),
    ],
)
def test_numbers_that_no_policy_can_learn_from(kwargs: Any, says: str) -> None:
    env = odd_env(**kwargs)
    env.reset(seed=0)
    with pytest.raises(EnvError, match=says):
        env.step(np.zeros(1, np.int64))


def test_actions_arrive_as_the_environment_has_them() -> None:
    box, choice = spaces.Box(0.0, 10.0, (1,)), spaces.Discrete(3, start=5)
    space = spaces.Dict({"force": box, "tool": choice})
    seen: list[Any] = []

    def keep(n: int) -> Any:
        seen.append(n)
        return 1.0, False, False, {}

    env = MultiModalGym(
        TASK,
        **STATE,
        action_space="hybrid",
        backend_options={"kwargs": {"action_space": space, "ends": keep}},
    )
    env.reset(seed=0)
    env.step({"discrete": np.int64(2), "continuous": np.array([0.0], np.float32)})
    [world] = env.worlds.backend._worlds
    [action] = world._env.unwrapped.actions
    assert (int(action["tool"]), action["force"].tolist(), seen) == (7, [5.0], [1])
    with pytest.raises(
        ConfigError, match=r"no discrete actions; it offers hybrid: --env\.action_space hybrid"
    ):
        MultiModalGym(TASK, **STATE, backend_options={"kwargs": {"action_space": space}})


def test_wrappers_go_around_it_in_order() -> None:
    observed = {"kwargs": {"observed": lambda n: np.ones(2, np.float32)}}
    wrappers = ["odd_gym:Doubled", {"odd_gym:Doubled": {"factor": 3.0}}]
    env = make(options={**observed, "wrappers": wrappers})
    observation, _ = env.reset(seed=0)
    assert observation["proprio"].tolist() == [[6.0, 6.0]]


def test_a_picture_that_cannot_be_drawn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from odd_gym import DrawnOdd

    def render(self: Any) -> Any:
        raise RuntimeError("no screen")

    monkeypatch.setattr(DrawnOdd, "render", render)
    with pytest.raises(
        ConfigError,
        match=r"rgb of gym/.* renders, and that failed: RuntimeError: no screen.*--env\.proprio true",
    ):
        make(DRAWN, visual_obs=["rgb"])
    env = make(DRAWN)
    env.reset(seed=0)
    assert env.worlds.backend.render(0).shape == (64, 64, 3)  # a report goes on without
    assert "cannot be drawn: RuntimeError: no screen" in caplog.text


def test_an_environment_that_cannot_be_closed_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def close(self: Any) -> None:
        raise RuntimeError("no viewer")

    env = odd_env()
    monkeypatch.setattr(Odd, "close", close)
    env.close()
    assert "RuntimeError: no viewer" in caplog.text


def test_the_seed_that_is_told_makes_the_same_episode_in_gymnasium() -> None:
    env = make("gym/CartPole-v1")
    observation, _ = env.reset(seed=0)
    seed = env.worlds.backend.describe(0)["seed"]
    theirs, _ = gymnasium.make("CartPole-v1").reset(seed=seed)
    np.testing.assert_array_equal(observation["proprio"][0], theirs)
    env.close()
