"""A real MCP server over stdio: python mcp_server.py [name]."""

import os
import sys

import anyio
from mcp.server.fastmcp import FastMCP, Image

server = FastMCP(sys.argv[1] if len(sys.argv) > 1 else "tests")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def calculate(expression: str) -> str:
    """Not the environment's."""
    return f"theirs: {expression}"


@server.tool()
def draw() -> list:
    """Draw."""
    import io

    from PIL import Image as Pictures

    data = io.BytesIO()
    Pictures.new("RGB", (8, 6), (200, 10, 10)).save(data, "PNG")
    return ["a picture:", Image(data=data.getvalue(), format="png")]


@server.tool(name="odd name!")
def odd() -> str:
    """Has a name that models do not take."""
    return f"pid {os.getpid()}"


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("no such luck")


@server.tool()
async def sleep(seconds: float) -> str:
    """Sleep."""
    await anyio.sleep(seconds)
    return "slept"


@server.tool()
def die() -> str:
    """Die."""
    print("my last words", file=sys.stderr, flush=True)
    os._exit(3)


if __name__ == "__main__":
    server.run()
