"""The scenario table, options, action tables and errors: nothing here starts the engine."""

import subprocess
import sys

import numpy as np
import pytest

from sensorium.core import ActionKind, ConfigError, MissingDependencyError
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.doom import backend as backend_module
from sensorium.envs.embodied.doom.actions import FORWARD_UNITS, STRAFE_UNITS, ActionTable
from sensorium.envs.embodied.doom.config import DoomOptions, pick_resolution
from sensorium.envs.embodied.doom.scenarios import SCENARIOS, SuccessRule
from sensorium.envs.embodied.doom.tasks import TASKS
from sensorium.envs.embodied.registry import build_backend


def column(table: ActionTable, button: str) -> int:
    return table.buttons.index(button)


def test_tasks_are_listed_without_loading_vizdoom() -> None:
    code = (
        "import sys; from sensorium.envs.embodied.doom.tasks import TASKS; "
        "assert not {'vizdoom', 'torch'} & set(sys.modules); print(len(TASKS))"
    )
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert listed.stdout.strip() == "15"


def test_every_scenario_is_a_task_with_all_sensors_and_actions() -> None:
    assert set(TASKS) == {f"doom/{name}" for name in SCENARIOS}
    for task in TASKS.values():
        assert task.sensors == (
            "rgb",
            "depth",
            "speech",
            "env_sound",
            "instruction",
            "notifications",
            "proprio",
        )
        assert task.action_spaces == tuple(ActionKind)
    assert TASKS["doom/basic"].default_max_steps == 75
    assert TASKS["doom/my_way_home"].default_max_steps == 525


def test_kill_counts_are_set_exactly_where_they_decide() -> None:
    for scenario in SCENARIOS.values():
        assert (scenario.kills > 0) == (scenario.rule is SuccessRule.KILLS), scenario.name


@pytest.mark.doom
def test_buttons_are_those_of_the_shipped_configurations() -> None:
    vizdoom = pytest.importorskip("vizdoom")
    for scenario in (scenario for scenario in SCENARIOS.values() if scenario.shipped):
        game = vizdoom.DoomGame()
        game.load_config(f"{vizdoom.scenarios_path}/{scenario.name}.cfg")
        shipped = [b.name for b in game.get_available_buttons() if not vizdoom.is_delta_button(b)]
        assert list(scenario.buttons) == shipped, scenario.name
        assert scenario.time_limit_tics == (game.get_episode_timeout() or 2100), scenario.name


def test_unknown_option_names_the_nearest() -> None:
    config = EmbodiedEnvConfig(task="doom/basic", backend_options={"frameskip": 2})
    with pytest.raises(ConfigError, match="frame_skip"):
        build_backend(config, 1)


def test_resolution_is_the_smallest_that_holds_the_image() -> None:
    assert pick_resolution(DoomOptions(), 48) == (160, 120)
    assert pick_resolution(DoomOptions(), 121) == (200, 150)
    assert pick_resolution(DoomOptions(), 512) == (800, 600)
    assert pick_resolution(DoomOptions(resolution="320x240"), 48) == (320, 240)


def test_discrete_actions_press_one_button_or_a_combination() -> None:
    table = ActionTable(SCENARIOS["my_way_home"], ActionKind.DISCRETE)
    names = table.spec.option_names
    assert names[0] == "noop"
    assert table.buttons == SCENARIOS["my_way_home"].buttons
    pressed = table.press(np.arange(len(names)), None)
    assert pressed[0].sum() == 0
    for row, name in zip(pressed, names, strict=True):
        assert {b.lower() for b, on in zip(table.buttons, row, strict=True) if on} == (
            set() if name == "noop" else set(name.split("+"))
        )


def test_continuous_actions_scale_movements_and_pull_the_trigger_above_zero() -> None:
    table = ActionTable(SCENARIOS["basic"], ActionKind.CONTINUOUS)
    assert table.spec.continuous_names == ("strafe", "attack")
    pressed = table.press(None, np.array([[0.5, 0.1], [-1.0, 0.0], [0.0, -1.0]], np.float32))
    np.testing.assert_allclose(
        pressed[:, column(table, "MOVE_LEFT_RIGHT_DELTA")], [0.5 * STRAFE_UNITS, -STRAFE_UNITS, 0.0]
    )
    assert pressed[:, column(table, "ATTACK")].tolist() == [1.0, 0.0, 0.0]


def test_walking_backwards_only_where_the_scenario_can() -> None:
    back = np.array([[0.0, -1.0]], np.float32)
    gathering = ActionTable(SCENARIOS["health_gathering"], ActionKind.CONTINUOUS)
    assert gathering.spec.continuous_names == ("turn", "forward")
    assert not gathering.press(None, back).any()
    corridor = ActionTable(SCENARIOS["deadly_corridor"], ActionKind.CONTINUOUS)
    pressed = corridor.press(None, np.array([[0.0, -1.0, 0.0, 0.0]], np.float32))
    assert pressed[0, column(corridor, "MOVE_FORWARD_BACKWARD_DELTA")] == -FORWARD_UNITS


def test_hybrid_actions_press_a_button_beside_the_movement() -> None:
    table = ActionTable(SCENARIOS["basic"], ActionKind.HYBRID)
    assert table.spec.option_names == ("move", "attack")
    pressed = table.press(np.array([0, 1]), np.array([[1.0], [-0.5]], np.float32))
    assert pressed[:, column(table, "ATTACK")].tolist() == [0.0, 1.0]
    assert pressed[:, column(table, "MOVE_LEFT_RIGHT_DELTA")].tolist() == [STRAFE_UNITS, -0.5 * STRAFE_UNITS]


def test_hybrid_without_buttons_chooses_between_standing_and_moving() -> None:
    table = ActionTable(SCENARIOS["take_cover"], ActionKind.HYBRID)
    assert table.spec.option_names == ("stand", "move")
    assert table.spec.parameter_mask is not None
    assert table.spec.parameter_mask.tolist() == [[False], [True]]
    pressed = table.press(np.array([0, 1]), np.array([[1.0], [1.0]], np.float32))
    assert pressed.sum(axis=1).tolist() == [0.0, STRAFE_UNITS]


def test_missing_vizdoom_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vizdoom", None)
    with pytest.raises(MissingDependencyError, match=r"sensorium\[doom\]"):
        build_backend(EmbodiedEnvConfig(task="doom/basic"), 1)


@pytest.mark.doom
def test_missing_openal_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_module, "find_library", lambda name: None)
    config = EmbodiedEnvConfig(task="doom/basic", audio_obs=("env_sound",))
    with pytest.raises(MissingDependencyError, match="apt-get install libopenal1"):
        build_backend(config, 1)
