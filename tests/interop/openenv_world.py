"""Runs with the Python of `benchmarks/peers/openenv`.

python openenv_world.py serve PORT KIND     a real server; KIND is `moves`, `tools` or `pulse`
python openenv_world.py client URL          the real client against our server
"""

import asyncio
import base64
import io
import json
import os
import sys
from typing import Literal

from PIL import Image


def png(number):
    data = io.BytesIO()
    Image.new("RGB", (16, 12), (40 * number % 256, 9, 9)).save(data, "PNG")
    return base64.b64encode(data.getvalue()).decode()


def serve(port, kind):
    import uvicorn
    from openenv.core.env_server.http_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, Observation, State

    class Move(Action):
        direction: Literal["left", "right"]
        times: int = 1

    class Seen(Observation):
        text: str
        shot: str
        screen: list[int]
        screen_shape: list[int]
        view: list[list[list[int]]]
        board: list[list[int]]

    class Corridor(Environment):
        """Walk to the right until place 3."""

        SUPPORTS_CONCURRENT_SESSIONS = True

        def reset(self, seed=None, episode_id=None, place=0, **more):
            self.place, self.seed, self.id, self.steps = place, seed, episode_id, 0
            return self.seen(0.0)

        def step(self, action, timeout_s=None, **more):
            if action.times == 13:
                raise ValueError("thirteen is not allowed")
            if action.times == 14:
                import time

                time.sleep(30)
            if action.times == 15:
                os._exit(1)
            self.steps += 1
            self.place += action.times if action.direction == "right" else -action.times
            return self.seen(1.0 if self.place == 3 else -0.125)

        def seen(self, reward):
            cut = self.place < -5
            return Seen(
                text=f"place {self.place}, seed {self.seed}, {self.id}",
                shot=png(self.place),
                screen=[self.place % 256] * (6 * 5 * 3),
                screen_shape=[6, 5, 3],
                view=[[[self.place % 256, 1, 2] for _ in range(8)] for _ in range(7)],
                board=[[0, 1], [1, 0]],
                reward=reward,
                done=self.place == 3 or cut,
                metadata={"truncated": True} if cut else {},
            )

        @property
        def state(self):
            return State(episode_id=self.id, step_count=self.steps)

    if kind == "pulse":

        class Pulse(Action):
            pass

        class Counted(Observation):
            count: int

        class Pulses(Environment):
            SUPPORTS_CONCURRENT_SESSIONS = True

            def reset(self, seed=None, episode_id=None, **more):
                self.count = 0
                return Counted(count=0)

            def step(self, action, timeout_s=None, **more):
                self.count += 1
                return Counted(count=self.count, reward=True, done=self.count == 2)

            @property
            def state(self):
                return State(step_count=self.count)

        app = create_fastapi_app(Pulses, Pulse, Counted)
    elif kind == "tools":
        from fastmcp import FastMCP
        from openenv.core.env_server.mcp_environment import MCPEnvironment
        from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation

        class Tools(MCPEnvironment):
            SUPPORTS_CONCURRENT_SESSIONS = True

            def __init__(self):
                server = FastMCP("tools")

                @server.tool
                def echo(text: str) -> str:
                    """Say it again."""
                    return f"you said {text}"

                @server.tool
                def fail() -> str:
                    """Fail."""
                    raise ValueError("no luck")

                super().__init__(server)

            def reset(self, seed=None, episode_id=None, **more):
                return Observation(done=False, reward=0.0)

            def _step_impl(self, action, timeout_s=None, **more):
                return Observation(done=False, reward=0.0)

            @property
            def state(self):
                return State()

        app = create_fastapi_app(Tools, CallToolAction, CallToolObservation)
    else:
        app = create_fastapi_app(Corridor, Move, Seen, max_concurrent_envs=2)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


async def client(url):
    import urllib.request

    from openenv.core.generic_client import GenericEnvClient

    key = os.environ.get("SENSORIUM_API_KEY")
    headers = {"X-API-Key": key} if key else None
    told = {}

    def http(path, body=None, **more):
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {}), **more}
        request = urllib.request.Request(url + path, data, sent)
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.loads(reply.read())

    told["health"] = http("/health")
    told["schema"] = sorted(http("/schema"))
    told["name"] = http("/metadata")["name"]
    env = GenericEnvClient(base_url=url, headers=headers)
    async with env:
        opening = await env.reset(task_id="train-1")
        told["opening"] = [opening.observation["text"][:40], opening.reward, opening.done]
        told["tools"] = [one["name"] for one in opening.observation["tools"]]
        told["images"] = str(opening.observation["content"]).count("data:image/png")
        both = [{"name": "look", "arguments": {}}, {"name": "look", "arguments": {"closer": "?"}}]
        result = await env.step({"calls": both})
        told["results"] = [[one["name"], one["failure"]] for one in result.observation["results"]]
        result = await env.step({"tool_name": "look", "arguments": {}})
        told["mcp_form"] = result.observation["results"][0]["text"]
        result = await env.step({"text": "hm"})
        told["said"] = "No tool was called" in result.observation["text"]
        try:
            await env.step({"fly": 1})
        except RuntimeError as error:
            told["invalid"] = str(error)
        told["state"] = await env.state()
        answer = {"name": "answer", "arguments": {"text": "the-hidden-answer-train-1"}}
        result = await env.step({"calls": [answer]})
        told["end"] = [result.reward, result.done, result.metadata.get("success")]
        try:
            await env.step({"calls": [answer]})
        except RuntimeError as error:
            told["after"] = str(error)
        again = await env.reset(task_id="train-2")
        told["again"] = again.done
    lost = GenericEnvClient(base_url=url, headers=headers)
    await lost.connect()
    await lost.reset()
    lost._ws.transport.abort()
    opened = http("/reset", {"task_id": "train-0"})
    id = opened["metadata"]["episode_id"]
    stepped = http("/step", {"action": {"calls": both}, "episode_id": id})
    told["http"] = [len(stepped["observation"]["results"]), http(f"/state?episode_id={id}")["step_count"]]
    told["closed"] = http("/close", {"episode_id": id})
    if key:
        told["no_key"] = False
        try:
            await GenericEnvClient(base_url=url).connect()
        except ConnectionError as error:
            told["no_key"] = "401" in str(error)
    print(json.dumps(told))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), sys.argv[3])
    else:
        asyncio.run(client(sys.argv[2]))
