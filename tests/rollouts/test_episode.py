import asyncio
import base64
import io
import json

import pytest
from PIL import Image
from scripted_models import Scripted

from sensorium.core import EpisodeStatus
from sensorium.envs import Action, EpisodeError, Task, ToolCall, ToolEnv, find_env, tool
from sensorium.llm.messages import ImageBlock, TextBlock
from sensorium.policies.chat_agent import ChatAgent
from sensorium.representations import ObservationPipeline, PipelineConfig
from sensorium.rollouts.config import EpisodeConfig
from sensorium.rollouts.env_session import EnvSession
from sensorium.rollouts.episode import run_episode

KEEPS = ObservationPipeline(PipelineConfig().updated({"context_management": {"drop_full_history": False}}))
DROPS = ObservationPipeline()


def lookup():
    definition = find_env("lookup")
    config = definition.config_type()
    return definition, config, definition.task(config, "train-0-0")


def solution(task):
    one, other = (task.data["facts"][item][task.hidden["attribute"]] for item in task.hidden["items"])
    sign = {"sum": "+", "difference": "-", "product": "*"}[task.hidden["operation"]]
    attribute = task.hidden["attribute"]
    return [
        Action(
            calls=tuple(
                ToolCall(id=f"c{n}", name="lookup", arguments={"item": item, "attribute": attribute})
                for n, item in enumerate(task.hidden["items"])
            )
        ),
        Action.call("calculate", expression=f"{one} {sign} {other}"),
        Action.call("submit", answer=task.hidden["answer"]),
    ]


@pytest.mark.parametrize("pipeline", [DROPS, KEEPS])
def test_a_model_that_knows_the_way_solves_the_task(pipeline):
    definition, config, task = lookup()
    model = Scripted(*solution(task))
    session = EnvSession(definition.make(config), pipeline, system=definition.system)
    done = asyncio.run(run_episode(ChatAgent(model), session, task, seed=1))
    assert done.verdict.status is EpisodeStatus.SUCCESS
    assert done.verdict.reward == 1.0
    assert done.verdict.num_steps == 3
    assert done.task.hidden == {}
    first, second, third = model.prompts
    assert first[0].role == "system"
    assert task.instruction in first[-1].text
    if pipeline is KEEPS:
        assert [m.role for m in third[len(first) :]] == ["assistant", "tool", "tool", "assistant", "tool"]
        assert third[: len(second)] == second
        assert [m.tool_call_id for m in third if m.role == "tool"][:2] == ["c0", "c1"]
    else:
        assert [m.role for m in third] == ["system", "user"]
        assert "Previous actions" in third[-1].text
        assert "calculate" in third[-1].text
    told = str(task.data["facts"][task.hidden["items"][1]][task.hidden["attribute"]])
    assert told in second[-1].text


class Broken(ToolEnv):
    async def _reset(self, task, seed):
        self.how = task.data.get("how")

    async def _observe(self):
        return {"state": f"counter {len(self._metrics)}"}

    @tool(timeout_s=0.05)
    async def wait(self) -> str:
        """Wait for ever."""
        await asyncio.sleep(60)
        return "never"

    @tool()
    def crash(self) -> str:
        """Break."""
        raise KeyError("hidden detail")

    @tool()
    async def picture(self) -> list:
        """See."""
        data = io.BytesIO()
        Image.new("RGB", (8, 8), (200, 30, 30)).save(data, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
        return [TextBlock(text="a dot"), ImageBlock(url=url, width=8, height=8)]

    @tool()
    async def win(self, points: int = 1) -> str:
        """Win."""
        self.finish(float(points))
        return "won"


TASK = Task(id="t", env="broken", instruction="Do something.")


def session(pipeline=KEEPS, **limits):
    return EnvSession(Broken(), pipeline, EpisodeConfig(**limits))


async def play(episode, *actions):
    opening = await episode.start(TASK)
    return opening, [await episode.act(action, number) for number, action in enumerate(actions)]


def test_what_is_wrong_with_a_call_is_said_and_the_episode_goes_on():
    async def run():
        _, turns = await play(
            session(),
            Action.call("nothing"),
            Action.call("win", points="many"),
            Action(calls=(ToolCall(id="x", name="win", arguments="{broken"),)),
            Action.call("wait"),
            Action(text="I think."),
            Action.call("win", points=2),
        )
        return turns

    turns = asyncio.run(run())
    assert [turn.results[0].failure if turn.results else None for turn in turns] == [
        "unknown_tool",
        "invalid_arguments",
        "invalid_arguments",
        "timeout",
        None,
        None,
    ]
    assert "points" in turns[1].results[0].text
    assert "many" in turns[1].results[0].text
    assert "No tool was called" in turns[4].view.messages[0].text
    assert turns[5].reward == 2.0
    assert turns[5].terminated
    assert turns[5].view is None


def test_a_tool_that_broke_leaves_no_reward_and_no_details():
    async def run():
        episode = session()
        _, turns = await play(episode, Action.call("crash"), Action.call("win"))
        return turns, await episode.verdict()

    turns, verdict = asyncio.run(run())
    assert turns[0].results[0].failure == "crashed"
    assert "hidden detail" not in turns[0].view.model_dump_json()
    assert verdict.reward is None
    assert verdict.status is EpisodeStatus.ERROR
    assert verdict.failure.kind == "tool_crashed"


def test_a_repeated_step_is_not_done_again_and_a_wrong_number_is_refused():
    async def run():
        episode = session()
        await episode.start(TASK)
        await episode.start(TASK)
        one = await episode.act(Action.call("picture"), 0)
        again = await episode.act(Action.call("win"), 0)
        assert one == again
        with pytest.raises(EpisodeError, match="1 comes next"):
            await episode.act(Action.call("win"), 5)
        with pytest.raises(EpisodeError, match="is one of t"):
            await episode.start(TASK.model_copy(update={"id": "other"}))
        await episode.act(Action.call("win"), 1)
        with pytest.raises(EpisodeError, match="over"):
            await episode.act(Action.call("win"), 2)
        await episode.close()
        await episode.close()
        return one, episode.num_steps

    one, num_steps = asyncio.run(run())
    assert num_steps == 2
    assert isinstance(one.view.messages[0].content[1], ImageBlock)


def test_a_picture_of_a_tool_is_in_the_prompt_also_without_history():
    async def run():
        _, turns = await play(session(DROPS), Action.call("picture"))
        return turns[0].view

    view = asyncio.run(run())
    assert view.replaces
    assert any(isinstance(block, ImageBlock) for block in view.messages[-1].content)
    assert "a dot" in view.messages[-1].text


def test_the_step_limit_truncates_and_stopping_early_is_no_failure():
    async def run():
        episode = session(max_steps=2)
        _, turns = await play(episode, Action.call("picture"), Action.call("picture"))
        other = session()
        await play(other, Action.call("picture"))
        return turns, await episode.verdict(), await other.verdict()

    turns, cut, stopped = asyncio.run(run())
    assert turns[-1].truncated
    assert not turns[-1].terminated
    assert cut.status is EpisodeStatus.TRUNCATED
    assert cut.reward == 0.0
    assert stopped.status is EpisodeStatus.FAILURE
    assert stopped.failure is None


def test_an_environment_that_hangs_or_raises_is_an_error_with_a_stage():
    class Hangs(Broken):
        async def _reset(self, task, seed):
            await asyncio.sleep(60)

    class Raises(Broken):
        async def _observe(self):
            raise OSError("secret path")

    async def run(env, **limits):
        trajectory = await run_episode(
            ChatAgent(Scripted()), EnvSession(env, KEEPS, EpisodeConfig(**limits)), TASK
        )
        return trajectory.verdict

    hung = asyncio.run(run(Hangs(), reset_timeout_s=0.05))
    assert (hung.failure.kind, hung.failure.stage, hung.reward) == ("env_timeout", "seed", None)
    raised = asyncio.run(run(Raises()))
    assert (raised.failure.kind, raised.failure.stage) == ("env_crashed", "seed")
    assert "secret" not in json.dumps(raised.model_dump(mode="json"))


def test_a_long_answer_of_a_tool_is_shown_as_part_of_the_state_in_a_conversation():
    class Talks(Broken):
        @tool()
        async def talk(self) -> str:
            """Talk."""
            return "\n".join(f"line {n} says {n * n}" for n in range(5000))

    async def run():
        episode = EnvSession(Talks(), KEEPS, EpisodeConfig(max_result_tokens=500))
        _, turns = await play(episode, Action.call("talk"))
        return turns[0].view

    view = asyncio.run(run())
    answer, state = view.messages
    assert (answer.role, state.role) == ("tool", "user")
    assert "result-1/talk" in answer.text
    assert "line 0 says 0" in state.text
    assert view.num_tokens <= KEEPS.config.observation.max_tokens


def test_what_is_known_is_not_sent_again_in_a_conversation():
    class Grows(ToolEnv):
        async def _reset(self, task, seed):
            self.lines = {f"file-{n}.txt": _numbers(n) for n in range(4)}

        async def _observe(self):
            return self.lines

        @tool()
        async def write(self, text: str) -> str:
            """Write a line.

            Args:
                text: The line.
            """
            self.lines = self.lines | {"log.txt": self.lines.get("log.txt", "") + text + "\n"}
            return "written"

    async def run():
        pipeline = KEEPS.with_settings({"observation": {"max_tokens": 2000}})
        episode = EnvSession(Grows(), pipeline)
        opening, turns = await play(episode, *(Action.call("write", text=f"step {n}") for n in range(8)))
        return opening.view, [turn.view for turn in turns]

    opening, views = asyncio.run(run())
    assert opening.num_tokens > 1000
    for number, view in enumerate(views):
        assert f"step {number}" in view.messages[-1].text
        assert view.num_tokens < 300, (number, view.messages[-1].text)


def _numbers(factor):
    return "\n".join(f"{factor} {k} {k * factor}" for k in range(600))
