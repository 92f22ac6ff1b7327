import asyncio

import pytest

from sensorium.envs import Action, find_env
from sensorium.envs.episode import EpisodeError
from sensorium.llm.base import Completion
from sensorium.policies.chat_agent import AgentConfig
from sensorium.rollouts.runner import EpisodeRunner, RowRunner
from sensorium.rollouts.task_rows import task_row


class Recording:
    model = "recording"

    def __init__(self):
        self.asked = []

    async def complete(self, messages, tools=None, **sampling):
        self.asked.append(sampling)
        return Completion(message=Action.call("submit", answer=1).message(), finish_reason="tool_calls")


def runner(model, **agent):
    definition = find_env("lookup")
    return EpisodeRunner(definition, definition.config_type(), model, agent=AgentConfig(**agent))


def run(one, row):
    return asyncio.run(one.run(row, timeout_s=30.0))


def test_a_row_is_run_with_its_seed_and_its_sampling():
    model = Recording()
    one = runner(model, temperature=0.1, max_tokens=77, extra={"stop": ["x"]})
    assert isinstance(one, RowRunner)
    params = {
        "input": "x",
        "temperature": 0.9,
        "max_output_tokens": 12,
        "tool_choice": "required",
        "metadata": {"extra_body": '{"seed": 5, "min_p": 0.1}'},
    }
    row = {"sensorium": {"env": "lookup", "task": "train-0-1", "seed": 5}, "responses_create_params": params}
    made = run(one, row | {"note": "kept"})
    (asked,) = model.asked
    seed = asked.pop("seed")
    assert asked == {
        "temperature": 0.9,
        "max_tokens": 12,
        "tool_choice": "required",
        "stop": ["x"],
        "min_p": 0.1,
    }
    assert made["note"] == "kept"
    assert made["agent_ref"] == {"name": "lookup"}
    assert made["sensorium"]["seed"] == 5
    run(one, row)
    assert model.asked[1]["seed"] == seed
    run(one, {"task_id": "train-0-1", "sensorium": {"seed": 6}})
    assert model.asked[2]["seed"] != seed
    assert model.asked[2]["temperature"] == 0.1


def test_a_task_that_does_not_exist_is_told_before_and_fails_for_good():
    one = runner(Recording())
    assert "no task" in one.problem({"task_id": "nothing"})
    assert one.problem({"task_id": "train-0-1"}) is None
    with pytest.raises(EpisodeError) as failed:
        run(one, {"task_id": "nothing"})
    assert (failed.value.failure.kind, failed.value.failure.terminal) == ("task_invalid", True)


def test_what_an_episode_does_to_its_task_stays_its_own():
    one = runner(Recording())
    first = one._find("train-0-1")
    first.data["facts"].clear()
    assert one._find("train-0-1").data["facts"]


def test_a_task_that_a_row_brings_is_run():
    definition = find_env("lookup")
    task = definition.task(definition.config_type(), "train-0-2")
    own = task.model_copy(update={"id": "mine", "hidden": {**task.hidden, "answer": 1}})
    made = run(runner(Recording()), task_row(own, whole=True))
    assert made["reward"] == 1.0
    assert made["sensorium"]["task"] == "mine"
    assert "hidden" not in str(made["sensorium"])


def test_the_identity_names_what_decides_the_results():
    identity = runner(Recording(), temperature=0.5).identity
    assert identity["env"] == {"name": "lookup", "config": {"num_items": 5}}
    assert identity["model"] == "recording"
    assert identity["asked"]["temperature"] == 0.5
    assert identity["observation"]["observation"]["max_tokens"] > 0
