import asyncio
import contextlib
import json
import os
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from sensorium.core import ConfigError, EnvError, parse_config
from sensorium.envs import Action, EpisodeError, ToolCall, find_env
from sensorium.interop.openenv_raw import picture_of, raw_state
from sensorium.llm.messages import ImageBlock
from sensorium.observations import read
from sensorium.representations import ObservationPipeline
from sensorium.rollouts.env_session import EnvSession

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "benchmarks" / "peers" / "openenv" / "bin" / "python"
WORLD = Path(__file__).with_name("openenv_world.py")
needs_openenv = pytest.mark.skipif(
    not PYTHON.exists(), reason="OpenEnv is not installed here; `make bench-peers` installs it"
)


@contextlib.contextmanager
def server(kind):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [str(PYTHON), str(WORLD), "serve", str(port), kind]
    given = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 90
            while True:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=5):
                    break
                assert process.poll() is None, process.stderr.read().decode()[-2000:]
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield url
        finally:
            process.kill()


def made(url, **settings):
    definition = find_env("sensorium.interop.openenv:OpenEnv")
    config = parse_config(definition.config_type, {"url": url, **settings})
    return definition.make(config), definition.task(config, "train-0-3")


def act(*arguments, name="act"):
    calls = (ToolCall(id=str(n), name=name, arguments=one) for n, one in enumerate(arguments))
    return Action(calls=tuple(calls))


@needs_openenv
def test_a_server_of_openenv_is_an_environment_of_ours():
    async def play(url):
        env, task = made(url)
        state = await env.reset(task)
        assert state["text"] == f"place 0, seed {task.seed}, train-0-3"
        kinds = {part.id: part.modality.value for part in read(state).parts}
        assert [kinds[name] for name in ("shot", "screen", "view")] == ["image"] * 3
        assert "screen_shape" not in state
        assert state["board"] == [[0, 1], [1, 0]]
        (tool,) = env.tools
        parameters = tool["function"]["parameters"]
        assert list(parameters["properties"]) == ["direction", "times"]
        assert parameters["required"] == ["direction"]
        right, wrong = {"direction": "right"}, {"direction": "up"}
        step = await env.step(act(right, wrong, {"direction": "left", "times": "x"}, {}, "text"))
        failures = [one.failure for one in step.info.results]
        assert failures == [None, *["invalid_arguments"] * 4]
        assert (step.reward, step.terminated) == (-0.125, False)
        assert step.observation["text"].startswith("place 1")
        step = await env.step(Action(text="hello"))
        assert step.info.notes == ("No tool was called. Call one of: act.",)
        assert (await env.step(Action.call("fly"))).info.results[0].failure == "unknown_tool"
        step = await env.step(act({"direction": "right", "times": 2}, right))
        assert (step.reward, step.terminated, step.observation) == (1.0, True, None)
        assert step.info.results[1].failure == "not_run"
        assert step.info.metrics["env_return"] == 0.875
        with pytest.raises(EnvError, match="over"):
            await env.step(act(right))
        await env.reset(task)
        step = await env.step(act({"direction": "left", "times": 6}))
        assert (step.terminated, step.truncated) == (False, True)
        await env.close()
        await env.close()

        session = EnvSession(made(url)[0], ObservationPipeline())
        opening = await session.start(task)
        blocks = [block for message in opening.view.messages for block in message.content]
        assert sum(isinstance(block, ImageBlock) for block in blocks) == 3
        turn = await session.act(act({"direction": "right", "times": 3}), 0)
        assert (turn.reward, (await session.verdict()).reward, turn.done) == (1.0, 1.0, True)
        await session.close()

        env, _ = made(url, reset={"place": 2}, raised="refused")
        assert (await env.reset(task))["text"].startswith("place 2")
        step = await env.step(act({"direction": "right", "times": 13}))
        assert step.info.results[0].failure == "refused"
        assert "thirteen is not allowed" in step.info.results[0].text
        assert (await env.step(act(right))).terminated
        await env.close()

        env, _ = made(url, step_timeout_s=1.0)
        await env.reset(task)
        with pytest.raises(EnvError, match="thirteen"):
            await env.step(act({"direction": "right", "times": 13}))
        with pytest.raises(EpisodeError, match="transport_timeout"):
            await env.step(act({"direction": "right", "times": 14}))
        await env.close()

        envs = [made(url)[0] for _ in range(2)]
        await envs[0].reset(task)  # the session that timed out still holds the other of two places
        with pytest.raises(EpisodeError, match="full"):
            await envs[1].reset(task)
        with pytest.raises(EpisodeError, match="transport_peer_drop"):
            await envs[0].step(act({"direction": "right", "times": 15}))
        for one in envs:
            await one.close()
        with pytest.raises(EpisodeError, match="transport_unreachable"):
            await envs[0].reset(task)

    with server("moves") as url:
        asyncio.run(play(url))


@needs_openenv
def test_tools_that_a_server_lists_are_tools():
    async def play(url):
        env, task = made(url)
        await env.reset(task)
        assert [one["function"]["name"] for one in env.tools] == ["echo", "fail"]
        assert env.tools[0]["function"]["parameters"]["required"] == ["text"]
        calls = (
            ToolCall(id="a", name="echo", arguments={"text": "hi"}),
            ToolCall(id="b", name="fail", arguments={}),
        )
        results = (await env.step(Action(calls=calls))).info.results
        assert (results[0].text, results[0].failure) == ("you said hi", None)
        assert results[1].failure == "refused"
        assert "no luck" in results[1].text
        await env.close()

    with server("tools") as url:
        asyncio.run(play(url))


@needs_openenv
def test_an_action_without_fields_is_a_tool_without_arguments():
    async def play(url):
        env, task = made(url)
        assert await env.reset(task) == {"count": 0}
        assert [one["function"]["name"] for one in env.tools] == ["act"]
        step = await env.step(act({}, {}))
        assert (step.reward, step.terminated) == (2.0, True)
        await env.close()

    with server("pulse") as url:
        asyncio.run(play(url))


def test_pictures_are_found_in_numbers():
    assert picture_of("x", [[[1, 2, 3]] * 5] * 4).raw.shape == (4, 5, 3)
    assert picture_of("x", [[1, 2, 3, 4]] * 4) is None  # a board
    assert picture_of("screen", [[1, 2, 3, 4]] * 4).raw.shape == (4, 4)
    assert picture_of("frame", [[[1] * 6] * 5] * 3).raw.shape == (5, 6, 3)
    assert picture_of("x", [[[300, 2, 3]] * 5] * 4) is None
    assert picture_of("x", [[[0.5, 2, 3]] * 5] * 4) is None
    assert picture_of("x", [[1, 2], [3]]) is None
    assert picture_of("x", list(range(60)), [4, 5, 3]).raw.dtype == np.uint8
    assert picture_of("x", list(range(60)), [4, 5, 4]) is None
    assert picture_of("x", "iVBORw0KGgo" + "!" * 100) is None
    assert raw_state({"done": True, "reward": 1.0, "metadata": {}, "none": None}) is None


def test_ids_of_tasks():
    definition = find_env("sensorium.interop.openenv:OpenEnv")
    config = parse_config(definition.config_type, {"url": "ws://127.0.0.1:1"})
    train, test = (definition.tasks(config, split=one, count=5) for one in ("train", "test"))
    assert {one.seed % 2 for one in train} == {0}
    assert {one.seed % 2 for one in test} == {1}
    with pytest.raises(ConfigError, match="train-0-17"):
        definition.task(config, "train")


@contextlib.contextmanager
def serving(**settings):
    """Our server for OpenEnv's clients, in an event loop of its own."""
    from aiohttp import web

    from sensorium.interop.openenv_server import OpenEnvServerConfig, build_openenv_app

    app = build_openenv_app(OpenEnvServerConfig(environment="picture_env:Pictures", **settings))
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(app)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait(doing):
        return asyncio.run_coroutine_threadsafe(doing, loop).result(60)

    async def listen():
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()

    try:
        wait(listen())
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", next(iter(app.values())).table
    finally:
        wait(runner.cleanup())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


@needs_openenv
@pytest.mark.parametrize("key", ["", "a-secret"])
def test_the_client_of_openenv_plays_environments_of_ours(key, monkeypatch):
    monkeypatch.setenv("SENSORIUM_API_KEY", key)
    with serving() as (url, table):
        command = [str(PYTHON), str(WORLD), "client", url]
        given = {**os.environ, "SENSORIUM_API_KEY": key}
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-3000:]
        told = json.loads(done.stdout.splitlines()[-1])
        deadline = time.monotonic() + 20
        while len(table) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(table) == 0
    assert told["health"] == {"status": "healthy"}
    assert told["schema"] == ["action", "observation", "state"]
    assert told["name"] == "pictures"
    assert told["opening"][1:] == [None, False]
    assert told["opening"][0].startswith("Look, then answer.")
    assert told["tools"] == ["look", "dawdle", "crash", "answer", "fetch_part"]
    assert told["images"] == 1
    assert told["results"] == [["look", None], ["look", "invalid_arguments"]]
    assert told["mcp_form"].startswith("seen 2")
    assert told["said"]
    assert "VALIDATION_ERROR" in told["invalid"]
    assert "fly" in told["invalid"]
    assert (told["state"]["task_id"], told["state"]["step_count"]) == ("train-1", 3)
    assert told["end"] == [1.0, True, 1.0]
    assert "over" in told["after"]
    assert told["again"] is False
    assert told["http"] == [2, 1]
    assert told["closed"] == {"closed": True}
    assert told.get("no_key", True)


def test_our_server_for_openenv_answers_nonsense_without_a_trace():
    import aiohttp

    async def play(url):
        async with aiohttp.ClientSession() as http:
            async with http.ws_connect(f"{url}/ws") as socket:

                async def ask(text):
                    await socket.send_str(text)
                    answer = await socket.receive_json(timeout=30)
                    return answer["type"], answer["data"].get("code"), answer["data"].get("message", "")

                said = [
                    await ask(text)
                    for text in (
                        "no json",
                        "[]",
                        '{"type": 3}',
                        '{"type": "fly"}',
                        '{"type": "step", "data": {"calls": []}}',
                        '{"type": "reset", "data": {"seed": -1}}',
                        '{"type": "reset", "data": {"task_id": "nothing"}}',
                        '{"type": "reset", "data": {"task_index": 4}}',
                        '{"type": "reset", "data": []}',
                        '{"type": "step", "data": {"calls": 3}}',
                        '{"type": "state"}',
                    )
                ]
            for path, body in (("/step", {"action": {}}), ("/step", []), ("/reset", {"seed": "x"})):
                async with http.post(url + path, json=body) as reply:
                    said.append((reply.status, "", await reply.text()))
            async with http.get(f"{url}/schema", headers={"Host": "elsewhere.example"}) as reply:
                said.append((reply.status, "", ""))
            async with http.get(f"{url}/ws", headers={"Origin": "http://elsewhere.example"}) as reply:
                said.append((reply.status, "", ""))
            async with http.get(f"{url}/nothing") as reply:
                said.append((reply.status, "", ""))
        return said

    with serving(num_tasks=3, sessions={"max_sessions": 1}) as (url, table):
        said = asyncio.run(play(url))
    assert [one[1] for one in said[:11]] == [
        "INVALID_JSON",
        "VALIDATION_ERROR",
        "VALIDATION_ERROR",
        "UNKNOWN_TYPE",
        "SESSION_ERROR",
        "VALIDATION_ERROR",
        "VALIDATION_ERROR",
        "VALIDATION_ERROR",
        None,
        "VALIDATION_ERROR",
        None,
    ]
    assert [one[0] for one in said[8:]] == ["observation", "error", "state", 409, 422, 422, 421, 403, 404]
    assert not any("Traceback" in one[2] for one in said)
    assert len(table) == 0


@needs_openenv
def test_a_server_of_openenv_is_served_by_its_url():
    from sensorium.servers.config import ResourcesConfig
    from sensorium.servers.hosting import EpisodeHost
    from sensorium.servers.neighbour import NeighbourEpisode
    from sensorium.servers.remote import Limits
    from sensorium.servers.runtime import Runtime

    async def play(url):
        config = ResourcesConfig(environment="openenv", config={"url": url})
        host = EpisodeHost(config, "world", Runtime())
        task = host.definition.task(host.env_config, "train-0-3")
        episode = NeighbourEpisode(host, {"task_id": task.id}, Limits())
        opening = await episode.start(task)
        assert opening.tools[0]["function"]["name"] == "act"
        assert "place 0" in str(opening.view.messages)
        turn = await episode.act(act({"direction": "right", "times": 2}), 0)
        assert "place 2" in str(turn.view.messages)
        await episode.close()
        return len(host.table)

    with server("moves") as url:
        assert asyncio.run(play(url)) == 0
