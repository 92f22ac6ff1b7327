import asyncio
import base64
import io
import json

import pytest
from PIL import Image
from scripted_models import Scripted

from sensorium.core import ConfigError
from sensorium.envs import Action, Task, ToolCall, ToolEnv, find_env, tool
from sensorium.envs.episode import Failure
from sensorium.llm.base import Usage
from sensorium.llm.messages import ImageBlock, TextBlock
from sensorium.llm.responses import from_responses, responses
from sensorium.policies.chat_agent import ChatAgent
from sensorium.representations import ObservationPipeline, PipelineConfig
from sensorium.rollouts.env_session import EnvSession
from sensorium.rollouts.episode import run_episode
from sensorium.rollouts.failures import KINDS, failure_of, plain_kind, wire_kind, worth_retrying
from sensorium.rollouts.row_names import RowKey
from sensorium.rollouts.rows import rollout_row, step_prompts
from sensorium.rollouts.task_rows import (
    Repeats,
    materialise,
    row_seed,
    row_task,
    taken_indices,
    task_row,
    with_seed,
)
from sensorium.rollouts.trajectory import Trajectory

KEEPS = ObservationPipeline(PipelineConfig().updated({"context_management": {"drop_full_history": False}}))
DROPS = ObservationPipeline()
TASK = Task(id="t", env="dots", instruction="Find the dot.")


class Dots(ToolEnv):
    async def _reset(self, task, seed):
        self.seen = 0

    async def _observe(self):
        return {"seen": self.seen}

    @tool()
    async def look(self) -> list:
        """Look."""
        self.seen += 1
        data = io.BytesIO()
        Image.new("RGB", (8, 8), (200, 30, self.seen)).save(data, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
        return [TextBlock(text=f"look {self.seen}"), ImageBlock(url=url, width=8, height=8)]

    @tool()
    async def crash(self) -> str:
        """Break."""
        raise KeyError("secret")

    @tool()
    async def win(self, points: float = 1.0) -> str:
        """Win."""
        self.finish(points, looks=float(self.seen))
        return "won"


LOOKS = (Action.call("look"), Action(text="Hm."), Action.call("look"), Action.call("win"))


def play(pipeline, *actions, **model):
    session = EnvSession(Dots(), pipeline, system="Play.")
    return asyncio.run(run_episode(ChatAgent(Scripted(*actions, **model)), session, TASK, seed=7))


@pytest.mark.parametrize("pipeline", [KEEPS, DROPS])
def test_a_row_holds_every_prompt_by_reference_and_nothing_twice(pipeline):
    trajectory = play(pipeline, *LOOKS)
    row = json.loads(json.dumps(rollout_row(trajectory)))
    prompts = list(step_prompts(row))
    assert len(prompts) == 4
    for step, prompt in zip(trajectory.steps, prompts, strict=True):
        wanted = from_responses(responses(list(step.prompt)))
        assert from_responses(prompt) == wanted
    kinds = [item["type"] for item in row["response"]["output"]]
    assert kinds.count("function_call") == 3
    assert kinds.count("function_call_output") == 3
    calls = [item["call_id"] for item in row["response"]["output"] if item["type"] == "function_call"]
    outputs = [
        item["call_id"] for item in row["response"]["output"] if item["type"] == "function_call_output"
    ]
    assert calls == outputs
    if pipeline is KEEPS:
        assert [step["prompt"] for step in row["sensorium"]["steps"]][-1][0][0] == "input"
        assert row["sensorium"]["steps"][-1]["prompt"][-1][1] == 0, "one unbroken run of the output"


def test_pictures_of_tools_are_in_the_output():
    row = rollout_row(play(KEEPS, *LOOKS))
    outputs = [item["output"] for item in row["response"]["output"] if item["type"] == "function_call_output"]
    assert [part["type"] for part in outputs[0]] == ["input_text", "input_image"]
    assert outputs[0][1]["image_url"].startswith("data:image/png;base64,")
    assert outputs[2] == "won"


def test_reward_metrics_usage_and_the_fields_of_the_input_row():
    given = {
        "responses_create_params": {"input": "x", "temperature": 0.5},
        "answer": 4,
        "agent_ref": {"name": "a"},
    }
    usage = Usage(prompt_tokens=10, completion_tokens=3)
    row = rollout_row(play(DROPS, *LOOKS, usage=usage), given, created_at=5.0)
    assert (row["reward"], row["looks"], row["success"], row["answer"]) == (1.0, 2.0, 1.0, 4)
    assert row["reward_components"] == {"task": 1.0}
    assert row["agent_ref"] == {"name": "a"}
    assert row["responses_create_params"]["temperature"] == 0.5
    assert row["responses_create_params"]["input"][0]["role"] == "system"
    assert [one["name"] for one in row["response"]["tools"]][:3] == ["look", "crash", "win"]
    counted = row["response"]["usage"]
    assert (counted["input_tokens"], counted["output_tokens"], counted["total_tokens"]) == (40, 12, 52)
    assert (row["response"]["model"], row["response"]["created_at"]) == ("m-1", 5.0)
    assert (row["sensorium"]["env"], row["sensorium"]["task"], row["sensorium"]["seed"]) == ("dots", "t", 7)
    assert rollout_row(play(DROPS, *LOOKS))["response"]["usage"] is None, "nobody counted"


def test_a_failed_episode_has_no_reward_but_a_kind_a_stage_and_what_was_done():
    row = rollout_row(play(KEEPS, Action.call("look"), Action.call("crash"), Action.call("win")))
    assert "reward" not in row
    assert row["_ng_failure_class"] == row["failure_kind"] == "sensorium:tool_crashed"
    assert row["_ng_failure_stage"] == "agent"
    assert row["_ng_failure_terminal"] is False
    assert row["response"]["status"] == "failed"
    assert len(row["sensorium"]["steps"]) == 3
    assert "secret" not in json.dumps(row)
    failure = failure_of(row)
    assert (failure.kind, failure.stage, failure.terminal) == ("tool_crashed", "agent", False)


def test_an_episode_that_never_began_is_a_row_too():
    class Never(Dots):
        async def _reset(self, task, seed):
            raise OSError("no disk")

    run = run_episode(ChatAgent(Scripted()), EnvSession(Never(), DROPS), TASK)
    row = rollout_row(asyncio.run(run))
    assert row["failure_kind"] == "sensorium:env_crashed"
    assert row["responses_create_params"]["input"][0]["content"] == TASK.instruction
    assert row["response"]["output"] == []


def test_an_answer_that_was_cut_off_and_thoughts_are_told():
    row = rollout_row(
        play(DROPS, Action.call("win"), finish="length", extra={"reasoning_content": "I could win."})
    )
    assert row["response"]["status"] == "incomplete"
    assert row["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    thought, call, _ = row["response"]["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": "I could win."}]
    assert call["arguments"] == "{}"


def test_calls_with_the_same_id_are_told_apart():
    twice = Action(
        calls=(ToolCall(id="c", name="look", arguments={}), ToolCall(id="c", name="look", arguments={}))
    )
    row = rollout_row(play(KEEPS, twice, Action.call("win")))
    ids = [item["call_id"] for item in row["response"]["output"] if item["type"] == "function_call"]
    assert len(set(ids)) == 3


def test_metrics_cannot_replace_what_a_row_is_made_of():
    trajectory = play(DROPS, Action.call("win"))
    verdict = trajectory.verdict.model_copy(
        update={"metrics": {"response": 1.0, "_ng_task_index": 3.0, "ok": 1.0}}
    )
    row = rollout_row(Trajectory(task=TASK, verdict=verdict))
    assert isinstance(row["response"], dict)
    assert "_ng_task_index" not in row
    assert row["ok"] == 1.0


def test_every_kind_survives_the_wire_and_says_whether_to_try_again():
    for kind in KINDS:
        assert plain_kind(wire_kind(kind)) == kind
    assert wire_kind("judge_failed") == "judge_failed"
    assert wire_kind("my_server:odd") == "my_server:odd"
    assert wire_kind("Odd Thing") == "sensorium:odd_thing"
    assert not worth_retrying(Failure(kind="context_overflow", reason=""))
    assert not worth_retrying(Failure(kind="model_failed", reason="", terminal=True))
    assert worth_retrying(Failure(kind="never_heard_of", reason=""))
    assert failure_of({"_ng_failure_class": "judge_failed", "reward": 0.0}).kind == "judge_failed"
    assert failure_of({"reward": 1.0}) is None


def test_tasks_become_rows_and_rows_tasks():
    definition = find_env("lookup")
    config = definition.config_type()
    task = definition.task(config, "train-0-3")

    def find(task_id):
        return definition.task(config, task_id)

    row = task_row(task, agent="me")
    assert "answer" not in json.dumps(row)
    assert row["agent_ref"] == {"name": "me"}
    assert row_task(row, "lookup", find) == task
    assert row_task(json.loads(json.dumps(task_row(task, whole=True))), "lookup", find) == task
    assert row_task({"task_id": "train-0-3"}, "lookup", find) == task
    with pytest.raises(ConfigError, match="no task"):
        row_task({"task_id": "nothing"}, "lookup", find)
    with pytest.raises(ConfigError, match="'lookup', not of 'notebook'"):
        row_task(row, "notebook", find)
    with pytest.raises(ConfigError, match=r"sensorium\.task\.id"):
        row_task({"sensorium": {"task": {"instruction": "x"}}}, "lookup", find)


def test_a_row_from_elsewhere_is_a_task_with_its_answers_hidden():
    asked = [
        {"role": "system", "content": "Be good."},
        {"role": "user", "content": [{"type": "input_text", "text": "How many?"}]},
    ]
    row = {"responses_create_params": {"input": asked}, "expected": 3, "_ng_task_index": 1}
    task = row_task(row, "count", lambda task_id: TASK)
    assert task.instruction == "How many?"
    assert task.hidden == {"expected": 3}
    assert task.id == row_task(row | {"_ng_rollout_index": 2}, "count", lambda task_id: TASK).id
    assert task.id != row_task(row | {"expected": 4}, "count", lambda task_id: TASK).id


def test_seeds_are_where_both_sides_look_and_keep_what_stands_there():
    params = {"input": "x", "metadata": {"extra_body": '{"stop": ["\\n"], "seed": 1}', "note": "n"}}
    row = with_seed({"responses_create_params": params, "sensorium": {"task": "a"}}, 9)
    assert row["sensorium"] == {"task": "a", "seed": 9}
    assert json.loads(row["responses_create_params"]["metadata"]["extra_body"]) == {"stop": ["\n"], "seed": 9}
    assert row["responses_create_params"]["metadata"]["note"] == "n"
    assert row_seed(row) == 9
    assert row_seed({"responses_create_params": params}) == 1
    assert row_seed({"responses_create_params": {"metadata": {"extra_body": "{broken"}}}) is None


def test_repeats_are_numbered_as_nemo_gym_does():
    texts = ['{"a": 1}\n', '{"b": 1}\n', '{"a": 1}']
    rows = [(text, json.loads(text)) for text in texts]
    made = materialise(rows, Repeats(num_repeats=2, seed=None))
    assert [RowKey.of(row) for row in made] == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3)]
    assert "sensorium" not in made[0]
    turned = materialise(rows[:2], Repeats(num_repeats=2, interleave=True))
    assert [RowKey.of(row) for row in turned] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    seeds = {row["sensorium"]["seed"] for row in turned}
    assert len(seeds) == 4
    more = materialise([*rows[:2], ('{"c": 1}', {"c": 1})], Repeats(num_repeats=3))
    kept = {RowKey.of(row): row["sensorium"]["seed"] for row in more}
    assert all(kept[RowKey.of(row)] == row["sensorium"]["seed"] for row in turned)
    other = materialise(rows[:2], Repeats(num_repeats=2, seed=1))
    assert seeds.isdisjoint(row["sensorium"]["seed"] for row in other)


def test_sampling_and_agent_are_laid_over_rows():
    row = {"responses_create_params": {"input": "x", "top_p": 0.1}, "agent_ref": {"name": "old", "type": "t"}}
    (made,) = materialise([("", row)], Repeats(seed=None, agent="new", sampling={"temperature": 1.0}))
    assert made["responses_create_params"] == {"input": "x", "top_p": 0.1, "temperature": 1.0}
    assert made["agent_ref"] == {"name": "new"}
    (same,) = materialise([("", row)], Repeats(seed=None, agent="old"))
    assert same["agent_ref"] == {"name": "old", "type": "t"}
    assert row["agent_ref"]["name"] == "old"


def test_task_indices_are_given_to_all_rows_or_to_none():
    assert list(taken_indices([{}, {}])) == []
    assert list(taken_indices([{"_ng_task_index": 5}, {"_ng_task_index": 5}])) == []
    places = [place for place, _ in taken_indices([{"_ng_task_index": 5}, {}, {"_ng_task_index": "x"}])]
    assert places == [1, 2]


def test_a_message_that_repeats_an_earlier_one_stays_in_the_trajectory():
    row = rollout_row(play(KEEPS, Action(text="a"), Action(text="b"), Action.call("win")))
    notes = [
        part["text"]
        for item in row["response"]["output"]
        if item.get("role") == "user"
        for part in item["content"]
        if "No tool was called" in part["text"]
    ]
    assert len(notes) == 2
