"""NeMo Gym starts our environment beside its own: its agent uses ours, our agent and collector use its."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nemo_peer
import pytest
from compat_servers import lookup_rows, read_rows, serving, typed_server, write_rows

pytestmark = [pytest.mark.slow, pytest.mark.nemo_gym]

CONFIGS = (
    "resources_servers/example_session_state_mgmt/configs/example_session_state_mgmt.yaml",
    "resources_servers/blackjack/configs/blackjack.yaml",
    "responses_api_models/openai_model/configs/openai_model.yaml",
)
LOOKUP = """
lookup:
  resources_servers:
    lookup: {entrypoint: app.py, domain: agent, verified: false, description: look facts up}
lookup_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: lookup}
      model_server: {type: responses_api_models, name: policy_model}
      max_steps: 8
lookup_environment_server:
  environment_servers:
    legacy_agent:
      entrypoint: app.py
      agent_server: {type: responses_api_agents, name: lookup_simple_agent}
lookup_session_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      model_server: {type: responses_api_models, name: policy_model}
      max_steps: 8
"""
OUR_AGENTS = """
policy_model:
  responses_api_models:
    openai_model: {{openai_base_url: "{model}", openai_api_key: k, openai_model: mock}}
counter_agent:
  responses_api_agents:
    simple_agent:
      resources_server: {{url: "{counter}"}}
      model_server: {{type: responses_api_models, name: policy_model}}
      max_steps: 4
cards_agent:
  responses_api_agents:
    gymnasium_agent:
      resources_server: {{url: "{cards}"}}
      model_server: {{type: responses_api_models, name: policy_model}}
      max_steps: 5
"""


@pytest.fixture(scope="module")
def theirs(
    tmp_path_factory: pytest.TempPathFactory, model: nemo_peer.MockModel
) -> Iterator[nemo_peer.Running]:
    """NeMo Gym's servers, with our look-up environment among them."""
    folder = tmp_path_factory.mktemp("nemo")
    app = folder / "root" / "resources_servers" / "lookup"
    app.mkdir(parents=True)
    (app / "app.py").write_text("from sensorium.servers.nemo import main\n\nmain()\n")
    (app / "requirements.txt").write_text("sensorium\n")
    typed = typed_server("lookup_typed", "lookup", "lookup_session_agent")
    (folder / "lookup.yaml").write_text(LOOKUP + typed)
    workspace = nemo_peer.Workspace(folder / "work", extra_root=folder / "root")
    workspace.give_interpreter("resources_servers", "lookup", Path(sys.prefix))
    with nemo_peer.servers(workspace, [*CONFIGS, str(folder / "lookup.yaml")], model.overrides) as running:
        yield running


def _shipped(name: str) -> Path:
    return nemo_peer.installed() / "resources_servers" / name / "data" / "example.jsonl"


def _their_collector(theirs: nemo_peer.Running, *flags: str) -> None:
    theirs.workspace.gym("eval", "run", "--no-serve", *flags, *theirs.workspace.overrides(theirs.head_port))


def _our_collector(*flags: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "sensorium.cli.main", "rollout", "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_their_simple_agent_uses_our_environment(theirs: nemo_peer.Running, tmp_path: Path) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", lookup_rows(2)), tmp_path / "out.jsonl"
    _their_collector(theirs, "--agent=lookup_simple_agent", f"--input={source}", f"--output={output}")
    rows = read_rows(output)
    assert [row["reward"] for row in rows] == [0.0, 0.0]
    for row in rows:
        output_items = row["response"]["output"]
        assert [item["type"] for item in output_items][:2] == ["function_call", "function_call_output"]
        assert output_items[1]["output"] == "submitted"


def test_their_typed_environment_server_uses_our_environment(
    theirs: nemo_peer.Running, tmp_path: Path
) -> None:
    rows = [
        {"task_id": {"taskset": "lookup", "task_id": f"train-0-{number}"}, "task_input": row}
        for number, row in enumerate(lookup_rows(2))
    ]
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    route = "++environment_server_routes={lookup: lookup_typed}"
    _their_collector(theirs, route, f"--input={source}", f"--output={output}")
    found = read_rows(output)
    assert [row["reward"] for row in found] == [0.0, 0.0], "typed seed, tools, verify and close all worked"
    for row in found:
        assert row["_ng_result_type"] == "single_agent_turn"
        assert row["response"]["output"][1]["output"] == "submitted"


@pytest.mark.parametrize("name", ["example_session_state_mgmt_simple_agent", "blackjack_gymnasium_agent"])
def test_our_collector_drives_their_servers(theirs: nemo_peer.Running, tmp_path: Path, name: str) -> None:
    source = _shipped("blackjack" if "blackjack" in name else "example_session_state_mgmt")
    output = tmp_path / "out.jsonl"
    head = f"http://127.0.0.1:{theirs.head_port}"
    flags = ("--head", head, "--agent", name, "--input", str(source), "--output", str(output))
    told = _our_collector(*flags, "--num-repeats", "2", "--seed", "none")
    rows = read_rows(output)
    assert told["num_done"] == len(rows) == 10
    rewards = sorted(row["reward"] for row in rows)
    if "blackjack" in name:
        assert set(rewards) <= {-1.0, 0.0, 1.0}
    else:
        assert rewards == [0.0] * 8 + [1.0] * 2, "the mock adds 3, which only the first task asks for"
    assert {row["_ng_environment_server"] for row in rows} <= set(theirs.urls)
    (entry,) = json.loads((tmp_path / "out_aggregate_metrics.json").read_text())
    assert entry["key_metrics"]["mean/reward"] == pytest.approx(sum(rewards) / 10)


def test_our_agents_use_their_environments(
    theirs: nemo_peer.Running, model: nemo_peer.MockModel, tmp_path: Path
) -> None:
    counter = theirs.urls["example_session_state_mgmt_resources_server"]
    config = OUR_AGENTS.format(model=model.url, counter=counter, cards=theirs.urls["blackjack"])
    with serving(tmp_path, config) as ours:
        for agent, name in (("counter_agent", "example_session_state_mgmt"), ("cards_agent", "blackjack")):
            output = tmp_path / f"{agent}.jsonl"
            flags = ("--head", ours.head, "--agent", agent, "--input", str(_shipped(name)))
            told = _our_collector(*flags, "--output", str(output), "--seed", "none")
            rows = read_rows(output)
            assert told["num_done"] == len(rows) == 5, told
            assert all(row["mask_sample"] is False for row in rows)
            if name == "blackjack":
                assert {row["reward"] for row in rows} <= {-1.0, 0.0, 1.0}
            else:
                assert sorted(row["reward"] for row in rows) == [0.0] * 4 + [1.0]
                (tool, result) = rows[0]["response"]["output"][:2]
                assert (tool["name"], json.loads(result["output"])) == (
                    "increment_counter",
                    {"success": True},
                )
