"""Tools: functions that an agent may call, with a schema, checked arguments and a time limit."""

import asyncio
import copy
import functools
import inspect
import json
import logging
import re
import time
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from sensorium.core import SensoriumError
from sensorium.core.errors import nearest
from sensorium.envs.base import ToolCall, ToolFailure, ToolResult
from sensorium.llm.messages import AnyBlock, AudioBlock, ImageBlock, OtherBlock, TextBlock
from sensorium.observations.profile import safe_str

_log = logging.getLogger(__name__)
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_MARK = "__sensorium_tool__"
_MAX_PROBLEMS = 5
_ARGUMENT = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_BLOCKS = (TextBlock, ImageBlock, AudioBlock, OtherBlock)


class ToolError(SensoriumError):
    """Raised by a tool to refuse: the message is what the agent reads."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that an agent may call."""

    name: str
    description: str
    arguments: type[BaseModel]
    """Checks the arguments."""
    function: Callable[..., Any]
    """Called with the checked arguments, maybe asynchronous. Returns text, blocks, or what JSON can hold."""
    timeout_s: float = 60.0

    def schema(self) -> dict[str, Any]:
        """The tool in the chat-completions form."""
        parameters = copy.deepcopy(_parameters(self.arguments))
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": parameters},
        }

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, name: str | None = None, timeout_s: float = 60.0
    ) -> "Tool":
        """Make a tool of a function: its signature is the schema, its docstring the descriptions.

        Raises:
            TypeError: A parameter has no type, or is positional only or variadic.
        """
        summary, described = _docstring(inspect.getdoc(function) or "")
        hints = get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            label = f"{parameter.name} of the tool {function.__name__}"
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise TypeError(f"{label} cannot be given by name")
            if parameter.name not in hints:
                raise TypeError(f"{label} has no type")
            default = ... if parameter.default is parameter.empty else parameter.default
            about = described.get(parameter.name)
            fields[parameter.name] = (hints[parameter.name], Field(default=default, description=about))
        settings = ConfigDict(extra="forbid", protected_namespaces=())
        model = create_model(function.__name__, __config__=settings, **fields)
        return cls(name or function.__name__, summary, model, function, timeout_s)


def tool(*, timeout_s: float = 60.0, name: str | None = None) -> Callable[[FunctionT], FunctionT]:
    """Mark a method of a `ToolEnv` as a tool.

    Args:
        timeout_s: Limit of one call, seconds.
        name: Under which the agent calls it; the method's by default.
    """

    def mark(function: FunctionT) -> FunctionT:
        setattr(function, _MARK, {"timeout_s": timeout_s, "name": name})
        return function

    return mark


class ToolBox:
    """The tools of one environment, by name.

    Raises:
        ValueError: Two tools have the same name.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for one in tools:
            if one.name in self._tools:
                raise ValueError(f"two tools are called {one.name}")
            self._tools[one.name] = one
        self._schemas = tuple(one.schema() for one in self._tools.values())

    @classmethod
    def of(cls, owner: object) -> "ToolBox":
        """The marked methods of an object, in the order of their definition, those of base classes first."""
        tools = _marked_tools(type(owner))  # type: ignore[arg-type]  # a class is hashable
        return cls(replace(one, function=getattr(owner, method)) for method, one in tools.items())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tools."""
        return tuple(self._tools)

    @property
    def schemas(self) -> Sequence[Mapping[str, Any]]:
        """All tools in the chat-completions form."""
        return self._schemas

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one call; whatever goes wrong is said in the result.

        What a tool raises beside `ToolError` is logged with its traceback, and told without.
        """
        started = time.perf_counter()
        content, failure = await self._run(call)
        wall_s = time.perf_counter() - started
        return ToolResult(call_id=call.id, name=call.name, content=content, failure=failure, wall_s=wall_s)

    async def _run(self, call: ToolCall) -> tuple[tuple[AnyBlock, ...], ToolFailure | None]:
        known = self._tools.get(call.name)
        if known is None:
            return _say(f"There is no tool {call.name!r}. {nearest(call.name, self._tools)}"), "unknown_tool"
        if isinstance(call.arguments, str):
            return _say(f"{call.name}: the arguments are no JSON object: {call.arguments[:200]!r}"), (
                "invalid_arguments"
            )
        try:
            checked = known.arguments.model_validate(call.arguments)
        except (ValidationError, RecursionError) as error:
            return _say(f"{call.name}: {_explain(error)}"), "invalid_arguments"
        given = {name: getattr(checked, name) for name in type(checked).model_fields}
        try:
            async with asyncio.timeout(known.timeout_s) as limit:
                if inspect.iscoroutinefunction(known.function):
                    value = await known.function(**given)
                else:
                    value = await asyncio.to_thread(known.function, **given)
            return blocks_of(value), None
        except TimeoutError:
            if not limit.expired():
                _log.exception("the tool %s crashed", call.name)
                return _say(_broke(call.name, "TimeoutError")), "crashed"
            return _say(f"{call.name} took longer than {known.timeout_s:g} s and was stopped."), "timeout"
        except ToolError as error:
            return _say(f"{call.name}: {error}"), "refused"
        except Exception as error:
            _log.exception("the tool %s crashed", call.name)
            return _say(_broke(call.name, type(error).__name__)), "crashed"


@functools.cache
def _marked_tools(kind: type) -> Mapping[str, Tool]:
    """Method -> tool of a class; made once, since environments are made for every episode.

    The functions in them are not bound to an environment yet.
    """
    marked: dict[str, Mapping[str, Any]] = {}
    for base in reversed(kind.__mro__):
        for name, member in vars(base).items():
            if hasattr(member, _MARK):
                marked[name] = getattr(member, _MARK)
    return {
        name: Tool.from_function(types.MethodType(getattr(kind, name), kind), **options)
        for name, options in marked.items()
    }


@functools.cache
def _parameters(arguments: type[BaseModel]) -> dict[str, Any]:
    parameters: dict[str, Any] = _plain(arguments.model_json_schema())
    return parameters


def blocks_of(value: Any) -> tuple[AnyBlock, ...]:
    """What a tool returned as blocks: text as it is, blocks as they are, all else as JSON."""
    if isinstance(value, _BLOCKS):
        return (value,)
    if isinstance(value, list | tuple) and value and all(isinstance(one, _BLOCKS) for one in value):
        return tuple(value)
    if isinstance(value, str):
        return (TextBlock(text=value),)
    if value is None:
        return (TextBlock(text="done"),)
    return (TextBlock(text=json.dumps(value, ensure_ascii=False, default=str)),)


def _broke(name: str, what: str) -> str:
    return f"{name} broke ({what}); this is a fault of the environment."


def _say(text: str) -> tuple[AnyBlock, ...]:
    return (TextBlock(text=text),)


def _explain(error: ValidationError | RecursionError) -> str:
    """What is wrong with arguments, without what pydantic adds."""
    if isinstance(error, RecursionError):
        return "the arguments are nested too deeply"
    problems = error.errors(include_url=False, include_context=False)
    lines = []
    for problem in problems[:_MAX_PROBLEMS]:
        place = ".".join(str(step) for step in problem["loc"]) or "arguments"
        found = "" if problem["type"] == "missing" else f", found {safe_str(problem['input'])[:100]!r}"
        lines.append(f"{place}: {problem['msg']}{found}")
    more = len(problems) - _MAX_PROBLEMS
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """Description and arguments of a docstring with Google's sections."""
    head, *sections = re.split(r"\n(Args|Returns|Raises|Example):\n", text)
    described: dict[str, str] = {}
    for title, body in zip(sections[::2], sections[1::2], strict=False):
        if title != "Args":
            continue
        indent = len(body) - len(body.lstrip())
        name = None
        for line in body.splitlines():
            match = _ARGUMENT.match(line) if len(line) - len(line.lstrip()) <= indent else None
            if match:
                name = match[1]
                described[name] = match[2].strip()
            elif name and line.strip():
                described[name] += " " + line.strip()
    return " ".join(head.split()), described


def _plain(schema: Any) -> Any:
    """A JSON schema without the titles that pydantic adds; models read it, and titles cost tokens."""
    if isinstance(schema, dict):
        kept = {
            key: _plain(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str)) and key != "additionalProperties"
        }
        if isinstance(schema.get("properties"), dict):  # a parameter may be called title
            kept["properties"] = {name: _plain(one) for name, one in schema["properties"].items()}
        return kept
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema
