import json
from pathlib import Path

import numpy as np
import pytest
from cue_agents import ALL_SENSORS, cue_config

from sensorium.analysis import Film, RunDirectory
from sensorium.core import ActionKind, RunDirectoryError
from sensorium.envs.embodied import ActionSpec
from sensorium.evals import finish_run, load_agent
from sensorium.evals.record import action_in_words
from sensorium.trainers.run_directory import OnExisting, open_run
from sensorium.trainers.training import Training

pytestmark = pytest.mark.usefixtures("cue_backend")


def test_a_finished_run_holds_summary_film_and_a_report_that_agree(tmp_path: Path) -> None:
    config = cue_config(ALL_SENSORS, ActionKind.HYBRID)
    run = open_run(config, tmp_path, OnExisting.FAIL)
    result = Training(config, run).run(lambda _: None)
    summary = finish_run(run)
    assert summary == RunDirectory(run).summary()
    assert summary.env_steps == result.env_steps == 192
    assert summary.sensors == ALL_SENSORS
    assert summary.onnx_max_abs_diff == result.onnx_max_abs_diff <= 1e-4
    assert next(iter(summary.missing_modality)) == "sight+hearing+language+body"
    assert len(summary.missing_modality) == 15
    report = (run / "report.html").read_text()
    assert f"{summary.success_rate * 100:.3g}" in report
    film = Film.load(run / "film")
    assert film is not None
    assert film.rgb is not None
    assert film.num_steps == len(film.notes.actions) == 4
    assert film.notes.instruction is not None
    assert film.notes.instruction.startswith("choose ")
    assert json.loads((run / "checkpoints" / f"{192:012d}" / "policy.json").read_text())["opset"] == 17


def test_loading_gives_the_policy_that_was_trained(tmp_path: Path) -> None:
    config = cue_config(("rgb",))
    run = open_run(config, tmp_path, OnExisting.FAIL)
    result = Training(config, run).run(lambda _: None)
    loaded_config, agent, _ = load_agent(run)
    assert loaded_config == config
    trained = result.agent.policy.state_dict()
    for name, tensor in agent.policy.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), trained[name].numpy(), err_msg=name)


def test_a_folder_that_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="not a run directory"):
        finish_run(tmp_path)


def test_a_run_without_a_checkpoint_is_said(tmp_path: Path) -> None:
    run = open_run(cue_config(("rgb",)), tmp_path, OnExisting.FAIL)
    with pytest.raises(RunDirectoryError, match="no checkpoint yet"):
        finish_run(run)


def test_actions_are_said_with_the_parameters_that_count() -> None:
    spec = ActionSpec(
        kind=ActionKind.HYBRID,
        option_names=("move", "pick_up"),
        continuous_names=("forward", "turn"),
        parameter_mask=np.array([[True, True], [False, False]]),
    )
    move = {"discrete": np.array([0]), "continuous": np.array([[0.5, -3.0]])}
    assert action_in_words(move, spec) == "move (forward +0.50, turn -1.00)"
    assert action_in_words(move | {"discrete": np.array([1])}, spec) == "pick up"
