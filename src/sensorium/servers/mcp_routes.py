"""The tools of a session over MCP, streamable HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sensorium.core import require
from sensorium.envs.base import Action, ToolCall
from sensorium.envs.episode import EpisodeError
from sensorium.llm.messages import AnyBlock, AudioBlock, ImageBlock, TextBlock
from sensorium.servers.errors import ServerError
from sensorium.servers.hosting import EpisodeHost
from sensorium.servers.identity import MCP_HEADER, read_token
from sensorium.servers.mcp_access import MCP_PATH
from sensorium.servers.replies import as_text, turn_blocks


class McpTools:
    """An ASGI app that speaks MCP; every request names its session by a header.

    Args:
        host: Whose tools.

    Raises:
        MissingDependencyError: The package ``mcp`` is not installed.
    """

    def __init__(self, host: EpisodeHost) -> None:
        lowlevel = require("mcp.server.lowlevel", extra="serve", purpose="tools over MCP")
        manager = require("mcp.server.streamable_http_manager", extra="serve", purpose="tools over MCP")
        self._types = require("mcp.types", extra="serve", purpose="tools over MCP")
        self._host = host
        self._server = lowlevel.Server(host.name)
        self._server.list_tools()(self._list)
        self._server.call_tool(validate_input=False)(self._call)
        # The guard in front has checked the Host header, and sessions are ours.
        self._manager = manager.StreamableHTTPSessionManager(
            app=self._server, json_response=True, stateless=True
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the server runs."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; see ASGI."""
        await self._manager.handle_request(scope, receive, send)

    async def _list(self) -> list[Any]:
        return [
            self._types.Tool(
                name=one["function"]["name"],
                description=one["function"].get("description"),
                inputSchema=one["function"].get("parameters") or {"type": "object"},
            )
            for one in self._host.tools
        ]

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        request = self._server.request_context.request
        token = Headers(scope=request.scope).get(MCP_HEADER) if request is not None else None
        try:
            session = self._host.table.get(read_token(self._host.runtime.signer, token))
            call = ToolCall(id="call", name=name, arguments=arguments)
            turn = await self._host.act(session, Action(calls=(call,)))
        except (ServerError, EpisodeError) as error:
            return self._result([self._types.TextContent(type="text", text=str(error))], is_error=True)
        failed = bool(turn.results) and turn.results[0].failure is not None
        return self._result([self._content(one) for one in turn_blocks(turn)], is_error=failed)

    def _result(self, content: list[Any], *, is_error: bool) -> Any:
        return self._types.CallToolResult(content=content, isError=is_error)

    def _content(self, block: AnyBlock) -> Any:
        match block:
            case ImageBlock(url=url) if url.startswith("data:"):
                head, _, data = url.partition(",")
                kind = head.removeprefix("data:").partition(";")[0]
                return self._types.ImageContent(type="image", data=data, mimeType=kind)
            case AudioBlock(data=data, format=form):
                return self._types.AudioContent(type="audio", data=data, mimeType=f"audio/{form}")
            case TextBlock(text=text):
                return self._types.TextContent(type="text", text=text)
        return self._types.TextContent(type="text", text=as_text([block]))


def add_mcp(app: FastAPI, tools: McpTools) -> None:
    """Offer the tools at ``/mcp``."""
    app.router.routes.insert(0, Route(MCP_PATH, endpoint=tools, methods=["POST"]))
