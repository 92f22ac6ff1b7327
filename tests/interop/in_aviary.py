"""Runs with the Python of `benchmarks/peers/aviary`: real environments of Aviary, real clients of it.

python in_aviary.py play          an environment of theirs through our adapter
python in_aviary.py client URL    their clients against our server; SENSORIUM_API_KEY is sent when it is set
"""

import asyncio
import io
import json
import os
import sys
import warnings

import httpx
from aviary.core import Environment, Message, TaskDataset, Tool, ToolRequestMessage
from aviary.env_client import TaskDatasetClient
from aviary.message import EnvStateMessage
from aviary.tools import ToolCall
from PIL import Image

warnings.simplefilter("ignore", DeprecationWarning)


def png(number):
    data = io.BytesIO()
    Image.new("RGB", (16, 12), (40 * number, 9, 9)).save(data, "PNG")
    return data.getvalue()


class Lamp(Environment[None]):
    """A lamp that is turned up until it is bright; its state is a picture and a text."""

    closed = 0

    def __init__(self, goal):
        self.goal, self.level = goal, 0

    def seen(self):
        return EnvStateMessage.create_message(text=f"level {self.level}", images=png(self.level))

    async def reset(self):
        def turn(by: int) -> Message:
            """Turn it up.

            Args:
                by: How much.
            """
            self.level += by
            return Message.create_message(text=f"turned by {by}", images=png(by))

        def smash() -> str:
            """Smash it."""
            raise OSError("splinters")

        self.level = 0
        self.tools = [Tool.from_function(turn), Tool.from_function(smash)]
        return [Message(content=f"Make it {self.goal}."), self.seen()], self.tools

    async def step(self, action):
        if not isinstance(action, ToolRequestMessage):
            return self.default_no_tool_calls_response
        answers = await self.exec_tool_calls(action, handle_tool_exc=True)
        done = self.level >= self.goal
        state = Message(content=f"level {self.level}", info={"is_env_state": True})
        said = Message(content="Nearly.") if self.level == self.goal - 1 else None
        return [*answers, *([said] if said else []), state], float(done), done, False

    async def close(self):
        Lamp.closed += 1


class Lamps(TaskDataset[Lamp]):
    def __init__(self, first=2):
        self.first = first

    def __len__(self):
        return 3

    def get_new_env_by_idx(self, idx):
        return Lamp(self.first + idx)


async def play():
    from sensorium.core import ConfigError, parse_config
    from sensorium.envs import Action, Env, ToolCall, find_env

    definition = find_env("sensorium.interop.aviary:Aviary")
    config = parse_config(definition.config_type, {"dataset": "__main__:Lamps", "kwargs": {"first": 3}})
    tasks = definition.tasks(config, count=10)
    told = {"tasks": [one.id for one in tasks]}
    env = definition.make(config)
    assert isinstance(env, Env)

    def seen(observation):
        return {
            name: one.raw if isinstance(one.raw, str) else len(one.raw) for name, one in observation.items()
        }

    told["first"] = seen(await env.reset(tasks[0]))
    told["tools"] = list(env.tools)
    calls = [
        ToolCall(id="a", name="turn", arguments={"by": 2}),
        ToolCall(id="b", name="turn", arguments={"by": "much"}),
        ToolCall(id="c", name="turn", arguments={}),
        ToolCall(id="d", name="smash", arguments={}),
        ToolCall(id="e", name="fly", arguments={}),
        ToolCall(id="f", name="turn", arguments="no json"),
    ]
    step = await env.step(Action(calls=tuple(calls)))
    told["second"], told["notes"] = seen(step.observation), step.info.notes
    told["results"] = [[one.call_id, one.failure, one.text] for one in step.info.results]
    picture = step.info.results[0].content[0]
    told["picture"] = [picture.width, picture.height]
    step = await env.step(Action(text="hm"))
    told["no_call"] = [step.info.notes, step.reward]
    step = await env.step(Action.call("turn", by=1))
    told["last"] = [step.observation, step.reward, step.terminated, step.info.metrics]
    await env.close()
    await env.close()
    told["closed"] = Lamp.closed
    for wrong in ("train-7", "test-0", "lamp"):
        try:
            definition.task(config, wrong)
        except ConfigError as error:
            told[wrong] = str(error)
    endless = parse_config(definition.config_type, {"dataset": "dummy"})
    env = definition.make(endless)
    observation = await env.reset(definition.tasks(endless, count=2)[1])
    story = await env.step(Action.call("print_story", story="once"))
    told["dummy"] = [seen(observation), story.reward, story.terminated]
    print(json.dumps(told))


async def client(url):
    key = os.environ.get("SENSORIUM_API_KEY")
    dataset = TaskDatasetClient(url, request_timeout=30, api_key=key)
    told = {"length": len(dataset)}
    env = dataset.get_new_env_by_idx(1)
    messages, tools = await env.reset()
    told["opening"] = [[one.role, one.is_multimodal, one.info, str(one)[:200]] for one in messages]
    told["tools"] = [one.info.name for one in tools]

    def request(*calls):
        made = [
            ToolCall.from_name(name, id=f"c{n}", **arguments) for n, (name, arguments) in enumerate(calls)
        ]
        return ToolRequestMessage(tool_calls=made)

    messages, reward, done, truncated = await env.step(request(("look", {}), ("look", {"closer": "?"})))
    told["step"] = [[type(one).__name__, one.is_multimodal, one.info] for one in messages]
    told["images"] = str(messages[0].content).count("data:image/png;base64,")
    told["outcome"] = [reward, done, truncated]
    messages, *_ = await env.step(Message(role="assistant", content="What now?"))
    told["no_call"] = [one.content for one in messages if one.role == "user" and not one.is_multimodal]
    slow = await asyncio.gather(
        env.step(request(("dawdle", {"seconds": 0.05}))), env.step(request(("look", {})))
    )
    told["at_once"] = [messages[0].content if messages[0].name == "dawdle" else "-" for messages, *_ in slow]
    messages, *_ = await env.reset()
    told["again"] = len(messages)
    answer = "the-hidden-answer-train-1"
    messages, *outcome = await env.step(request(("answer", {"text": answer})))
    told["end"] = [[one.role for one in messages], outcome]
    try:
        await env.step(request(("look", {})))
    except httpx.HTTPStatusError as error:
        told["after"] = [error.response.status_code, error.response.text]
    await env.close()
    try:
        await env.close()
    except httpx.HTTPStatusError as error:
        told["closed_twice"] = error.response.status_code
    broken = dataset.get_new_env_by_idx(0)
    await broken.reset()
    await broken.step(request(("crash", {})))
    try:
        told["broken"] = await broken.step(request(("answer", {"text": "the-hidden-answer-train-0"})))
    except httpx.HTTPStatusError as error:
        told["broken"] = [error.response.status_code, error.response.json()["error"]["kind"]]
    await broken.close()
    kept = dataset.get_new_env()
    await kept.reset()
    headers = {"X-API-Key": key} if key else {}
    async with httpx.AsyncClient(base_url=url, headers=headers) as http:
        running = (await http.get("/info")).json()["running_env_ids"]
        # Their client begins another environment at each reset, and forgets the one before.
        told["info"] = [len(running), kept.state.env_id in running]
        closed = await http.post("/close_old_envs", json={"last_used": 0})
        told["closed_old"] = sorted(closed.json()["closed_env_ids"]) == sorted(running)
        told["left"] = (await http.get("/info")).json()["running_env_ids"]
        bad = await http.post("/start", json={"task_idx": 99})
        told["bad"] = [bad.status_code, "Traceback" in bad.text]
        told["no_key"] = (await http.get("/info", headers={"X-API-Key": "wrong"})).status_code
    told["round"] = await there_and_back(url, key)
    print(json.dumps(told))


async def there_and_back(url, key):
    """An environment of ours, served to Aviary's client, as an environment of ours again."""
    from sensorium.core import parse_config
    from sensorium.envs import Action, find_env

    definition = find_env("sensorium.interop.aviary:Aviary")
    kwargs = {"server_url": url, "api_key": key}
    settings = {"dataset": "aviary.env_client:TaskDatasetClient", "kwargs": kwargs}
    config = parse_config(definition.config_type, settings)
    env = definition.make(config)
    first = await env.reset(definition.task(config, "train-1"))
    step = await env.step(Action.call("look"))
    state = [name for name, one in step.observation.items() if name.startswith("state")]
    pictures = [name for name in state if isinstance(step.observation[name].raw, bytes)]
    last = await env.step(Action.call("answer", text="the-hidden-answer-train-1"))
    await env.close()
    kinds = [block.type for block in step.info.results[0].content]
    return [bool(first), len(pictures), kinds, last.reward, last.terminated]


if __name__ == "__main__":
    asyncio.run(play() if sys.argv[1] == "play" else client(sys.argv[2]))
