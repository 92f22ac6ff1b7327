import asyncio
from collections import Counter

import pytest

from sensorium.core import ConfigError
from sensorium.envs import Action, find_env
from sensorium.envs.base import ToolCall
from sensorium.envs.one_call.definition import OneCall, OneCallConfig
from sensorium.envs.validation import validate_tasks

CONFIG = OneCallConfig()


def play(task, action):
    """Reward, its parts, success."""

    async def go():
        env = OneCall().make(CONFIG)
        await env.reset(task)
        step = await env.step(action)
        assert step.terminated
        return step.reward, step.info.reward_components, step.info.metrics["success"]

    return asyncio.run(go())


@pytest.fixture
def sum_task():
    tasks = OneCall().tasks(OneCallConfig(kinds=("arithmetic",)), count=50)
    return next(task for task in tasks if " + " in task.hidden["arguments"]["expression"])


@pytest.fixture
def fact_task():
    return OneCall().tasks(OneCallConfig(kinds=("facts",)), count=1)[0]


@pytest.mark.parametrize("split", ["train", "test"])
def test_solutions_earn_1_and_doing_nothing_0(split):
    definition = find_env("one_call")
    tasks = definition.tasks(CONFIG, split=split, count=60)
    attempts = asyncio.run(validate_tasks(definition, CONFIG, tasks))
    assert all(one.is_valid and one.num_steps == 1 for one in attempts)


def test_the_parts_of_the_reward(sum_task, fact_task):
    a, _, b = sum_task.hidden["arguments"]["expression"].split()
    assert play(sum_task, Action(text=f"{a} + {b}")) == (0.0, {"task": 0.0}, 0.0)
    assert play(sum_task, Action.call("add", a=a, b=b))[0] == 0.0  # no such tool
    assert play(sum_task, Action.call("calculate", sum=a))[0] == 0.0  # arguments that do not fit
    assert play(sum_task, Action.call("lookup", item=a, attribute=b))[0] == 0.0
    assert play(sum_task, Action.call("calculate", expression="not a number"))[0] == 0.2
    assert play(sum_task, Action.call("calculate", expression=f"{a} - {b}"))[0] == 0.2
    reward, parts, success = play(sum_task, Action.call("calculate", expression=f"{b} + {a}"))
    assert (reward, success) == (1.0, 1.0)
    assert parts == pytest.approx({"call": 0.2, "task": 0.8})

    wanted = fact_task.hidden["arguments"]
    assert play(fact_task, Action.call("lookup", **wanted))[2] == 1.0
    assert (
        play(fact_task, Action.call("lookup", item=wanted["attribute"], attribute=wanted["item"]))[0] == 0.2
    )
    number = str(fact_task.hidden["answer"])  # the right number from the wrong tool
    assert play(fact_task, Action.call("calculate", expression=number))[0] == 0.0


def test_only_the_first_call_counts(fact_task):
    wrong = ToolCall(id="1", name="lookup", arguments={"item": "moon", "attribute": "age"})
    right = ToolCall(id="2", name="lookup", arguments=fact_task.hidden["arguments"])
    assert play(fact_task, Action(calls=(wrong, right)))[0] == 0.2
    assert play(fact_task, Action(calls=(right, wrong)))[0] == 1.0


@pytest.mark.parametrize("kinds", [("arithmetic",), ("facts",), ("arithmetic", "facts")])
def test_no_constant_answer_solves_the_tasks(kinds):
    for split in ("train", "test"):
        tasks = OneCall().tasks(OneCallConfig(kinds=kinds), split=split, count=2000)
        solved = Counter(
            tuple(task.hidden["arguments"].values())
            if task.hidden["tool"] == "lookup"
            else task.hidden["answer"]
            for task in tasks
        )
        assert solved.most_common(1)[0][1] / len(tasks) < 0.02


def test_the_test_has_other_items_and_other_numbers():
    train, test = (OneCall().tasks(CONFIG, split=split, count=400) for split in ("train", "test"))
    asked = [{tuple(task.hidden["arguments"].values()) for task in tasks} for tasks in (train, test)]
    assert not asked[0] & asked[1]
    items = [{item for task in tasks for item in task.data["facts"]} for tasks in (train, test)]
    assert len(items[0]) == len(items[1]) == 20
    assert not items[0] & items[1]
    kinds = Counter(task.hidden["tool"] for task in test)
    assert kinds == {"calculate": 200, "lookup": 200}


@pytest.mark.parametrize(
    "wrong", ["train-facts-0", "exam-facts-0-1", "train-poems-0-1", "train-facts-0-x", ""]
)
def test_ids_of_no_task_are_refused(wrong):
    with pytest.raises(ConfigError, match="train-facts-0-17"):
        OneCall().task(CONFIG, wrong)
