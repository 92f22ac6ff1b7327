import asyncio
import json

import pytest

from sensorium.cli.main import main
from sensorium.envs import Action, find_env
from sensorium.envs.lookup.definition import Lookup
from sensorium.envs.validation import validate_tasks


class Sloppy(Lookup):
    """Its solution is wrong in some tasks, and goes on after the end in others."""

    def expert(self, task):
        number = int(task.id.rsplit("-", 1)[1])
        yield Action.call("submit", answer=task.hidden["answer"] + (number == 1))
        if number == 2:
            yield Action.call("submit", answer=0)


def test_solutions_earn_1_and_doing_nothing_0():
    definition = find_env("lookup")
    config = definition.config_type()
    tasks = definition.tasks(config, count=20)
    attempts = asyncio.run(validate_tasks(definition, config, tasks, concurrency=4))
    assert [one.task_id for one in attempts] == [task.id for task in tasks]
    assert all(one.is_valid for one in attempts)
    assert {one.num_steps for one in attempts} == {4}


def test_wrong_solutions_are_found_and_said():
    definition = Sloppy()
    config = definition.config_type()
    right, wrong, late = asyncio.run(validate_tasks(definition, config, definition.tasks(config, count=3)))
    assert right.is_valid
    assert not wrong.is_valid
    assert wrong.reward == 0.0
    assert "after the end" in late.problem


def test_tasks_are_the_same_for_a_seed_and_splits_are_disjoint():
    definition = find_env("lookup")
    config = definition.config_type(num_items=3)
    few, many = (definition.tasks(config, count=count) for count in (3, 6))
    assert list(few) == list(many)[:3]
    assert definition.task(config, few[1].id) == few[1]
    other = definition.tasks(config, split="test", count=6)
    assert not {task.id for task in other} & {task.id for task in many}
    assert len(few[0].data["facts"]) == 3


def test_the_command_validates_and_writes_tasks(capsys, tmp_path):
    assert main(["envs", "validate", "lookup", "--count", "3", "--env.num_items", "2"]) == 0
    assert "3 of 3 tasks are valid" in capsys.readouterr().out
    file = tmp_path / "tasks.jsonl"
    assert main(["envs", "tasks", "lookup", "--count", "4", "--output", str(file)]) == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == 4
    assert "answer" not in json.dumps(rows[0]["responses_create_params"]["input"])
    assert not any("hidden" in json.dumps(row) for row in rows)


def test_the_command_reports_invalid_tasks_by_its_status(capsys):
    assert main(["envs", "validate", f"{__name__}:Sloppy", "--count", "3", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["valid"] == 1
    assert [row["is_valid"] for row in said["tasks"]] == [True, False, False]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["envs", "validate", "lokup"], "Did you mean 'lookup'"),
        (["envs", "tasks", "lookup", "--split", "exam"], "no split 'exam'"),
        (["envs", "tasks", "lookup", "--env.num_item", "3"], "num_items"),
        (["envs", "tasks", "lookup", "--count", "0"], "at least 1"),
    ],
)
def test_wrong_names_are_told(arguments, said, capsys):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
