"""What we write for NeMo RL runs under the real NeMo Gym, which is what NeMo RL starts."""

import sys
from pathlib import Path

import nemo_peer
import pytest
from compat_servers import read_rows

from sensorium.interop.nemo_rl import NemoRLConfig, write_nemo_rl

pytestmark = [pytest.mark.slow, pytest.mark.nemo_gym]
MODEL = "responses_api_models/openai_model/configs/openai_model.yaml"


def test_the_files_run_under_nemo_gym(tmp_path: Path, model: nemo_peer.MockModel) -> None:
    config = NemoRLConfig(environment="lookup", num_tasks=3, num_validation_tasks=1, max_steps=4)
    files = write_nemo_rl(tmp_path / "root", config)
    workspace = nemo_peer.Workspace(tmp_path / "work", extra_root=tmp_path / "root")
    workspace.give_interpreter("resources_servers", "lookup", Path(sys.prefix))
    output = tmp_path / "out.jsonl"
    with nemo_peer.servers(workspace, [MODEL, str(files.servers)], model.overrides) as running:
        running.workspace.gym(
            "eval", "run", "--no-serve", f"--input={files.train}", f"--output={output}", "--num-repeats=2",
            *running.workspace.overrides(running.head_port),
        )  # fmt: skip
    rows = read_rows(output)
    assert len(rows) == 6
    for row in rows:
        assert row["reward"] == 0.0, "3 is a wrong answer"
        assert row["agent_ref"] == {"name": files.agent}
        kinds = [item["type"] for item in row["response"]["output"]]
        assert kinds[:2] == ["function_call", "function_call_output"]
        assert row["response"]["output"][1]["output"] == "submitted"
