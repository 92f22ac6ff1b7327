"""Training through the stages of a curriculum, interrupted and not."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from cue_agents import cue_config

from sensorium.trainers import checkpoint
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.run_directory import OnExisting, open_run
from sensorium.trainers.training import Progress, Training

pytestmark = pytest.mark.usefixtures("cue_backend", "_no_onnx")

STAGES = [{"sensors": ["rgb"]}, {"sensors": ["rgb", "instruction"]}]
# Episodes of one step, of which a beginner gets a third right: the first stage is over at once.
EASY = {"stages": STAGES, "promote_at": 0.1, "demote_below": 0.0, "min_episodes": 20, "window_episodes": 40}
DROPOUT = {"modal_dropout": {"p": 0.3}}


@pytest.fixture
def _no_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time of a short run would go into its exports."""
    monkeypatch.setattr(checkpoint, "export_policy", lambda policy, folder: 0.0)


def config(
    curriculum: dict[str, Any] | None = None, augment: dict[str, Any] | None = None, **algo: Any
) -> TrainConfig:
    settings = {"total_steps": 256, "num_epochs": 1} | algo
    made = cue_config(("rgb", "instruction"), checkpoint_every=64, algo=settings, length=1)
    return made.updated({"curriculum": curriculum, "env": {"augment": augment or {}}})


def train(settings: TrainConfig, runs: Path, stop_after: int | None = None) -> Training:
    """Train or go on; with `stop_after`, the process is told to stop after that many environment steps."""
    training = Training(settings, open_run(settings, runs, OnExisting.RESUME))

    def report(progress: Progress) -> None:
        if progress.env_steps == stop_after:
            signal.raise_signal(signal.SIGINT)

    training.run(report)
    return training


def rows(training: Training) -> list[dict[str, Any]]:
    lines = (training.run_dir / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_run_is_promoted_and_the_new_sense_starts_nearly_shut(tmp_path: Path) -> None:
    settings = config(EASY)
    training = Training(settings, open_run(settings, tmp_path, OnExisting.FAIL))
    fusion = training.agent.policy.perception.fusion
    biases: list[list[float]] = []
    training.run(lambda _: biases.append(fusion.gate_bias.tolist()))
    (change,) = json.loads((training.run_dir / "curriculum.json").read_text())
    assert (change["before"], change["after"], change["new_sensors"]) == (0, 1, ["instruction"])
    assert change["env_steps"] == 64
    assert biases[0][1] == -4.0
    found = rows(training)
    assert [row["curriculum/stage"] for row in found] == [1, 1, 1, 1]
    assert [row["presence/instruction"] > 0 for row in found] == [False, True, True, True]
    assert found[0]["presence/rgb"] == 1
    # sigmoid(-4) = 0.018 where the sense is there, 0 where it is not
    assert found[0]["fusion/gate/instruction"] == 0
    assert 0 < found[1]["fusion/gate/instruction"] < 0.05
    assert "attention/rgb->instruction" in found[0]


def test_episodes_are_told_apart_by_their_stage(tmp_path: Path) -> None:
    """A share of the new episodes is a replay of the first stage, without the instruction."""
    settings = config(EASY | {"replay_share": 0.5}, num_envs=64, total_steps=1024)
    training = Training(settings, open_run(settings, tmp_path, OnExisting.FAIL))
    training.run(lambda _: None)
    assert 0.35 < rows(training)[-1]["presence/instruction"] < 0.65
    rollout = training.rollouts.take(more=False)
    stages = {episode.stage for episode in rollout.episodes}
    assert stages == {0, 1}


def test_presence_counts_the_steps_that_were_taken(tmp_path: Path) -> None:
    settings = config(augment={"modal_dropout": {"p": 0.5, "only": ["instruction"]}}, num_envs=64)
    training = Training(settings, open_run(settings, tmp_path, OnExisting.FAIL))
    training._restart_worlds()
    rollout = training.rollouts.take(more=False)
    rollout.present[~rollout.valid] = True  # nobody acted on what was perceived there
    metrics = training._rollout_metrics(rollout)
    taken = rollout.present[..., 1][rollout.valid]
    assert metrics["presence/rgb"].value == 1
    assert metrics["presence/instruction"].value == pytest.approx(taken.double().mean().item())
    assert 0.35 < metrics["presence/instruction"].value < 0.65  # type: ignore[operator]


RUNS = {
    "curriculum": (EASY | {"min_episodes": 40}, {}, {}),
    "curriculum, acting while learning": (EASY | {"min_episodes": 40}, {}, {"max_staleness": 1}),
    "gating and dropout": (None, DROPOUT, {"type": "dapo"}),
    "cggm, curriculum, dropout and contrast": (
        EASY | {"min_episodes": 40},
        DROPOUT,
        {"type": "dapo", "gate": {"type": "cggm"}, "contrastive": {}, "reward": {}},
    ),
}


@pytest.mark.parametrize("name", list(RUNS))
def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(tmp_path: Path, name: str) -> None:
    settings = config(*RUNS[name][:2], **RUNS[name][2])
    whole = train(settings, tmp_path / "whole")
    train(settings, tmp_path / "parts", stop_after=64)
    train(settings, tmp_path / "parts", stop_after=192)
    parts = train(settings, tmp_path / "parts")
    assert parts.env_steps == whole.env_steps == 256
    a, b = (training.learner.policy.state_dict() for training in (whole, parts))
    assert all(torch.equal(x, b[name]) for name, x in a.items())
    assert parts.learner.to_json() == whole.learner.to_json()
    assert torch.equal(parts.learner.generator.get_state(), whole.learner.generator.get_state())
    if whole.curriculum is not None and parts.curriculum is not None:
        assert parts.curriculum.to_json() == whole.curriculum.to_json()
        files = [(training.run_dir / "curriculum.json").read_text() for training in (whole, parts)]
        assert files[0] == files[1]
        assert whole.curriculum.changes[0]["env_steps"] > 64  # promoted after the first interruption
    for mine, theirs in zip(rows(parts), rows(whole), strict=True):
        timeless = {k: x for k, x in mine.items() if "time/" not in k and k != "wall_s"}
        assert timeless == {k: theirs[k] for k in timeless}
