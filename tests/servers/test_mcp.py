import asyncio

import pytest
from live_servers import Client, resources, running

pytest.importorskip("mcp")

SEED = {
    "resources_session_id": "mcp-session",
    "episode_id": {"rollout_id": "r"},
    "task_id": {"taskset": "t", "task_id": "train-1"},
    "task_data": {},
}


async def use(url, headers, calls):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with (
        streamablehttp_client(url, headers=headers) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = await session.list_tools()
        return tools.tools, [await session.call_tool(name, arguments) for name, arguments in calls]


def test_the_tools_of_a_session_over_mcp():
    with running(resources("picture_env:Pictures", expose_tools_over_mcp=True)) as urls:
        client = Client(urls["env"])
        _, seeded, _ = client.send("/seed_session", SEED)
        where = seeded["resources_tools"]
        assert (where["url_path"], where["transport"]) == ("/mcp", "http")
        calls = [("look", {}), ("look", {"closer": "perhaps"}), ("none", {}), ("answer", {"text": "x"})]
        url = urls["env"] + where["url_path"]
        tools, results = asyncio.run(use(url, where["headers"], calls))
        assert [tool.name for tool in tools] == ["look", "dawdle", "crash", "answer", "fetch_part"]
        assert tools[0].inputSchema["properties"]["closer"]["type"] == "boolean"
        assert results[0].content[0].text == "seen 1"
        assert (results[0].content[1].type, results[0].content[1].mimeType) == ("image", "image/png")
        assert [result.isError for result in results] == [False, True, True, False]
        _, verdict, _ = client.send("/verify", {"responses_create_params": {}, "response": {"output": []}})
        assert (verdict["reward"], verdict["looks"]) == (0.0, 1.0)
        for headers in ({}, {"X-NeMo-Gym-Session-Token": "0.abc.def"}):
            _, results = asyncio.run(use(url, headers, [("look", {})]))
            assert results[0].isError
            assert "no such session" in results[0].content[0].text


def test_mcp_is_off_unless_asked_for():
    with running(resources("lookup")) as urls:
        client = Client(urls["env"])
        seed = SEED | {"task_id": {"taskset": "t", "task_id": "train-0-0"}}
        assert client.send("/seed_session", seed)[1]["resources_tools"] is None
        _, text, _ = client.send("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert "There is no tool 'mcp'" in text
