import json
from importlib.resources import files

from sensorium.envs import Task, find_env

FOLDER = files("sensorium.envs.visual_qa")


def test_example_rows_are_tasks_of_the_environment():
    definition = find_env("visual_qa")
    config = definition.config_type()
    lines = (FOLDER / "examples/tasks.jsonl").read_text(encoding="utf-8").splitlines()
    tasks = [Task.model_validate(json.loads(line)) for line in lines]
    assert len(tasks) == len(config.kinds)
    assert tasks == [definition.task(config, task.id) for task in tasks]
