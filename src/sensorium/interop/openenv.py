"""An OpenEnv server as an environment of ours."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from sensorium.core import Config, ConfigError, EnvError, derive_seed
from sensorium.envs.base import Action, Env, Step, StepInfo, Task, ToolCall, ToolFailure, ToolResult
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.interop.arguments import problem_of
from sensorium.interop.openenv_connection import OpenEnvConnection, OpenEnvRefusedError
from sensorium.interop.openenv_raw import raw_state
from sensorium.llm.messages import AnyBlock, TextBlock, image_block

__all__ = ["OpenEnv", "OpenEnvConfig", "OpenEnvEnv"]

_ACT = "act"
_WRAPPED = "action"
_INSTRUCTION = "Reach the goal of this environment with its tools."
_TOOL_FIELDS = ("tool_name", "result", "error")
_FAILURES: dict[str, ToolFailure] = {
    "invalid_args": "invalid_arguments",
    "tool_not_found": "unknown_tool",
    "timeout": "timeout",
}
_SEED_LIMIT = 2**31


class OpenEnvConfig(Config):
    """Which server is played, and how."""

    url: str = Field(pattern=r"^(https?|wss?)://\S+$")
    """Address of the server, e.g. ``http://localhost:8000``."""
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    """Sent with every request."""
    headers_from: dict[str, str] = Field(default_factory=dict)
    """Header -> variable of our environment that holds its value, for keys."""
    reset: dict[str, Any] = Field(default_factory=dict)
    """Sent with every reset, beside ``seed`` and ``episode_id``; each environment knows its own."""
    instruction: str = _INSTRUCTION
    """What the agent is asked."""
    tools: Literal["auto", "act", "mcp"] = "auto"
    """``act`` offers one tool whose arguments are the fields of an action; ``mcp`` the tools that the
    environment lists itself; ``auto`` takes those where its actions are calls of tools."""
    raised: Literal["fails", "refused"] = "fails"
    """What it means when the environment raises at a step: the episode has ``failed`` and earns nothing, or
    the call is refused with what was raised, for environments that raise where an action is not allowed."""
    connect_timeout_s: float = Field(default=30.0, gt=0.0)
    step_timeout_s: float = Field(default=60.0, gt=0.0)
    """Of a reset, and of a step."""
    max_message_mb: float = Field(default=64.0, gt=0.0)
    """Longest answer, megabytes of 1,048,576 bytes."""


class _Answer(NamedTuple):
    observation: Mapping[str, Any]
    reward: float
    done: bool
    truncated: bool


class OpenEnvEnv:
    """A session on an OpenEnv server; an `Env`.

    The connection is opened at `reset` and closed at `close`. Fields of an observation are the raw state,
    with pictures found in them (see `openenv_raw.raw_state`). OpenEnv has no word for truncation: it is found
    in the metadata of an observation (``truncated``), and ``done`` is termination otherwise.

    Args:
        config: Which server.
    """

    def __init__(self, config: OpenEnvConfig) -> None:
        self._config = config
        self._connection: OpenEnvConnection | None = None
        self._tools: list[dict[str, Any]] = []
        self._is_act = True
        self._wraps = False
        self._return = 0.0
        self._state: dict[str, Any] | None = None
        self._over = False

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Tools in the chat-completions form; known after `reset`."""
        return self._tools

    async def reset(self, task: Task, *, seed: int | None = None) -> Any:
        """Begin an episode; see `Env.reset`.

        Raises:
            EpisodeError: The server cannot be reached, is full or does not answer.
            EnvError: It answered with an error.
        """
        await self.close()
        config = self._config
        headers = {**config.headers, **_from_environment(config.headers_from)}
        self._return, self._over = 0.0, False
        self._connection = OpenEnvConnection(
            config.url,
            headers,
            connect_timeout_s=config.connect_timeout_s,
            timeout_s=config.step_timeout_s,
            max_message_mb=config.max_message_mb,
        )
        await self._connection.open()
        data = {**config.reset, **task.data.get("reset", {})}
        data.setdefault("seed", (task.seed if seed is None else seed) % _SEED_LIMIT)
        data.setdefault("episode_id", task.id)
        try:
            answer = _answer(await self._connection.ask({"type": "reset", "data": data}))
        except OpenEnvRefusedError as error:
            raise EnvError(f"The OpenEnv server refused the reset: {error}") from error
        await self._learn_tools(self._connection)
        self._state = raw_state(answer.observation)
        return self._state

    async def step(self, action: Action) -> Step:
        """Run the calls of an action, each a step of the server; see `Env.step`."""
        if self._connection is None or self._over:
            raise EnvError("The episode is over, or none was begun; call reset(task) first.")
        results: list[ToolResult] = []
        reward, terminated, truncated = 0.0, False, False
        for call in action.calls:
            if self._over:
                results.append(_refused(call, "not run: the episode was over", "not_run"))
                continue
            result, answer = await self._call(self._connection, call)
            results.append(result)
            if answer is None:
                continue
            reward += answer.reward
            truncated = answer.done and answer.truncated
            terminated = answer.done and not truncated
            self._over = answer.done
        self._return += reward
        names = ", ".join(one["function"]["name"] for one in self._tools)
        info = StepInfo(
            results=tuple(results),
            notes=() if action.calls else (f"No tool was called. Call one of: {names}.",),
            reward_components={"env": reward},
            metrics={"env_return": self._return},
        )
        return Step(None if self._over else self._state, reward, terminated, truncated, info)

    async def close(self) -> None:
        """Close the connection, and with it the session; see `Env.close`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _learn_tools(self, connection: OpenEnvConnection) -> None:
        schema = (await connection.get("/schema")).get("action")
        schema = dict(schema) if isinstance(schema, Mapping) else {}
        kind = self._config.tools
        properties = schema.get("properties")
        fields = {name for name in properties or () if name != "metadata"}
        calls_tools = fields in ({"type", "tool_name", "arguments"}, {"tool_name", "arguments"}, set())
        is_union = not isinstance(properties, Mapping) and not {"anyOf", "oneOf", "$ref"}.isdisjoint(schema)
        self._is_act = kind == "act" or (kind == "auto" and (is_union or not calls_tools))
        if not self._is_act:
            try:
                self._tools = await _listed(connection)
                return
            except OpenEnvRefusedError as error:
                if kind == "mcp" or fields:
                    raise EnvError(f"The OpenEnv server lists no tools: {error}") from error
                self._is_act = True  # an action without fields, which is taken as it is
        metadata = await connection.get("/metadata")
        about = str(metadata.get("description") or "Act in the environment.")
        self._wraps = is_union
        if is_union:
            whole: dict[str, Any] = {key: schema.pop(key) for key in ("$defs",) if key in schema}
            parameters = {"type": "object", "properties": {_WRAPPED: schema}, "required": [_WRAPPED], **whole}
        else:
            known = {name: one for name, one in (properties or {}).items() if name != "metadata"}
            parameters = {"type": "object", "properties": known}
            parameters |= {key: schema[key] for key in ("required", "$defs") if key in schema}
        function = {"name": _ACT, "description": about, "parameters": parameters}
        self._tools = [{"type": "function", "function": function}]

    async def _call(self, connection: OpenEnvConnection, call: ToolCall) -> tuple[ToolResult, _Answer | None]:
        schemas = {one["function"]["name"]: one["function"]["parameters"] for one in self._tools}
        if call.name not in schemas:
            said = f"There is no tool {call.name!r}. Known: {', '.join(schemas)}."
            return _refused(call, said, "unknown_tool"), None
        if problem := problem_of(schemas[call.name], call.arguments):
            return _refused(call, f"{call.name}: {problem}", "invalid_arguments"), None
        data: Any = call.arguments
        if not self._is_act:
            data = {"type": "call_tool", "tool_name": call.name, "arguments": data}
        elif self._wraps:
            data = data[_WRAPPED]
        try:
            answer = _answer(await connection.ask({"type": "step", "data": data}))
        except OpenEnvRefusedError as error:
            if error.is_invalid:
                return _refused(call, f"{call.name}: {error}", "invalid_arguments"), None
            if self._config.raised == "fails":
                raise EnvError(f"The OpenEnv environment raised: {error}") from error
            return _refused(call, f"{call.name}: {error}", "refused"), None
        if self._is_act:
            self._state = raw_state(answer.observation)
            said = "the episode is over" if answer.done else "done"
            return ToolResult(call_id=call.id, name=call.name, content=(TextBlock(text=said),)), answer
        shown = {name: one for name, one in answer.observation.items() if name not in _TOOL_FIELDS}
        self._state = raw_state(shown) or self._state
        return _tool_result(call, answer.observation), answer


class OpenEnv(EnvDefinition[OpenEnvConfig]):
    """An OpenEnv server; ``openenv`` in a YAML."""

    name = "openenv"
    summary = "the environment of an OpenEnv server"
    config_type = OpenEnvConfig
    system = "You act in an environment with tools. Look at what has changed after each call, and act again."
    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def make(self, config: OpenEnvConfig) -> Env:
        """A new session; connected at its first reset."""
        return OpenEnvEnv(config)

    def tasks(
        self, config: OpenEnvConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of a split: as many seeds of the environment."""
        return [self.task(config, f"{split}-{seed}-{number}") for number in range(count)]

    def task(self, config: OpenEnvConfig, task_id: str) -> Task:
        """The task with this id, e.g. ``train-0-17``."""
        split, *numbers = task_id.split("-")
        if split not in self.splits or len(numbers) != 2 or not all(n.isdecimal() for n in numbers):
            raise ConfigError(f"openenv has no task {task_id!r}. Expected an id like train-0-17.")
        # Even seeds are for training: the splits have none in common.
        drawn = 2 * (derive_seed("openenv", task_id) % (_SEED_LIMIT // 2)) + (split == "test")
        return Task(
            id=task_id, env=self.name, instruction=config.instruction, seed=drawn, data={"seed": drawn}
        )

    def expert(self, task: Task) -> Expert:
        """OpenEnv has no scripted solutions.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError("OpenEnv's environments come without scripted solutions.")


def _from_environment(names: Mapping[str, str]) -> dict[str, str]:
    missing = [variable for variable in names.values() if variable not in os.environ]
    if missing:
        raise EnvError(f"The environment variable {missing[0]}, which holds a header, is not set.")
    return {header: os.environ[variable] for header, variable in names.items()}


def _answer(data: Mapping[str, Any]) -> _Answer:
    """Read what came of a reset or a step.

    Raises:
        EnvError: It is no observation of OpenEnv.
    """
    observation, reward = data.get("observation"), data.get("reward")
    if not isinstance(observation, Mapping) or not isinstance(reward, int | float | None):
        raise EnvError(f"The OpenEnv server sent no observation, but {str(data)[:200]}.")
    metadata = observation.get("metadata") or data.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    cut = bool(metadata.get("truncated") or metadata.get("TimeLimit.truncated"))
    return _Answer(observation, float(reward or 0.0), bool(data.get("done")), cut)


async def _listed(connection: OpenEnvConnection) -> list[dict[str, Any]]:
    found = _answer(await connection.ask({"type": "step", "data": {"type": "list_tools"}}))
    empty = {"type": "object", "properties": {}}
    return [
        {
            "type": "function",
            "function": {
                "name": one["name"],
                "description": one.get("description") or "",
                "parameters": one.get("input_schema") or empty,
            },
        }
        for one in found.observation.get("tools") or ()
    ]


def _refused(call: ToolCall, said: str, failure: ToolFailure) -> ToolResult:
    return ToolResult(call_id=call.id, name=call.name, content=(TextBlock(text=said),), failure=failure)


def _tool_result(call: ToolCall, observation: Mapping[str, Any]) -> ToolResult:
    error, result = observation.get("error"), observation.get("result")
    if isinstance(error, Mapping):
        failure = _FAILURES.get(str(error.get("error_type")), "refused")
        return _refused(call, f"{call.name}: {error.get('message')}", failure)
    parts = result.get("content") if isinstance(result, Mapping) else None
    failed = isinstance(result, Mapping) and bool(result.get("is_error") or result.get("isError"))
    content: tuple[AnyBlock, ...]
    if isinstance(parts, list) and parts and all(isinstance(one, Mapping) for one in parts):
        content = tuple(_block(one) for one in parts)
    else:
        content = (TextBlock(text=result if isinstance(result, str) else json.dumps(result)),)
    return ToolResult(call_id=call.id, name=call.name, content=content, failure="refused" if failed else None)


def _block(part: Mapping[str, Any]) -> AnyBlock:
    if part.get("type") == "image" and isinstance(part.get("data"), str):
        return image_block(f"data:{part.get('mimeType') or 'image/png'};base64,{part['data']}")
    text = part.get("text")
    return TextBlock(text=text if isinstance(text, str) else json.dumps(dict(part), default=str))
