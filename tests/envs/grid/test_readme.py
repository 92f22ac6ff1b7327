import json
from importlib.resources import files

import pytest
from transcript import blocks

from sensorium.envs import Task, find_env

pytest.importorskip("minigrid")
FOLDER = files("sensorium.envs.grid")


def test_the_examples_of_the_readme_are_what_an_agent_reads():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(block in readme for block in blocks("grid")), "run python tests/support/transcript.py"


def test_example_rows_are_tasks_of_the_environment():
    definition = find_env("grid")
    lines = (FOLDER / "examples/tasks.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        task = Task.model_validate(json.loads(line))
        config = definition.config_type.model_validate(task.hidden["config"])
        assert definition.task(config, task.id) == task
    assert len(lines) == 4
