import json
from pathlib import Path

import pytest
from cue_agents import cue_config

from sensorium.core import RunDirectoryError
from sensorium.trainers.run_directory import OnExisting, open_run, read_config, run_path

CONFIG = cue_config(("rgb", "speech"))


def test_the_path_names_task_senses_algorithm_seed_and_settings(tmp_path: Path) -> None:
    path = run_path(CONFIG, tmp_path)
    assert path.parent == tmp_path / "cue-match_rgb+speech_ppo-1"
    assert path.name.startswith("0-")
    other_seed = run_path(CONFIG.updated({"seed": 3}), tmp_path)
    assert other_seed.name == path.name.replace("0-", "3-", 1)
    assert run_path(CONFIG.updated({"device": "cuda"}), tmp_path) == path
    assert run_path(CONFIG.updated({"algo": {"gamma": 0.5}}), tmp_path) != path


def test_the_config_can_be_read_back(tmp_path: Path) -> None:
    run = open_run(CONFIG, tmp_path, OnExisting.FAIL)
    assert read_config(run) == CONFIG
    written = json.loads((run / "config.json").read_text())
    assert written["versions"]["torch"]
    assert written["python"].startswith("3.")


def test_fail_changes_nothing(tmp_path: Path) -> None:
    run = open_run(CONFIG, tmp_path, OnExisting.FAIL)
    (run / "mine").write_text("x")
    with pytest.raises(RunDirectoryError, match=r"exists\. Add --on-existing resume") as caught:
        open_run(CONFIG, tmp_path, OnExisting.FAIL)
    assert str(run) in str(caught.value)
    assert "--seed" in str(caught.value)
    assert (run / "mine").read_text() == "x"


def test_resume_keeps_what_is_there(tmp_path: Path) -> None:
    run = open_run(CONFIG, tmp_path, OnExisting.RESUME)
    (run / "mine").write_text("x")
    config = (run / "config.json").read_text()
    assert open_run(CONFIG, tmp_path, OnExisting.RESUME) == run
    assert (run / "mine").exists()
    assert (run / "config.json").read_text() == config


def test_restart_moves_aside_and_deletes_nothing(tmp_path: Path) -> None:
    for number in range(3):
        run = open_run(CONFIG, tmp_path, OnExisting.RESTART)
        assert not (run / "mine").exists()
        (run / "mine").write_text(str(number))
    found = {path.name.partition("replaced")[2]: (path / "mine").read_text() for path in run.parent.iterdir()}
    assert found == {"-1": "0", "-2": "1", "": "2"}


@pytest.mark.parametrize("text", [None, "{", "{}", "[]"])
def test_a_folder_that_is_no_run(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(RunDirectoryError, match="is not a run directory"):
        read_config(tmp_path)


def test_a_config_of_another_version_is_named(tmp_path: Path) -> None:
    run = open_run(CONFIG, tmp_path, OnExisting.FAIL)
    written = json.loads((run / "config.json").read_text())
    written["config"]["algo"]["gama"] = 1
    (run / "config.json").write_text(json.dumps(written))
    with pytest.raises(
        RunDirectoryError, match=r"does not fit this version .*'algo\.ppo\.gama'|'algo\.gama'"
    ):
        read_config(run)
