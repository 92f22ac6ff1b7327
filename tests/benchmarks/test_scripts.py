import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TINY_RUN = {
    "algo.total_steps": 128,
    "algo.num_envs": 16,
    "algo.num_steps": 4,
    "algo.num_epochs": 1,
    "env.max_episode_steps": 6,
    "evaluation.episodes": 4,
    "evaluation.subset_episodes": 4,
    "evaluation.num_envs": 4,
    "device": "cpu",
}


def _run(script: str, output: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(BENCHMARKS / script), *arguments, "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    written: dict[str, Any] = json.loads(output.read_text())
    assert written.keys() >= {"command", "git_revision", "machine", "versions", "seeds"}
    return written


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "modules", "names"),
    [
        pytest.param(
            "doom",
            ["vizdoom"],
            ["doom, 1 process, waveform", "doom, 1 process, log-mel", "doom, 2 processes, waveform"],
            marks=pytest.mark.doom,
        ),
        ("arena", [], ["arena, MultiModalVectorEnv", "arena, backend alone"]),
        (
            "ppo",
            ["stable_baselines3", "sb3_contrib"],
            [
                "PPO against PPO",
                "PPO against RecurrentPPO",
                "PPO, concatenation, against PPO",
                "PPO, concatenation, against RecurrentPPO",
            ],
        ),
    ],
)
def test_throughput_runs(benchmark: str, modules: list[str], names: list[str], tmp_path: Path) -> None:
    for module in modules:
        pytest.importorskip(module)
    written = _run("throughput.py", tmp_path / "out.json", "--quick", "--only", benchmark)
    assert [row["name"] for row in written["rows"]] == names
    for row in written["rows"]:
        assert row["ours"]["min"] > 0
        assert isinstance(row["met"], bool)
        if modules:
            assert row["peer"]["min"] > 0
            assert row["ratio"]["median"] == pytest.approx(row["ours"]["median"] / row["peer"]["median"])
        if benchmark == "ppo":
            ours, peer = row["details"]["ours"], row["details"]["peer"]
            assert ours["encoder_parameters"] == peer["encoder_parameters"]
            assert ours["parameters"] > peer["parameters"], "ours has fusion and memory besides"


@pytest.mark.slow
@pytest.mark.doom
def test_peers_with_environments_of_their_own_run_or_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("vizdoom")
    written = _run("throughput.py", tmp_path / "out.json", "--quick", "--only", "peers")
    assert len(written["rows"]) == 3
    for row in written["rows"]:
        assert row["ours"]["min"] > 0
        if row["peer"] is None:
            assert row["met"] is None
            assert "make bench-peers" in row["note"], row["note"]
        else:
            ours, peer = row["details"]["ours"], row["details"]["peer"]
            assert peer["parameters"] == pytest.approx(ours["parameters"], rel=0.01), "the networks are equal"


@pytest.mark.slow
@pytest.mark.parametrize("part", ["nemo_gym", "openenv"])
def test_servers_beside_others_are_measured_or_left_out(tmp_path: Path, part: str) -> None:
    written = _run("servers.py", tmp_path / "out.json", "--quick", "--only", part)
    assert len(written["rows"]) == {"nemo_gym": 6, "openenv": 2}[part]
    for row in written["rows"]:
        assert row["ours"]["min"] > 0
        if row["peer"] is None:
            assert "make bench-peers" in row["note"], row["note"]
        elif row["unit"] == "rollouts/min":
            assert row["details"]["ours"]["steps"] == row["details"]["peer"]["steps"]


@pytest.mark.slow
def test_every_seed_is_trained_once(tmp_path: Path) -> None:
    flags = (
        "0",
        "3",
        "--runs",
        str(tmp_path / "runs"),
        *(f"--{name}={value}" for name, value in TINY_RUN.items()),
    )
    written = _run("quickstart_seeds.py", tmp_path / "out.json", *flags)
    assert [run["seed"] for run in written["runs"]] == written["seeds"] == [0, 3]
    assert len(written["spread"]["subsets"]) == 7
    assert written["spread"]["success_rate"]["min"] <= written["spread"]["success_rate"]["median"]
    assert all(run["command_s"] > run["wall_s"] for run in written["runs"])
    again = _run("quickstart_seeds.py", tmp_path / "out.json", *flags)
    assert [run["command_s"] for run in again["runs"]] == [None, None]
    assert again["spread"] == written["spread"]


@pytest.mark.slow
def test_generalisation_compares_two_arms_and_repeats_nothing(tmp_path: Path) -> None:
    arguments = ["--arms", "ppo;dapo", "--seeds", "1", "--jobs", "2", "--folder", str(tmp_path / "runs")]
    script, output = "generalisation.py", tmp_path / "found.json"
    written = _run(script, output, *arguments, "--total-steps", "2048")
    assert written["arms"].keys() == {"ppo", "dapo"}
    baseline = written["arms"]["ppo"]["success"]
    assert baseline["ratio"] == pytest.approx(1.0 if baseline["iqm"] > 0 else 0.0)
    assert written["verdict"].keys() == {"success", "at_equal_cpu"}
    files = {f: f.stat().st_mtime_ns for f in (tmp_path / "runs").iterdir()}
    assert _run(script, output, *arguments)["arms"] == written["arms"]
    assert files == {f: f.stat().st_mtime_ns for f in (tmp_path / "runs").iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("part", ["tiny", "loss", "advantages"])
def test_language_models_are_compared_with_trl(tmp_path: Path, part: str) -> None:
    pytest.importorskip("trl")
    written = _run("llm_rl.py", tmp_path / "out.json", "--quick", "--only", part)
    assert len(written["rows"]) == {"tiny": 2, "loss": 1, "advantages": 1}[part]
    for row in written["rows"]:
        assert isinstance(row["met"], bool)
        if part == "loss":
            assert row["met"], "the losses are equal"
        else:
            assert row["ratio"]["median"] > 0
        if part == "tiny":
            ours, peer = row["details"]["ours"], row["details"]["peer"]
            assert ours["prompt_tokens"] == peer["prompt_tokens"]
