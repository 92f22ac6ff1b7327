import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "step_grid.py"
TINY = ["--algo.total_updates=1", "--algo.tasks_per_update=2", "--algo.group_size=2", "--evaluation.tasks=2"]


@pytest.mark.slow
def test_arms_are_compared_drawn_and_trained_once(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    places = ["--folder", str(tmp_path), "--images", str(tmp_path), "--output", str(tmp_path / "out.json")]
    arms = ["--arms", "step", "trajectory", "--seeds", "5"]

    def run(*arguments: str) -> dict[str, dict[str, object]]:
        command = [sys.executable, str(SCRIPT), *arms, *places, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        arms_found: dict[str, dict[str, object]] = json.loads((tmp_path / "out.json").read_text())["arms"]
        return arms_found

    written = run(*TINY)
    assert written.keys() == {"step", "trajectory"}
    step, trajectory = written["step"], written["trajectory"]
    assert step["last_prompt_tokens"] < 200 < trajectory["last_prompt_tokens"]
    assert all(cpu_s > 0 for cpu_s in step["cpu_s"])
    for name in ("step_grid_curves.svg", "step_grid_prompts.svg"):
        assert "<svg" in (tmp_path / name).read_text()
    trained = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*-5.json")}
    assert run(*TINY) == written
    assert {file: file.stat().st_mtime_ns for file in tmp_path.glob("*-5.json")} == trained
