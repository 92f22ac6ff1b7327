import json
from importlib.resources import files

from transcript import blocks

from sensorium.envs import Task, find_env

FOLDER = files("sensorium.envs.visual_qa")


def test_the_example_of_the_readme_is_what_an_agent_reads():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(block in readme for block in blocks("visual_qa")), "run python tests/support/transcript.py"


def test_example_rows_are_tasks_of_the_environment():
    definition = find_env("visual_qa")
    config = definition.config_type()
    lines = (FOLDER / "examples/tasks.jsonl").read_text(encoding="utf-8").splitlines()
    tasks = [Task.model_validate(json.loads(line)) for line in lines]
    assert len(tasks) == len(config.kinds)
    assert tasks == [definition.task(config, task.id) for task in tasks]
