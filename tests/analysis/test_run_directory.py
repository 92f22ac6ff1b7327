import json
from pathlib import Path

import numpy as np
import pytest
from analysis_runs import make_film, make_summary

from sensorium.analysis import Film, FilmNotes, RunDirectory, Summary
from sensorium.core import RunDirectoryError


def test_reads_everything_of_a_complete_run(run_dir: Path) -> None:
    run = RunDirectory(run_dir)
    assert run.config()["algo"]["gamma"] == 0.987
    assert run.metrics()[-1]["step"] == 150 * 8192
    assert run.summary() == make_summary()
    assert [c.step for c in run.checkpoints()] == [409600, 1_234_944]
    assert run.latest_checkpoint().path == run_dir / "checkpoints" / "1234944"
    film = run.film()
    assert film is not None
    assert film.num_steps == 37


def test_checkpoints_are_ordered_by_number_and_unfinished_ones_skipped(tmp_path: Path) -> None:
    for name in ("100", "20", "3", ".7.1a2b3c4d.partial", "latest"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    (tmp_path / "checkpoints" / "999").write_text("a file")
    assert [c.step for c in RunDirectory(tmp_path).checkpoints()] == [3, 20, 100]


@pytest.mark.parametrize(
    ("method", "file", "command"),
    [
        ("config", "config.json", "sensorium train"),
        ("metrics", "metrics.jsonl", "sensorium train"),
        ("summary", "summary.json", "sensorium eval"),
        ("latest_checkpoint", "checkpoint", "sensorium train"),
    ],
)
def test_a_missing_file_is_named_with_the_command_that_makes_it(
    tmp_path: Path, method: str, file: str, command: str
) -> None:
    with pytest.raises(RunDirectoryError) as raised:
        getattr(RunDirectory(tmp_path), method)()
    assert file in str(raised.value)
    assert command in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_no_directory_and_no_film(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="sensorium train"):
        RunDirectory(tmp_path / "absent")
    assert RunDirectory(tmp_path).film() is None
    (tmp_path / "film").mkdir()
    assert RunDirectory(tmp_path).film() is None


def test_broken_files_are_named(run_dir: Path) -> None:
    run = RunDirectory(run_dir)
    (run_dir / "config.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"config\.json is not JSON"):
        run.config()
    (run_dir / "config.json").write_text("[1]")
    with pytest.raises(RunDirectoryError, match="holds list"):
        run.config()
    values = json.loads((run_dir / "summary.json").read_text())
    (run_dir / "summary.json").write_text(json.dumps({**values, "success_rate": 1.5, "surprise": 1}))
    with pytest.raises(RunDirectoryError, match=r"success_rate: .*surprise: "):
        run.summary()


def test_summary_has_the_documented_fields(run_dir: Path) -> None:
    values = json.loads((run_dir / "summary.json").read_text())
    assert set(values) == {
        *("task", "modalities", "sensors", "algorithm", "seed", "env_steps", "wall_s", "steps_per_s"),
        *("success_rate", "success_ci95", "episodes", "mean_return", "chance_success"),
        *("missing_modality", "onnx_max_abs_diff"),
    }
    assert values["missing_modality"]["rgb"].keys() == {"success_rate", "ci95", "episodes", "mean_return"}
    assert Summary.model_validate(values) == make_summary()


def test_a_summary_cannot_hold_nan() -> None:
    with pytest.raises(ValueError, match="finite"):
        make_summary(mean_return=float("nan"))


def test_film_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    film = make_film()
    film.save(tmp_path)
    loaded = Film.load(tmp_path)
    assert loaded is not None
    assert loaded.notes == film.notes
    for name in ("rgb", "depth", "env_sound", "map", "speech", "speech_waveform"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(film, name))


def test_film_needs_no_part(tmp_path: Path) -> None:
    Film(notes=FilmNotes(instruction="stay")).save(tmp_path)
    loaded = Film.load(tmp_path)
    assert loaded is not None
    assert loaded.rgb is None
    assert loaded.num_steps == 0


def test_film_parts_must_fit_each_other(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="one entry per step"):
        Film(notes=FilmNotes(rewards=(0.0, 1.0)), rgb=np.zeros((3, 4, 4, 3), np.uint8))
    with pytest.raises(RunDirectoryError, match="'rgb' must have 4 dimensions"):
        Film(notes=FilmNotes(), rgb=np.zeros((4, 4, 3), np.uint8))


def test_a_broken_film_is_named(tmp_path: Path) -> None:
    (tmp_path / "episode.npz").write_bytes(b"PK nonsense")
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        Film.load(tmp_path)
    (tmp_path / "episode.npz").unlink()
    (tmp_path / "episode.json").write_text('{"surprise": 1}')
    with pytest.raises(RunDirectoryError, match="surprise"):
        Film.load(tmp_path)
