"""From an id of Gymnasium to a report, by the command line."""

import json
from pathlib import Path

import pytest

from sensorium.cli.main import main

SHORT = """
env: {task: gym/CartPole-v1, visual_obs: [], audio_obs: [], proprio: true, max_episode_steps: 20}
algo: {type: ppo, total_steps: 512, num_envs: 8, num_steps: 16, num_minibatches: 2, num_epochs: 1}
evaluation: {episodes: 4, num_envs: 4}
"""


def test_train_evaluate_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "short.yaml"
    settings.write_text(SHORT)
    runs = str(tmp_path / "runs")
    assert main(["train", "quickstart", "--config", str(settings), "--runs", runs, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    run = Path(told["run"])
    assert told["task"] == "gym/CartPole-v1"
    assert told["env_steps"] == 512
    assert 5 <= told["mean_return"] <= 20
    assert told["success_rate"] == 0.0  # 475 cannot be reached in 20 steps
    assert (run / "report.html").stat().st_size > 10_000
    assert list((run / "checkpoints").rglob("policy.onnx"))
    assert main(["eval", str(run), "--suite", "missing-modality", "--json", "--episodes", "4"]) == 0
    assert "proprio" in capsys.readouterr().out
