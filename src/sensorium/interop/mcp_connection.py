"""One connection to one MCP server: a process of ours spoken to by pipes, or an address."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic import Field, model_validator

from sensorium.core import Config, EnvError, require

_DIE_WITH_PARENT = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)\n"
    "os.getppid() == int(sys.argv[1]) or os._exit(1)\n"
    "os.execvp(sys.argv[2], sys.argv[2:])\n"
)
"""Asks to be killed when the parent is gone (prctl 1 is PR_SET_PDEATHSIG), then becomes the server."""
_STDERR_CHARS = 600
_CLOSE_TIMEOUT_S = 10.0
_MAX_PAGES = 100
_CONNECTION_CLOSED = -32000


class McpServerConfig(Config):
    """One MCP server."""

    name: str = Field(default="mcp", pattern=r"^[A-Za-z0-9_-]{1,32}$")
    """Put in front of tools whose name is taken."""
    command: tuple[str, ...] = ()
    """Starts a server that speaks over its standard input and output."""
    env: dict[str, str] = Field(default_factory=dict)
    """Its environment, beside the few harmless variables that every server gets."""
    env_from: tuple[str, ...] = ()
    """Variables of our own environment that it is given, e.g. of keys."""
    cwd: str | None = None
    """Where it is started."""
    url: str | None = Field(default=None, pattern=r"^https?://\S+$")
    """A server that speaks streamable HTTP, e.g. ``http://localhost:8000/mcp``."""
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    """Sent with every request over HTTP."""
    headers_from: dict[str, str] = Field(default_factory=dict)
    """Header -> variable of our environment that holds its value, for keys."""
    tools: tuple[str, ...] | None = None
    """Which tools are offered; all when None."""
    timeout_s: float = Field(default=60.0, gt=0.0)
    """Of one call."""
    start_timeout_s: float = Field(default=30.0, gt=0.0)
    """Of starting it, and hearing which tools it has."""

    @model_validator(mode="after")
    def _one_transport(self) -> "McpServerConfig":
        if bool(self.command) == (self.url is not None):
            raise ValueError("needs either command (a process) or url (streamable HTTP)")
        return self


class McpGoneError(EnvError):
    """The server is not there any more; the message says why."""


class McpRefusedError(EnvError):
    """The server answered a call with an error of the protocol."""


class McpConnection:
    """A connection that lives in a task of its own, since the protocol's scopes may not change tasks.

    Args:
        config: Which server.

    Raises:
        MissingDependencyError: The package ``mcp`` is not installed.
    """

    def __init__(self, config: McpServerConfig) -> None:
        self.config = config
        self._mcp = require("mcp", extra="serve", purpose="tools of MCP servers")
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._session: Any = None
        self._stderr = b""
        self._why = ""

    async def start(self) -> list[Any]:
        """Connect; returns the tools of the server, as `mcp.types.Tool`.

        Raises:
            EnvError: It cannot be started or reached, or does not answer in time.
        """
        name, limit_s = self.config.name, self.config.start_timeout_s
        if self.config.command and shutil.which(self.config.command[0]) is None:
            raise EnvError(f"The MCP server {name} cannot start: there is no {self.config.command[0]!r}.")
        ready: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready), name=f"mcp-{name}")
        waited: set[asyncio.Future[Any]] = {self._task, ready}
        try:
            await asyncio.wait(waited, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            if ready.done() and not ready.cancelled():
                return ready.result()
        except BaseException:
            await self.close()
            raise
        late = not self._task.done()
        await self.close()
        why = f"it did not answer within {limit_s:g} s" if late else self._why
        raise EnvError(f"The MCP server {name} cannot be used: {why}.{self._said()}")

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool; returns `mcp.types.CallToolResult`.

        Raises:
            TimeoutError: It took longer than the limit.
            McpRefusedError: The server answered with an error of the protocol.
            McpGoneError: The server is gone.
        """
        task = self._task
        if task is None or task.done() or self._why:
            raise self._gone()
        asking = asyncio.ensure_future(self._session.call_tool(tool, dict(arguments)))
        try:
            await asyncio.wait(
                {asking, task}, timeout=self.config.timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if asking.done():
                return asking.result()
            if task.done():
                raise self._gone()
            raise TimeoutError(f"{tool} took longer than {self.config.timeout_s:g} s")
        except self._mcp.McpError as error:
            if error.error.code == _CONNECTION_CLOSED:
                self._why = self._why or "it closed the connection"
                raise self._gone() from error
            raise McpRefusedError(error.error.message) from error
        except (TimeoutError, EnvError):
            raise
        except RuntimeError as error:  # the answer does not fit the schema that the server promised
            raise McpRefusedError(str(error)) from error
        except Exception as error:
            self._why = self._why or f"the connection broke ({type(error).__name__})"
            raise self._gone() from error
        finally:
            asking.cancel()

    async def close(self) -> None:
        """Disconnect, and end the process that was started; may be called again."""
        self._stop.set()
        if self._task is None:
            return
        done, _ = await asyncio.wait({self._task}, timeout=_CLOSE_TIMEOUT_S if self._session else 0.1)
        if not done:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_CLOSE_TIMEOUT_S)

    async def _live(self, ready: "asyncio.Future[list[Any]]") -> None:
        try:
            async with AsyncExitStack() as stack:
                connect = self._process() if self.config.command else self._address()
                read, write = await stack.enter_async_context(connect)
                session = await stack.enter_async_context(self._mcp.ClientSession(read, write))
                await session.initialize()
                tools = await _all_tools(session)
                self._session = session
                if not ready.done():
                    ready.set_result(tools)
                await self._stop.wait()
                self._why = self._why or "it was closed"
        except Exception as error:
            self._why = self._why or _innermost(error)
        except asyncio.CancelledError:
            self._why = self._why or "it was stopped"

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[tuple[Any, Any]]:
        stdio = require("mcp.client.stdio", extra="serve", purpose="tools of MCP servers")
        command = list(self.config.command)
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]
        given = {name: os.environ[name] for name in self.config.env_from if name in os.environ}
        parameters = stdio.StdioServerParameters(
            command=command[0], args=command[1:], env={**given, **self.config.env}, cwd=self.config.cwd
        )
        reading, writing = os.pipe()
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(reading, "rb", 0)
        transport, _ = await loop.connect_read_pipe(lambda: _Tail(self), pipe)
        try:
            async with AsyncExitStack() as stack:
                try:
                    read, write = await stack.enter_async_context(stdio.stdio_client(parameters, writing))
                finally:
                    os.close(writing)
                yield read, write
        finally:
            transport.close()

    @asynccontextmanager
    async def _address(self) -> AsyncIterator[tuple[Any, Any]]:
        http = require("mcp.client.streamable_http", extra="serve", purpose="tools of MCP servers")
        made = require("mcp.shared._httpx_utils", extra="serve", purpose="tools of MCP servers")
        headers = dict(self.config.headers)
        for header, variable in self.config.headers_from.items():
            if variable not in os.environ:
                raise EnvError(f"the environment variable {variable} is not set")
            headers[header] = os.environ[variable]
        async with (
            made.create_mcp_http_client(headers=headers) as client,
            http.streamable_http_client(self.config.url, http_client=client) as (read, write, _),
        ):
            yield read, write

    def _gone(self) -> McpGoneError:
        why = self._why or "it ended"
        return McpGoneError(f"the MCP server {self.config.name} is gone: {why}.{self._said()}")

    def _said(self) -> str:
        """What it wrote to its standard error last."""
        text = " ".join(self._stderr.decode("utf-8", "replace").split())[-_STDERR_CHARS:]
        return f" It said: {text}" if text else ""

    def heard(self, data: bytes) -> None:
        """Keep the end of what the process writes to its standard error."""
        self._stderr = (self._stderr + data)[-4 * _STDERR_CHARS :]


class _Tail(asyncio.Protocol):
    def __init__(self, owner: McpConnection) -> None:
        self._owner = owner

    def data_received(self, data: bytes) -> None:
        self._owner.heard(data)


async def _all_tools(session: Any) -> list[Any]:
    tools: list[Any] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await session.list_tools(cursor)
        tools += page.tools
        cursor = page.nextCursor
        if not cursor:
            break
    return tools


def _innermost(error: BaseException) -> str:
    """What happened, out of the groups that task groups wrap it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
