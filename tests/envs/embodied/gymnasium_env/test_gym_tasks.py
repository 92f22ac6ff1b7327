"""Which environments there are, and what is said of those there are not."""

from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium import spaces
from odd_gym import ID, Odd, register_odd

from sensorium.core import ActionKind, ConfigError, MissingDependencyError
from sensorium.envs.embodied import MultiModalGym, find_task, list_tasks
from sensorium.envs.embodied.gymnasium_env.tasks import TASKS

STATE: dict[str, Any] = {"visual_obs": [], "proprio": True}


def test_any_registered_id_is_a_task() -> None:
    task = TASKS["gym/CartPole-v1"]
    assert task == find_task("gym/CartPole-v1")
    assert (task.visual_obs, task.text_obs, task.proprio) == (("rgb",), (), True)
    assert (task.action_spaces, task.default_max_steps) == ((ActionKind.DISCRETE,), 500)
    assert "the return reaches 475" in task.summary
    assert "gym/Pendulum-v1" in TASKS
    assert "gym/CartPole" in TASKS  # the newest version
    unknown = ("gym/CartPol-v1", "arena/find", "gym/nowhere_at_all:X-v0", "gym/", 3)
    assert not any(name in TASKS for name in unknown)


def test_they_are_not_listed() -> None:
    assert list(TASKS) == []
    assert not any(name.startswith("gym/") for name in list_tasks())


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("gym/CartPol-v1", r"no environment 'CartPol-v1': .*Did you mean: `CartPole`.*gym/MODULE:CartPol-v1"),
        ("gym/CartPole-v7", r"version `v7`.*provides versioned environments: \[ `v0`, `v1` \]"),
        ("gym/", r"written gym/ID, e\.g\. gym/CartPole-v1"),
        ("gym/a:b:c-v0", r"written gym/ID or gym/MODULE:ID"),
        ("gym/not a name", r"no environment 'not a name'"),
    ],
)
def test_unknown_ids(task: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        find_task(task)


def test_modules_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        MissingDependencyError,
        match=r"gym/nowhere_at_all:X-v0 needs the module nowhere_at_all.*nowhere-at-all.*PYTHONPATH",
    ):
        find_task("gym/nowhere_at_all:X-v0")
    (tmp_path / "broken_worlds.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"Importing broken_worlds .*failed: ZeroDivisionError"):
        find_task("gym/broken_worlds:X-v0")


def test_a_module_of_ones_own_registers_its_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_worlds.py").write_text(
        "import gymnasium\ngymnasium.register('Own-v0', entry_point='odd_gym:Odd', max_episode_steps=7)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert find_task("gym/own_worlds:Own-v0").default_max_steps == 7
        env = MultiModalGym("gym/own_worlds:Own-v0", **STATE)
        env.reset(seed=0)
        env.close()
    finally:
        gymnasium.registry.pop("Own-v0", None)


def test_packages_known_by_their_ids_are_imported() -> None:
    pytest.importorskip("minigrid")
    assert "gym/MiniGrid-Empty-5x5-v0" in TASKS


def test_what_a_task_offers_depends_on_its_options() -> None:
    register_odd()
    task = f"gym/{ID}"
    continuous = {"kwargs": {"action_space": spaces.Box(-1, 1, (2,))}}
    assert find_task(task).action_spaces == (ActionKind.DISCRETE,)
    assert find_task(task, continuous).action_spaces == (ActionKind.CONTINUOUS,)
    env = MultiModalGym(task, **STATE, action_space="continuous", backend_options=continuous)
    assert env.action_space.shape == (2,)


def test_an_id_that_is_registered_anew_is_looked_at_anew() -> None:
    name = "sensorium-tests/Changed-v0"
    try:
        gymnasium.register(name, entry_point=Odd)
        assert find_task(f"gym/{name}").action_spaces == (ActionKind.DISCRETE,)
        gymnasium.registry.pop(name)
        gymnasium.register(name, entry_point=Odd, kwargs={"action_space": spaces.Box(-1, 1, (2,))})
        assert find_task(f"gym/{name}").action_spaces == (ActionKind.CONTINUOUS,)
    finally:
        gymnasium.registry.pop(name, None)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kwarg": {}}, r"Unknown setting 'kwarg'\. Did you mean 'kwargs'"),
        ({"kwargs": {"nonsense": 1}}, r"cannot be made with the arguments \{'nonsense': 1\}: TypeError"),
        ({"kwargs": {"render_mode": "human"}}, r"must not hold render_mode: pictures are taken"),
        ({"kwargs": {"max_episode_steps": 9}}, r"set env\.max_episode_steps"),
        ({"success_key": "won", "success_return": 1}, r"two rules of success; set one"),
        ({"wrappers": ["Doubled"]}, r"written module:Class or .*found 'Doubled'"),
        ({"wrappers": ["odd_gym:Tripled"]}, r"wrapper odd_gym:Tripled does not exist"),
        ({"wrappers": [{"odd_gym:Doubled": {"by": 2}}]}, r"odd_gym:Doubled cannot be put around .*TypeError"),
        ({"wrappers": ["odd_gym:register_odd"]}, r"odd_gym:register_odd cannot be put around"),
        ({"control_hz": 0}, r"control_hz.*greater than 0"),
        ({"max_failures": 0}, r"max_failures"),
    ],
)
def test_options_that_do_not_fit(options: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        MultiModalGym("gym/CartPole-v1", **STATE, backend_options=options)


def test_control_rate() -> None:
    def control_hz(**options: Any) -> float:
        env = MultiModalGym(f"gym/{name}", **STATE, backend_options=options)
        return float(env.worlds.backend.control_hz)

    register_odd()
    name = "CartPole-v1"
    assert control_hz() == 50.0  # its frame rate
    assert control_hz(control_hz=5) == 5.0
    name = ID
    assert control_hz() == 10.0
