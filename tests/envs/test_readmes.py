import json
from importlib.resources import files

import pytest
from transcript import blocks

from sensorium.envs import Task, find_env


@pytest.mark.parametrize(
    ("folder", "environment", "num_rows"), [("grid", "grid", 4), ("playable", "embodied", 6)]
)
def test_example_rows_are_tasks_of_the_environment(folder, environment, num_rows):
    definition = find_env(environment)
    examples = files(f"sensorium.envs.{folder}") / "examples/tasks.jsonl"
    lines = examples.read_text(encoding="utf-8").splitlines()
    for line in lines:
        task = Task.model_validate(json.loads(line))
        config = definition.config_type.model_validate(task.hidden["config"])
        assert definition.task(config, task.id) == task
    assert len(lines) == num_rows


@pytest.mark.parametrize("folder", ["grid", "playable", "visual_qa"])
def test_the_examples_of_the_readme_are_what_an_agent_reads(folder):
    readme = (files(f"sensorium.envs.{folder}") / "README.md").read_text(encoding="utf-8")
    assert all(block in readme for block in blocks(folder)), "run python tests/support/transcript.py"
