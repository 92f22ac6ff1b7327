import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from live_servers import Client, resources, running

from sensorium.core import EnvError, parse_config
from sensorium.envs import Action, ToolCall, find_env
from sensorium.interop.mcp import McpEnv, McpServerConfig, WithMcpTools, _free_name
from sensorium.llm.messages import ImageBlock

pytest.importorskip("mcp")
SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
COMMAND = [sys.executable, str(SERVER)]


def lookup():
    found = find_env("lookup")
    config = parse_config(found.config_type, {})
    return found.make(config), found.task(config, "train-0-0")


def acting(*calls):
    made = [ToolCall(id=str(n), name=name, arguments=args) for n, (name, args) in enumerate(calls)]
    return Action(text="now", calls=tuple(made))


def test_tools_of_a_process_stand_beside_those_of_the_environment():
    async def play():
        inner, task = lookup()
        servers = [
            McpServerConfig(name="one", command=COMMAND),
            McpServerConfig(name="two", command=COMMAND, tools=("add", "calculate", "sleep"), timeout_s=2.0),
        ]
        env = McpEnv(inner, servers)
        try:
            await env.reset(task)
            names = [one["function"]["name"] for one in env.tools]
            assert names[:3] == ["lookup", "calculate", "submit"]
            own = ["add", "one_calculate", "draw", "odd_name_", "fail", "sleep", "die"]
            assert names[3:] == [*own, "two_add", "two_calculate", "two_sleep"]
            schema = env.tools[3]["function"]
            assert schema["description"] == "Add two numbers."
            assert schema["parameters"]["required"] == ["a", "b"]
            step = await env.step(
                acting(
                    ("add", {"a": 2, "b": 3}),
                    ("calculate", {"expression": "6 * 7"}),
                    ("two_calculate", {"expression": "6 * 7"}),
                    ("draw", {}),
                    ("add", {"a": "x"}),
                    ("add", "no json"),
                    ("fail", {}),
                    ("two_sleep", {"seconds": 60.0}),
                    ("odd_name_", {}),
                )
            )
            results = step.info.results
            assert [one.call_id for one in results] == [str(n) for n in range(9)]
            assert [results[n].text for n in range(3)] == ["5", "42", "theirs: 6 * 7"]
            picture = results[3].content[1]
            assert isinstance(picture, ImageBlock)
            assert (picture.width, picture.height) == (8, 6)
            assert [one.failure for one in results[4:8]] == [
                "refused",
                "invalid_arguments",
                "refused",
                "timeout",
            ]
            assert "no such luck" in results[6].text
            assert (step.reward, step.terminated) == (0.0, False)
            return int(results[8].text.removeprefix("pid "))
        finally:
            await env.close()
            await env.close()

    pid = asyncio.run(play())
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_that_dies_is_a_refused_tool_and_the_episode_goes_on():
    async def play():
        inner, task = lookup()
        env = McpEnv(inner, [McpServerConfig(name="frail", command=COMMAND)])
        try:
            await env.reset(task)
            step = await env.step(acting(("die", {}), ("add", {"a": 1, "b": 1})))
            assert [one.failure for one in step.info.results] == ["refused", "refused"]
            assert "frail is gone" in step.info.results[0].text
            assert "my last words" in step.info.results[1].text
            answer = task.hidden["answer"]
            step = await env.step(acting(("submit", {"answer": answer}), ("add", {"a": 1, "b": 1})))
            assert (step.reward, step.terminated) == (1.0, True)
            assert step.info.results[1].failure == "not_run"
            assert step.info.metrics["success"] == 1.0
        finally:
            await env.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"command": ["no-such-program"]}, "there is no 'no-such-program'"),
        ({"command": [sys.executable, "-c", "raise SystemExit('went wrong')"]}, "went wrong"),
        ({"command": ["sleep", "60"], "start_timeout_s": 0.3}, "did not answer within 0.3 s"),
        ({"url": "http://127.0.0.1:9/mcp", "start_timeout_s": 5}, "cannot be used"),
        ({"command": COMMAND, "tools": ["none"]}, "has no tool 'none'"),
    ],
)
def test_a_server_that_cannot_be_used_fails_the_beginning(settings, says):
    async def begin():
        inner, task = lookup()
        env = McpEnv(inner, [McpServerConfig.model_validate({"name": "bad", **settings})])
        try:
            with pytest.raises(EnvError, match=says):
                await env.reset(task)
        finally:
            await env.close()

    asyncio.run(begin())


def test_tools_over_http_of_our_own_server():
    seed = {
        "resources_session_id": "mcp-session",
        "episode_id": {"rollout_id": "r"},
        "task_id": {"taskset": "t", "task_id": "train-1"},
        "task_data": {},
    }

    async def play(url, headers):
        inner, task = lookup()
        env = McpEnv(inner, [McpServerConfig(name="pictures", url=url, headers=headers)])
        try:
            await env.reset(task)
            step = await env.step(acting(("look", {}), ("crash", {})))
            return [one["function"]["name"] for one in env.tools], step.info.results
        finally:
            await env.close()

    with running(resources("picture_env:Pictures", expose_tools_over_mcp=True)) as urls:
        _, seeded, _ = Client(urls["env"]).send("/seed_session", seed)
        where = seeded["resources_tools"]
        names, results = asyncio.run(play(urls["env"] + where["url_path"], where["headers"]))
    assert names == [
        *("lookup", "calculate", "submit"),
        *("look", "dawdle", "crash", "answer", "fetch_part"),
    ]
    assert results[0].content[0].text == "seen 1"
    assert results[0].content[1].width == 48
    assert [one.failure for one in results] == [None, "refused"]


def test_a_server_over_http_that_stops_is_a_refused_tool():
    async def play(started):
        inner, task = lookup()
        urls = started.__enter__()
        url = urls["env"] + "/mcp"
        env = McpEnv(inner, [McpServerConfig(name="web", url=url, timeout_s=5.0)])
        try:
            await env.reset(task)
            await asyncio.to_thread(started.__exit__, None, None, None)
            step = await env.step(acting(("look", {})))
            assert step.info.results[0].failure in ("refused", "timeout")
            step = await env.step(acting(("calculate", {"expression": "1 + 1"})))
            assert step.info.results[0].text == "2"
        finally:
            await env.close()

    asyncio.run(play(running(resources("picture_env:Pictures", expose_tools_over_mcp=True))))


def test_a_process_does_not_outlive_a_killed_owner(tmp_path):
    script = f"""
import asyncio
from sensorium.interop.mcp import McpConnection, McpServerConfig
async def main():
    connection = McpConnection(McpServerConfig(command=({sys.executable!r}, {str(SERVER)!r})))
    await connection.start()
    result = await connection.call("odd name!", {{}})
    print(result.content[0].text, flush=True)
    await connection.call("sleep", {{"seconds": 60}})
asyncio.run(main())
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        pid = int(owner.stdout.readline().removeprefix("pid "))
        os.kill(owner.pid, 9)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _runs(pid):
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_from_settings_alone():
    definition = find_env("sensorium.interop.mcp:WithMcpTools")
    assert isinstance(definition, WithMcpTools)
    settings = {"environment": "lookup", "servers": [{"name": "own", "command": COMMAND}]}
    config = parse_config(definition.config_type, settings)
    task = definition.tasks(config, count=2)[1]
    assert (task.id, task.env) == ("train-0-1", "mcp_tools")
    assert task.instruction.startswith("Answer the question with the tools.")
    assert definition.task(config, task.id) == task

    async def play():
        env = definition.make(config)
        try:
            await env.reset(task)
            assert "draw" in [one["function"]["name"] for one in env.tools]
            expert = definition.expert(task)
            step = await env.step(next(expert))
            try:
                while True:
                    step = await env.step(expert.send(step))
            except StopIteration:
                return step
        finally:
            await env.close()

    assert asyncio.run(play()).reward == 1.0


def test_names_are_unique_and_fit():
    assert _free_name("read file", "s", set()) == "read_file"
    assert _free_name("a", "s", {"a"}) == "s_a"
    assert _free_name("a", "s", {"a", "s_a"}) == "s_a_2"
    long = "x" * 90
    assert _free_name(long, "s", {"x" * 64}) == ("s_" + "x" * 62)
