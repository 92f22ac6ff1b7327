"""Episodes in a real package."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sensorium.core import ConfigError
from sensorium.core.errors import EnvError
from sensorium.envs import Action, Env, Step, Task
from sensorium.envs.code_repair.config import CodeRepairConfig
from sensorium.envs.code_repair.definition import CodeRepair
from sensorium.envs.sandbox import SandboxUnavailable
from sensorium.observations import read

pytest.importorskip("toolz")
DEFINITION = CodeRepair()
CONFIG = CodeRepairConfig(projects=("toolz",), max_test_runs=2)


def a_task() -> Task:
    """The same one in every test, with a bug that makes one test fail."""
    tasks = DEFINITION.tasks(CONFIG, split="train") or DEFINITION.tasks(CONFIG, split="test")
    return next(task for task in tasks if len(task.hidden["bug"]["failing"]) == 1)


def play(body: Callable[[Env, Task, Any], Awaitable[Step]]) -> Step:
    task = a_task()

    async def go() -> Step:
        env = DEFINITION.make(CONFIG)
        try:
            return await body(env, task, await env.reset(task))
        finally:
            await env.close()

    try:
        return asyncio.run(go())
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def told(step: Step) -> str:
    return step.info.results[0].text


def test_the_expert_earns_one() -> None:
    async def body(env: Env, task: Task, _: Any) -> Step:
        script = DEFINITION.expert(task)
        action = next(script)
        while True:
            step = await env.step(action)
            if step.terminated:
                return step
            assert step.reward == 0
            action = script.send(step)

    step = play(body)
    assert step.reward == 1.0
    assert step.info.metrics == {
        "success": 1.0,
        "tests_mended": 1.0,
        "tests_broken": 0.0,
        "files_changed": 1.0,
    }
    assert step.observation is None


def test_the_state_shows_failures_first_and_files_by_dependency() -> None:
    async def body(env: Env, task: Task, raw: Any) -> Step:
        bug = task.hidden["bug"]
        observation = read(raw)
        code = [part for part in observation if part.code is not None]
        first = code[0]
        assert [test.name for test in first.value.tests] == bug["failing"]
        assert first.value.tests[0].message
        assert first.value.stack is not None
        assert first.importance > max(part.importance for part in code[1:])
        assert bug["path"] in [part.value.path for part in code]
        progress = observation.parts[0].value
        assert "tests_failing" in str(progress)
        step = await env.step(Action.call("read_file", path="toolz/functoolz.py", start_line=3, end_line=4))
        assert told(step).startswith("toolz/functoolz.py, lines 3-4 of ")
        assert "toolz/functoolz.py" in step.observation
        return step

    play(body)


def test_doing_nothing_and_changing_tests_earn_nothing() -> None:
    async def body(env: Env, task: Task, _: Any) -> Step:
        path, _, name = task.hidden["bug"]["failing"][0].partition("::")
        found = await env.step(Action.call("search", pattern=f"def {name.partition('[')[0]}("))
        line = int(told(found).split(":")[1])
        shown = told(await env.step(Action.call("read_file", path=path, start_line=line, end_line=line)))
        old = shown.split("\n")[1]
        new = old.replace(old.strip(), "def test_nothing(): pass\n\n" + old.strip().replace("test_", "no_"))
        edited = await env.step(Action.call("edit", path=path, old=old, new=new))
        assert "not judged" in told(edited)
        tested = await env.step(Action.call("run_tests"))
        assert told(tested).startswith("0 failing")
        return await env.step(Action.call("submit"))

    step = play(body)
    assert step.terminated
    assert (step.reward, step.info.metrics["success"], step.info.metrics["tests_mended"]) == (0.0, 0.0, 0.0)


def test_a_forbidden_repair_is_refused_and_the_episode_goes_on() -> None:
    async def body(env: Env, task: Task, _: Any) -> Step:
        path = task.hidden["bug"]["path"]
        first = told(await env.step(Action.call("read_file", path=path, end_line=1))).split("\n")[1]
        shown = await env.step(Action.call("read_file", path=path))
        lines = told(shown).split("\n")[1:]
        old = "\n".join(lines[:6])
        await env.step(Action.call("edit", path=path, old=old, new="import atexit, sys\n" + old))
        refused = await env.step(Action.call("submit"))
        assert first == lines[0]
        assert "is not accepted" in told(refused)
        assert "atexit" in told(refused)
        return refused

    step = play(body)
    assert step.info.results[0].failure == "refused"
    assert not step.terminated


def test_test_runs_are_counted_and_targets_checked() -> None:
    async def body(env: Env, task: Task, _: Any) -> Step:
        wrong = await env.step(Action.call("run_tests", tests=[task.hidden["bug"]["path"]]))
        assert "has no tests" in told(wrong)
        one = await env.step(Action.call("run_tests", tests=[task.hidden["bug"]["failing"][0]]))
        assert told(one).startswith("1 failing, 0 passed\nFAILED toolz/")
        none = await env.step(Action.call("run_tests", tests=["toolz/tests/test_utils.py::test_no_such"]))
        assert "No test was found" in told(none)
        return await env.step(Action.call("run_tests"))

    assert "no test runs left" in told(play(body))


def test_tasks_are_the_same_for_the_same_seed_and_splits_share_no_file() -> None:
    config = CodeRepairConfig()
    few, more = DEFINITION.tasks(config, count=5, seed=3), DEFINITION.tasks(config, count=9, seed=3)
    assert [task.id for task in few] == [task.id for task in more][:5]
    assert few != DEFINITION.tasks(config, count=5, seed=4)
    assert DEFINITION.task(config, few[0].id) == few[0]
    files = {
        split: {task.hidden["bug"]["path"] for task in DEFINITION.tasks(config, split=split, count=10_000)}
        for split in ("train", "test")
    }
    assert files["train"]
    assert files["test"]
    assert not files["train"] & files["test"]


def test_the_public_task_tells_neither_place_nor_kind_of_the_bug() -> None:
    for task in DEFINITION.tasks(CodeRepairConfig(), count=1000):
        bug, public = task.hidden["bug"], task.public().model_dump_json()
        assert bug["path"] not in public
        assert bug["operator"] not in public
        assert "start" not in task.data


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match="no task 'x'"):
        DEFINITION.task(CONFIG, "x")
    with pytest.raises(ConfigError, match="no split 'dev'"):
        DEFINITION.tasks(CONFIG, split="dev")
    with pytest.raises(ConfigError, match="Unknown project 'nowhere'"):
        DEFINITION.tasks(CodeRepairConfig(projects=("nowhere",)))
    with pytest.raises(ConfigError, match="No bug of"):
        DEFINITION.tasks(CodeRepairConfig(operators=("spelling",)))


def test_a_task_of_another_version_is_an_error_and_no_reward() -> None:
    task = a_task()
    bug = dict(task.hidden["bug"], source_digest="0" * 16)

    async def go() -> None:
        env = DEFINITION.make(CONFIG)
        with pytest.raises(EnvError, match=r"was made for toolz .* has another"):
            await env.reset(task.model_copy(update={"hidden": {"bug": bug}}))

    asyncio.run(go())
