"""Tools of MCP servers beside the tools of an environment."""

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from sensorium.core import Config, EnvError, parse_config
from sensorium.envs.base import Action, Env, Step, StepInfo, Task, ToolCall, ToolFailure, ToolResult
from sensorium.envs.definition import EnvDefinition, Expert, find_env
from sensorium.interop.mcp_connection import (
    McpConnection,
    McpGoneError,
    McpRefusedError,
    McpServerConfig,
)
from sensorium.llm.messages import SOUND_FORMATS, AnyBlock, TextBlock, image_block, sound_block
from sensorium.servers.runtime import Runtime

__all__ = ["McpConnection", "McpEnv", "McpServerConfig", "McpToolsConfig", "WithMcpTools"]

_NOT_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_CHARS = 64
_OF = "mcp_tools_of"


class _Offered(NamedTuple):
    """A tool of a server, under the name that the agent knows."""

    connection: McpConnection
    name: str
    schema: Mapping[str, Any]


class McpEnv:
    """An environment with the tools of MCP servers beside its own; an `Env`.

    Servers are connected to at `reset` and left at `close`: each episode has its own processes. A tool keeps
    its name; when that is taken, the server's stands in front of it. A server that is gone, or that answers
    with an error, is a refused call, and the episode goes on.

    Args:
        env: Whose tools come first; closed with this one.
        servers: Which servers.

    Example:
        >>> server = McpServerConfig(name="files", command=("python", "-m", "my_files"))
        >>> env = McpEnv(find_env("lookup").make(parse_config(find_env("lookup").config_type, {})), [server])
    """

    def __init__(self, env: Env, servers: Sequence[McpServerConfig]) -> None:
        self._env, self._servers = env, tuple(servers)
        self._connections: list[McpConnection] = []
        self._offered: dict[str, _Offered] = {}
        self._last = Step(None, 0.0, False, False, StepInfo())

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Tools of the environment, then those of the servers, which are known after `reset`."""
        return [*self._env.tools, *(one.schema for one in self._offered.values())]

    async def reset(self, task: Task, *, seed: int | None = None) -> Any:
        """Begin an episode and connect; see `Env.reset`.

        Raises:
            EnvError: A server cannot be started or reached.
        """
        await self._disconnect()
        observation = await self._env.reset(task, seed=seed)
        self._last = Step(observation, 0.0, False, False, StepInfo())
        self._connections = [McpConnection(config) for config in self._servers]
        try:
            async with asyncio.TaskGroup() as group:
                started = [group.create_task(one.start()) for one in self._connections]
        except BaseExceptionGroup as problems:
            await self._disconnect()
            raise problems.exceptions[0] from problems
        except BaseException:
            await self._disconnect()
            raise
        for connection, tools in zip(self._connections, started, strict=True):
            self._offer(connection, tools.result())
        return observation

    async def step(self, action: Action) -> Step:
        """Run the calls of an action in their order, here or in the environment; see `Env.step`."""
        if not any(call.name in self._offered for call in action.calls):
            self._last = await self._env.step(action)
            return self._last
        taken = _Taken(self._last)
        for calls in _runs(action.calls, self._offered):
            if taken.done:
                content = (TextBlock(text="not run: the episode was over"),)
                taken.results += [
                    ToolResult(call_id=one.id, name=one.name, content=content, failure="not_run")
                    for one in calls
                ]
            elif calls[0].name in self._offered:
                taken.results += [await self._call(call) for call in calls]
            else:
                said = action.text if not taken.asked else ""
                taken.add(await self._env.step(Action(text=said, calls=calls)))
        self._last = taken.step()
        return self._last

    async def close(self) -> None:
        """Leave the servers and close the environment; see `Env.close`."""
        try:
            await self._disconnect()
        finally:
            await self._env.close()

    async def _disconnect(self) -> None:
        connections, self._connections = self._connections, []
        self._offered = {}
        await asyncio.gather(*(one.close() for one in connections), return_exceptions=True)

    def _offer(self, connection: McpConnection, tools: Sequence[Any]) -> None:
        config = connection.config
        wanted = {tool.name: tool for tool in tools if config.tools is None or tool.name in config.tools}
        missing = [name for name in config.tools or () if name not in wanted]
        if missing:
            known = ", ".join(tool.name for tool in tools) or "none"
            raise EnvError(f"The MCP server {config.name} has no tool {missing[0]!r}. Its tools: {known}.")
        taken = {one["function"]["name"] for one in self._env.tools} | set(self._offered)
        for tool in wanted.values():
            name = _free_name(tool.name, config.name, taken)
            taken.add(name)
            function = {
                "name": name,
                "description": tool.description or "",
                "parameters": tool.inputSchema or {"type": "object", "properties": {}},
            }
            self._offered[name] = _Offered(connection, tool.name, {"type": "function", "function": function})

    async def _call(self, call: ToolCall) -> ToolResult:
        started = time.perf_counter()
        content, failure = await self._answer(call)
        wall_s = time.perf_counter() - started
        return ToolResult(call_id=call.id, name=call.name, content=content, failure=failure, wall_s=wall_s)

    async def _answer(self, call: ToolCall) -> tuple[tuple[AnyBlock, ...], ToolFailure | None]:
        connection, name, _ = self._offered[call.name]
        if isinstance(call.arguments, str):
            said = f"{call.name}: the arguments are no JSON object: {call.arguments[:200]!r}"
            return (TextBlock(text=said),), "invalid_arguments"
        try:
            result = await connection.call(name, call.arguments)
        except TimeoutError:
            limit_s = connection.config.timeout_s
            return (
                TextBlock(text=f"{call.name} took longer than {limit_s:g} s and was stopped."),
            ), "timeout"
        except (McpGoneError, McpRefusedError) as error:
            return (TextBlock(text=f"{call.name}: {error}"),), "refused"
        return result_blocks(result), "refused" if result.isError else None


class _Taken:
    """What the pieces of one action brought together."""

    def __init__(self, last: Step) -> None:
        self.results: list[ToolResult] = []
        self.asked: list[Step] = []
        self._last = last

    @property
    def done(self) -> bool:
        return bool(self.asked) and (self.asked[-1].terminated or self.asked[-1].truncated)

    def add(self, step: Step) -> None:
        self.asked.append(step)
        self.results += step.info.results

    def step(self) -> Step:
        last = self.asked[-1] if self.asked else self._last
        components: dict[str, float] = {}
        for one in self.asked:
            for name, value in one.info.reward_components.items():
                components[name] = components.get(name, 0.0) + value
        info = StepInfo(
            results=tuple(self.results),
            notes=tuple(note for one in self.asked for note in one.info.notes),
            reward_components=components,
            metrics=last.info.metrics,
        )
        reward = sum(one.reward for one in self.asked)
        asked = bool(self.asked)
        return Step(last.observation, reward, asked and last.terminated, asked and last.truncated, info)


class McpToolsConfig(Config):
    """An environment, and the servers whose tools are added."""

    environment: str
    """Its name, or ``package.module:Definition``."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Its settings."""
    servers: tuple[McpServerConfig, ...] = Field(min_length=1)
    unsafe_no_sandbox: bool = False
    """Passed on to an environment that runs untrusted code and has this setting."""


class WithMcpTools(EnvDefinition[McpToolsConfig]):
    """Any environment with the tools of MCP servers; ``mcp`` in a YAML.

    What the environment says of how to play stands in front of each task's instruction.
    """

    name = "mcp_tools"
    summary = "any environment, with the tools of MCP servers beside its own"
    config_type = McpToolsConfig
    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def make(self, config: McpToolsConfig) -> Env:
        """A new environment; servers are started at its first reset."""
        inner, settings = _inner(config)
        return McpEnv(inner.make(settings), config.servers)

    def tasks(
        self, config: McpToolsConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of the environment."""
        inner, settings = _inner(config)
        found = inner.tasks(settings, split=split, count=count, seed=seed)
        return [self._task(inner, config, task) for task in found]

    def task(self, config: McpToolsConfig, task_id: str) -> Task:
        """The task with this id."""
        inner, settings = _inner(config)
        return self._task(inner, config, inner.task(settings, task_id))

    def expert(self, task: Task) -> Expert:
        """The environment's own, which does without the servers."""
        return find_env(str(task.hidden[_OF])).expert(task)

    def prepare(self, config: McpToolsConfig) -> None:
        """Prepare the environment."""
        inner, settings = _inner(config)
        inner.prepare(settings)

    def _task(self, inner: EnvDefinition[Any], config: McpToolsConfig, task: Task) -> Task:
        said = "\n\n".join(text for text in (inner.system, task.instruction) if text)
        hidden = {**task.hidden, _OF: config.environment}
        return task.model_copy(update={"env": self.name, "instruction": said, "hidden": hidden})


def result_blocks(result: Any) -> tuple[AnyBlock, ...]:
    """What a tool answered (`mcp.types.CallToolResult`) as blocks: pictures and sounds stay what they are."""
    blocks = [_block(one) for one in result.content]
    if not blocks and result.structuredContent is not None:
        blocks = [TextBlock(text=json.dumps(result.structuredContent, ensure_ascii=False))]
    return tuple(blocks) or (TextBlock(text="done"),)


def _block(content: Any) -> AnyBlock:
    match content.type:
        case "text":
            return TextBlock(text=content.text)
        case "image":
            return image_block(f"data:{content.mimeType};base64,{content.data}")
        case "audio":
            kind = content.mimeType.rpartition("/")[2].removeprefix("x-").replace("mpeg", "mp3")
            if kind in SOUND_FORMATS:
                return sound_block(content.data, kind)
            return TextBlock(text=f"[a sound of type {content.mimeType}]")
        case "resource":
            return _resource(content.resource)
        case "resource_link":
            about = f": {content.description}" if content.description else ""
            return TextBlock(text=f"[{content.name} at {content.uri}{about}]")
    return TextBlock(text=f"[{content.type}]")


def _resource(resource: Any) -> AnyBlock:
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return TextBlock(text=text)
    kind = resource.mimeType or "application/octet-stream"
    if kind.startswith("image/"):
        return image_block(f"data:{kind};base64,{resource.blob}")
    return TextBlock(text=f"[{resource.uri}, {kind}, {len(resource.blob) * 3 // 4:,} bytes]")


def _free_name(name: str, server: str, taken: set[str]) -> str:
    """A name that chat models take and that no other tool has."""
    plain = _NOT_NAME.sub("_", name)[:_MAX_NAME_CHARS] or "tool"
    if plain not in taken:
        return plain
    number, base = 1, f"{server}_{plain}"
    free = base[:_MAX_NAME_CHARS]
    while free in taken:
        number += 1
        end = f"_{number}"
        free = base[: _MAX_NAME_CHARS - len(end)] + end
    return free


def _runs(calls: Sequence[ToolCall], ours: Mapping[str, Any]) -> list[tuple[ToolCall, ...]]:
    """Calls in their order, in pieces that go to the same place."""
    pieces: list[list[ToolCall]] = []
    for call in calls:
        if pieces and (pieces[-1][0].name in ours) == (call.name in ours):
            pieces[-1].append(call)
        else:
            pieces.append([call])
    return [tuple(piece) for piece in pieces]


def _inner(config: McpToolsConfig) -> tuple[EnvDefinition[Any], Any]:
    inner = find_env(config.environment)
    runtime = Runtime(unsafe_no_sandbox=config.unsafe_no_sandbox)
    settings = runtime.environment_settings(inner, config.config)
    return inner, parse_config(inner.config_type, settings)
