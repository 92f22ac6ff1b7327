"""Files of NeMo Gym's collector are read by ours, and rows that it takes are taken."""

import json
from pathlib import Path
from typing import Any

import nemo_peer
import pytest
from compat_servers import golden
from test_metrics import differences

from sensorium.rollouts.aggregate import aggregate_metrics
from sensorium.rollouts.failures import failure_of
from sensorium.rollouts.inputs import read_inputs
from sensorium.rollouts.profile import profile_run
from sensorium.rollouts.task_rows import Repeats, materialise

ROLLOUTS: dict[str, Any] = golden("rollouts.json")
NO_REQUEST = {"nemo_user_sim"}
"""Rows of these have no request to a model."""


def _write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        rows = "".join(json.dumps(row) + "\n" for row in content)
        (folder / name).write_text(rows if name.endswith(".jsonl") else json.dumps(content))
    return folder / "out.jsonl"


def test_a_run_of_their_collector_is_profiled(tmp_path: Path) -> None:
    profile = profile_run(_write(tmp_path, ROLLOUTS["first"]))
    assert (profile.num_rollouts, profile.expected) == (4, 6)
    assert profile.reward is not None
    assert (
        profile.reward.mean
        == ROLLOUTS["first"]["out_aggregate_metrics.json"][0]["key_metrics"]["mean/reward"]
    )
    theirs = ROLLOUTS["profile"]["out_reward_profiling.jsonl"]
    done = [task for task in profile.tasks if task.num_rollouts]
    assert [task.mean_reward for task in done] == [row["mean/reward"] for row in theirs]
    (failure,) = profile.failures
    assert (failure.kind, failure.attempts, failure.lost) == ("agent_run_error", 2, 2)


def test_metrics_of_a_run_of_their_collector_are_theirs() -> None:
    files = ROLLOUTS["first"]
    (theirs,) = files["out_aggregate_metrics.json"]
    ours = aggregate_metrics(files["out.jsonl"])
    for part in ("agent_metrics", "key_metrics", "repeat_level_metrics"):
        assert list(differences(ours[part], theirs[part])) == []


def test_their_failures_are_failures() -> None:
    for row in ROLLOUTS["first"]["out_failures.jsonl"]:
        failure = failure_of(row)
        assert failure is not None
        assert failure.kind == "agent_run_error"
        assert "500" in failure.reason


def test_input_rows_are_repeated_as_theirs(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROLLOUTS["input"]))
    inputs = read_inputs(path)
    ours = materialise(inputs.rows, Repeats(2, None, "example_session_state_mgmt_simple_agent"))
    keys = ("_ng_task_index", "_ng_rollout_index", "agent_ref")
    theirs = ROLLOUTS["first"]["out_materialized_inputs.jsonl"]
    assert [[row[key] for key in keys] for row in ours] == [[row[key] for key in keys] for row in theirs]


@pytest.mark.slow
@pytest.mark.nemo_gym
def test_all_example_rows_that_they_ship_are_taken() -> None:
    refused = {}
    files = sorted(nemo_peer.installed().glob("resources_servers/*/data/example.jsonl"))
    for path in files:
        inputs = read_inputs(path)
        if inputs.problems:
            refused[path.parent.parent.name] = inputs.describe()
    assert len(files) > 100
    assert set(refused) == NO_REQUEST, refused
