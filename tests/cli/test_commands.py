import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sensorium.cli.main import main

SMALL = [
    "--algo.total_steps=512",
    "--algo.num_envs=16",
    "--algo.num_steps=8",
    "--evaluation.episodes=8",
    "--evaluation.subset_episodes=4",
    "--evaluation.num_envs=4",
    "--env.max_episode_steps=10",
]


def test_help_is_fast_because_nothing_heavy_is_loaded() -> None:
    probe = (
        "import sys\n"
        "from sensorium.cli.main import build_parser\n"
        "build_parser().format_help()\n"
        "print([m for m in ('torch', 'gymnasium', 'numba', 'transformers', 'vizdoom') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "quikstart"], "Did you mean 'quickstart'"),
        (["train", "quickstart", "--algo.gama", "0.9"], "Did you mean 'gamma'"),
        (["train", "quickstart", "--env.task", "arena/fnd"], "Did you mean 'arena/find'"),
        (["train", "quickstart", "--env.visual_obs", "[rgbb]"], "it offers rgb, depth"),
        (["train", "quickstart", "--env.action_space", "walk"], "env.action_space"),
        (["eval", "nowhere"], "not a run directory"),
        (["export", "nowhere"], "not a run directory"),
        (["models", "fetch", "minilmm"], "minilm"),
    ],
)
def test_a_mistake_is_one_clear_paragraph(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())


def test_a_folder_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["train", "quickstart", "--runs", str(tmp_path / "file" / "runs")]) == 2
    error = capsys.readouterr().err
    assert "Not a directory" in error
    assert "Traceback" not in error


def test_a_setting_is_not_taken_for_an_abbreviated_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "quickstart", "--run", "elsewhere", "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert "Unknown setting 'run'" in error
    assert "Options of sensorium train: --config, --dry-run," in error
    assert main(["train", "quickstart", "--algo.foo", "3"]) == 2
    assert "Options of" not in capsys.readouterr().err


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sensorium.cli.main", "--debug", "train", "quikstart"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_what_dry_run_prints_can_be_given_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "quickstart", "--algo.gamma", "0.9", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["algo"]["gamma"] == 0.9
    (tmp_path / "mine.yaml").write_text(printed)
    assert main(["train", "doom_basic", "--config", str(tmp_path / "mine.yaml"), "--dry-run"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == yaml.safe_load(printed)


def test_envs_lists_every_task_with_its_sensors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envs", "--json"]) == 0
    tasks = {task["name"]: task for task in json.loads(capsys.readouterr().out)}
    assert {"arena/find", "arena/listen", "arena/senses", "doom/basic", "doom/my_way_home"} <= tasks.keys()
    assert tasks["arena/find"]["visual_obs"] == ["rgb", "depth"]


def test_train_evaluate_export_and_train_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", "quickstart", "--runs", str(tmp_path), *SMALL]
    assert main(train) == 0
    closing = capsys.readouterr().out.strip()
    assert closing.startswith("success ")
    report = Path(closing.rpartition(" report ")[2])
    run = report.parent
    for name in ("config.json", "metrics.jsonl", "summary.json", "report.html", "tensorboard", "checkpoints"):
        assert (run / name).exists(), name
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [128, 256, 384, 512]

    assert main(train) == 2
    assert "--on-existing resume" in capsys.readouterr().err
    assert main([*train, "--on-existing", "resume"]) == 0
    assert capsys.readouterr().out.strip() == closing

    assert main(["eval", str(run), "--suite", "missing-modality", "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    summary = json.loads((run / "summary.json").read_text())
    assert evaluated["results"]["absent"]["subsets"] == summary["missing_modality"]
    assert len(summary["missing_modality"]) == 7
    assert json.loads((run / "evals" / "missing-modality.json").read_text()) == evaluated

    assert main(["export", str(run), "--out", str(tmp_path / "out"), "--json"]) == 0
    exported = json.loads(capsys.readouterr().out)
    assert Path(exported["path"]).is_file()
    assert exported["max_abs_diff"] <= 1e-4

    assert main([*train, "--on-existing", "restart", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == str(run)
    assert (run.with_name(f"{run.name}-replaced-1") / "report.html").is_file()


def test_train_without_a_preset_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train"]) == 2
    said = capsys.readouterr().out
    assert "quickstart " in said
    assert "grpo_tools " in said
    assert "calculator" in said


@pytest.mark.parametrize("command", [["envs", "list"], ["models", "list"]])
def test_names_are_printed_whole_on_a_narrow_terminal(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main([*command, "--json"])
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    main(command)
    said = capsys.readouterr().out
    assert len(names) > 3
    assert [name for name in names if name not in said] == []
