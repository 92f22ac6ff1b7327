"""NeMo Gym's own collector, profile and conformance check against our servers."""

import json
from pathlib import Path
from typing import Any

import nemo_peer
import pytest
from capture_nemo import ask
from compat_servers import Ours, lookup_rows, read_rows, write_rows

pytestmark = [pytest.mark.slow, pytest.mark.nemo_gym]


def _collect(workspace: nemo_peer.Workspace, ours: Ours, source: Path, output: Path, *more: str) -> None:
    workspace.gym(
        "eval",
        "run",
        "--no-serve",
        "--agent=lookup_agent",
        f"--input={source}",
        f"--output={output}",
        "--concurrency=4",
        *more,
        *workspace.overrides(ours.head_port),
    )


def test_their_collector_drives_our_servers(
    ours: Ours, nemo_workspace: nemo_peer.Workspace, tmp_path: Path
) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", lookup_rows(3)), tmp_path / "out.jsonl"
    _collect(nemo_workspace, ours, source, output, "--num-repeats=2")
    rows = read_rows(output)
    keys = sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows)
    assert keys == [(task, repeat) for task in range(3) for repeat in range(2)]
    for row in rows:
        assert row["reward"] == 0.0, "3 is a wrong answer"
        assert row["mask_sample"] is False, "and counts"
        assert row["agent_ref"] == {"name": "lookup_agent"}
        assert row["_ng_environment_server"] == "lookup_agent_environment_server"
        kinds = [item["type"] for item in row["response"]["output"]]
        assert kinds[-3:-1] == ["function_call", "function_call_output"] or kinds[-2:] == [
            "function_call",
            "function_call_output",
        ]
        assert row["response"]["usage"]["total_tokens"] > 0
        assert "hidden" not in json.dumps(row), "what is hidden does not leave the environment"
    (entry,) = json.loads((tmp_path / "out_aggregate_metrics.json").read_text())
    assert entry["key_metrics"]["mean/reward"] == 0.0
    assert len(entry["group_level_metrics"]) == 3
    assert entry["agent_metrics"]["num_repeats"] == 2
    assert (tmp_path / "out_failures.jsonl").read_text() == ""


def test_their_collector_resumes_what_our_servers_began(
    ours: Ours, nemo_workspace: nemo_peer.Workspace, tmp_path: Path
) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", lookup_rows(3)), tmp_path / "out.jsonl"
    _collect(nemo_workspace, ours, source, output)
    whole = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(whole[0] + whole[1] + whole[2][:40])
    _collect(nemo_workspace, ours, source, output, "--resume")
    assert sorted(row["_ng_task_index"] for row in read_rows(output)) == [0, 1, 2]


def test_their_profile_reads_what_came_of_our_servers(
    ours: Ours, nemo_workspace: nemo_peer.Workspace, tmp_path: Path
) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", lookup_rows(2)), tmp_path / "out.jsonl"
    _collect(nemo_workspace, ours, source, output, "--num-repeats=2")
    materialised = tmp_path / "out_materialized_inputs.jsonl"
    nemo_workspace.gym("eval", "profile", f"--inputs={materialised}", f"--rollouts={output}")
    profiled = read_rows(tmp_path / "out_reward_profiling.jsonl")
    assert [row["num_rollouts"] for row in profiled] == [2, 2]
    assert all(row["mean/reward"] == 0.0 for row in profiled)


def test_a_failed_episode_is_a_failure_in_their_files_and_no_zero(
    ours: Ours, nemo_workspace: nemo_peer.Workspace, tmp_path: Path
) -> None:
    rows = lookup_rows(1)
    broken = json.loads(json.dumps(rows[0]))
    broken["sensorium"]["task"] = "train-0-99999999999999999999x"
    source, output = write_rows(tmp_path / "in.jsonl", [*rows, broken]), tmp_path / "out.jsonl"
    _collect(nemo_workspace, ours, source, output, "++route_failures_to_sidecar=true")
    assert [row["_ng_task_index"] for row in read_rows(output)] == [0]
    (failure,) = read_rows(tmp_path / "out_failures.jsonl")
    assert failure["_ng_task_index"] == 1
    assert failure["_ng_failure_class"]


def test_typed_episodes_run_on_our_environment_server(
    ours: Ours, nemo_workspace: nemo_peer.Workspace, tmp_path: Path
) -> None:
    rows = [
        {"task_id": {"taskset": "lookup", "task_id": f"train-0-{number}"}, "task_input": row}
        for number, row in enumerate(lookup_rows(2))
    ]
    for row in rows:
        del row["task_input"]["sensorium"]
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    nemo_workspace.gym(
        "eval",
        "run",
        "--no-serve",
        f"--input={source}",
        f"--output={output}",
        "++environment_server_routes={lookup: lookup_agent_environment_server}",
        *nemo_workspace.overrides(ours.head_port),
    )
    found = read_rows(output)
    assert sorted(row["_ng_task_id"]["task_id"] for row in found) == ["train-0-0", "train-0-1"]
    assert all(row["reward"] == 0.0 for row in found)


@pytest.mark.parametrize("number", range(2))
def test_their_contract_of_sessions_holds(ours: Ours, number: int) -> None:
    seed: dict[str, Any] = {
        "resources_session_id": f"contract-{number}",
        "episode_id": {"rollout_id": f"0-{number}", "attempt": number},
        "task_id": {"taskset": "lookup", "task_id": f"train-0-{number}"},
        "task_data": {},
    }
    question = {"url": ours.urls["lookup"], "seed": seed, "keeps_state": True}
    assert ask("contract", question) == ""
