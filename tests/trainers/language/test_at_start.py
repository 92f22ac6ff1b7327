import json

import pytest

from sensorium.analysis import RunDirectory, write_language_report
from sensorium.analysis.language_summary import read_language_summary
from sensorium.presets import find_preset
from sensorium.trainers.language.grpo import GRPOTraining
from sensorium.trainers.run_directory import OnExisting, open_run


def settings(**evaluation):
    return find_preset("grpo_toy").updated(
        {
            "algo": {"total_updates": 2, "tasks_per_update": 1, "group_size": 2},
            "evaluation": {"every": 1, "tasks": 3} | evaluation,
        }
    )


def rows(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_the_model_is_judged_before_it_has_learnt_and_only_once(tmp_path):
    config = settings(at_start=True)
    run = open_run(config, tmp_path, OnExisting.FAIL)
    training = GRPOTraining(config, run)
    training._round = lambda is_interrupted: None  # interrupted in the first round
    assert not training.run()
    first = rows(run)
    assert [row["step"] for row in first] == [0]
    assert GRPOTraining(config, run).run()
    assert [row["step"] for row in rows(run)] == [0, 1, 2]
    assert rows(run)[0] == first[0]
    summary = read_language_summary(RunDirectory(run))
    assert summary.first_success_rate == first[0]["eval/success_rate"]
    assert summary.first_return == rows(run)[1]["rollout/return_mean"]
    assert "before the first" in write_language_report(run).read_text()


def test_by_default_it_is_not(tmp_path):
    config = settings()
    run = open_run(config, tmp_path, OnExisting.FAIL)
    GRPOTraining(config, run).run()
    assert [row["step"] for row in rows(run)] == [1, 2]
    assert read_language_summary(RunDirectory(run)).first_success_rate is None
    assert "before the first" not in write_language_report(run).read_text()


@pytest.mark.parametrize("examples", [[], [{"asked": "Write digits.", "answered": "0123"}]])
def test_examples_are_in_every_prompt(tmp_path, examples):
    config = settings().updated({"examples": examples})
    run = open_run(config, tmp_path, OnExisting.FAIL)
    GRPOTraining(config, run).run()
    for episode in json.loads((run / "episodes" / "000000.json").read_text()):
        roles = [message["role"] for message in episode["steps"][0]["prompt"]]
        assert roles == ["user", "assistant"] * len(examples) + ["user"]
