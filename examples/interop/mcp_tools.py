"""Tools of an MCP server beside those of an environment: python examples/interop/mcp_tools.py."""

import asyncio
import sys

from sensorium.core import parse_config
from sensorium.envs import Action, find_env

SERVER = """
from mcp.server.fastmcp import FastMCP
server = FastMCP("words")

@server.tool()
def count_words(text: str) -> int:
    "Count the words of a text."
    return len(text.split())

server.run()
"""


async def main() -> None:
    """Call a tool of each kind."""
    definition = find_env("sensorium.interop.mcp:WithMcpTools")
    server = {"name": "words", "command": [sys.executable, "-c", SERVER]}
    config = parse_config(definition.config_type, {"environment": "lookup", "servers": [server]})
    env = definition.make(config)
    try:
        await env.reset(definition.task(config, "train-0-0"))
        print("tools:", ", ".join(one["function"]["name"] for one in env.tools))
        step = await env.step(Action.call("count_words", text="how many are these"))
        print("count_words:", step.info.results[0].text)
    finally:
        await env.close()


asyncio.run(main())
