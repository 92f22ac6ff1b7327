import json
from pathlib import Path

import pytest

from sensorium.cli.main import main
from sensorium.cli.train import resolve_config
from sensorium.metrics import meaning

SMALL = ["--algo.total_updates", "2", "--algo.tasks_per_update", "2", "--algo.group_size", "4"]
SMALL += ["--evaluation.tasks", "2", "--checkpoint_every", "100"]
EVERYTHING = ["--algo.unit", "step", "--algo.num_minibatches", "2", "--algo.kl_coef", "0.1"]
EVERYTHING += ["--algo.overlong", "{max_tokens: 8, cache_tokens: 4}"]


@pytest.fixture
def train(tmp_path: Path) -> list[str]:
    return ["train", "grpo_toy", "--runs", str(tmp_path), *SMALL]


def test_train_reports_and_reports_again(train: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(train) == 0
    closing = capsys.readouterr().out.strip()
    assert closing.startswith("success ")
    report = Path(closing.rpartition(" report ")[2])
    page = report.read_text()
    for text in (
        "letters",
        "whole episodes of a task",
        "Update 1 (first)",
        "Update 2 (last)",
        "Write vowels.",
    ):
        assert text in page, text
    rows = [json.loads(line) for line in (report.parent / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        spent = row["time/collect_s"] + row["time/learn_s"]
        assert row["time/tokens_per_s"] == pytest.approx(row["tokens/sampled"] / spent)
    assert [name for row in rows for name in row if name == "time/evaluate_s"] == ["time/evaluate_s"]
    assert len(json.loads((report.parent / "episodes" / "000000.json").read_text())) == 8

    assert main(train) == 2
    assert "--on-existing resume" in capsys.readouterr().err
    report.unlink()
    assert main([*train, "--on-existing", "resume", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["report"] == str(report)
    assert report.read_text() == page
    summary = json.loads((report.parent / "summary.json").read_text())
    assert told == summary | {"run": str(report.parent), "report": str(report)}


def test_another_environment_has_settings_of_its_own() -> None:
    same = resolve_config("grpo_tools", [], ["--env", "one_call"])
    assert same.env_settings == {"kinds": ["arithmetic"]}
    assert same.examples
    other = resolve_config("grpo_tools", [], ["--env", "letters"])
    assert (other.env_settings, other.examples) == ({}, ())
    both = resolve_config("grpo_tools", [], ["--env", "letters", "--env_settings.kinds", "[digits]"])
    assert both.env_settings == {"kinds": ["digits"]}


def test_every_metric_of_a_run_has_a_meaning(train: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*train, *EVERYTHING, "--json"]) == 0
    run = Path(json.loads(capsys.readouterr().out)["run"])
    written = {name for line in (run / "metrics.jsonl").read_text().splitlines() for name in json.loads(line)}
    assert {"groups/singletons", "policy/reference_kl", "reward/overlong", "time/rescore_s"} <= written
    assert [name for name in sorted(written - {"step", "wall_s"}) if meaning(name) is None] == []
