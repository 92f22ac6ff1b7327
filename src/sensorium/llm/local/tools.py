"""Tools of a request in one form, and which of them must be called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sensorium.core.errors import nearest
from sensorium.llm.local.requests import RequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that may be called."""

    name: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments, an object."""
    function: Mapping[str, Any]
    """As it was described: name, description, parameters..."""
    is_strict: bool = False
    """Whether its schema must be kept to the letter; else keywords that cannot be enforced are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """The tools of a request and what is to be done with them."""

    shown: tuple[Tool, ...] = ()
    """Told to the model."""
    callable: tuple[Tool, ...] = ()
    """Calls of these are read from the answer; empty when none may be called."""
    is_required: bool = False
    """Whether the answer must be a call."""


def read_tools(tools: Sequence[Mapping[str, Any]] | None) -> tuple[Tool, ...]:
    """Read tools in the form of chat completions, or of the responses API.

    Raises:
        RequestError: One is no function, has no name or the name of another, or its parameters are no schema
            of an object.
    """
    read = tuple(_read_tool(tool) for tool in tools or ())
    names = [tool.name for tool in read]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RequestError(f"Several tools have the name {twice[0]!r}. Expected different names.")
    return read


def read_choice(choice: Any, tools: tuple[Tool, ...]) -> ToolUse:
    """Read ``tool_choice``: ``auto``, ``none``, ``required``, or a named function in either API's form.

    Raises:
        RequestError: It is neither, or names no tool of the request.
    """
    if choice is None or choice == "auto":
        return ToolUse(shown=tools, callable=tools)
    if choice == "none":
        return ToolUse(shown=tools)
    if choice in ("required", "any"):
        if not tools:
            raise RequestError("tool_choice is 'required', but the request has no tools.")
        return ToolUse(shown=tools, callable=tools, is_required=True)
    function = choice.get("function", choice) if isinstance(choice, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise RequestError(
            f"tool_choice is {choice!r}. Expected 'auto', 'none', 'required' or "
            "{'type': 'function', 'function': {'name': ...}}."
        )
    named = tuple(tool for tool in tools if tool.name == name)
    if not named:
        raise RequestError(
            f"tool_choice names {name!r}, which is no tool of the request. "
            f"{nearest(name, [tool.name for tool in tools])}"
        )
    return ToolUse(shown=tools, callable=named, is_required=True)


def _read_tool(tool: Any) -> Tool:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    kind = tool.get("type", "function") if isinstance(tool, Mapping) else None
    if kind != "function" or not isinstance(function, Mapping):
        raise RequestError(f"A tool is {tool!r}. Expected {{'type': 'function', 'function': {{...}}}}.")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise RequestError(f"A tool has the name {name!r}. Expected a text.")
    parameters = function.get("parameters")
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
        raise RequestError(
            f"The parameters of tool {name!r} are no JSON schema of an object: {parameters!r}."
        )
    described = {key: value for key, value in function.items() if key not in ("type", "strict")}
    return Tool(
        name=name,
        parameters=parameters,
        function={**described, "parameters": dict(parameters)},
        is_strict=function.get("strict") is True,
    )
