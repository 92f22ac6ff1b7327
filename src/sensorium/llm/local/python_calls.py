"""Tools told and called as Python functions: a third to a half of the tokens of JSON, for small models.

The model reads ``lookup(item: str, attribute: str): Look up one attribute.`` and answers
``lookup("vase", "color")``.
"""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sensorium.llm.local.tools import Tool

TOOLS_TEXT = """You can call these functions:
{tools}

To call one, answer with the call and nothing else, as in Python. What it returns follows between
<tool_response> marks."""
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}


def described(tool: Tool) -> str:
    """A tool as a line with its signature, and a line for each parameter that is explained."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    signature = ", ".join(_parameter(tool, name, schema) for name, schema in properties.items())
    about = str(tool.function.get("description") or "").strip()
    lines = [f"{tool.name}({signature})" + (f": {about}" if about else "")]
    for name, schema in properties.items():
        if isinstance(schema, Mapping) and schema.get("description"):
            lines.append(f"    {name}: {schema['description']}")
    return "\n".join(lines)


def written(name: str, arguments: Any) -> str:
    """A call as the model would write it; arguments that are no object stay as they are."""
    if not isinstance(arguments, Mapping):
        return f"{name}({arguments or ''})"
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def read_python_calls(text: str, tools: Sequence[Tool]) -> list[tuple[str, str]] | None:
    """Calls in an answer that is nothing but calls, one under the other or in a list.

    Args:
        text: The answer.
        tools: Which may be called. Arguments without a name go to the parameters in their order.

    Returns:
        For each call its name and its arguments as JSON text; None when the answer is anything else.
    """
    known = {tool.name: tool for tool in tools}
    try:
        body = ast.parse(text.strip()).body
        calls = [_read(node, known) for statement in body for node in _nodes(statement)]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return calls or None


def _parameter(tool: Tool, name: str, schema: Any) -> str:
    told = schema if isinstance(schema, Mapping) else {}
    kind = told.get("type")
    shown = f"{name}: {_TYPES[kind]}" if isinstance(kind, str) and kind in _TYPES else name
    if "enum" in told:
        shown = f"{name}: {' | '.join(map(repr, told['enum']))}"
    if name in tool.parameters.get("required", ()):
        return shown
    return f"{shown} = {told.get('default')!r}"


def _nodes(statement: ast.stmt) -> Iterator[ast.expr]:
    """Expressions of a statement, those of a list one by one."""
    if not isinstance(statement, ast.Expr):
        raise ValueError("not a call")
    value = statement.value
    yield from value.elts if isinstance(value, ast.List | ast.Tuple) else (value,)


def _read(node: ast.expr, known: Mapping[str, Tool]) -> tuple[str, str]:
    """One call.

    Raises:
        ValueError: It is no call of a known tool with literal arguments, each given once.
    """
    match node:
        case ast.Call(func=ast.Name(id=name), args=values, keywords=named) if name in known:
            parameters = list(known[name].parameters.get("properties", {}))
            given = list(zip(parameters, values, strict=False)) + [(word.arg, word.value) for word in named]
            arguments = {key: ast.literal_eval(value) for key, value in given}
            if len(values) > len(parameters) or len(arguments) < len(given) or None in arguments:
                raise ValueError("too many arguments, one twice, or a dictionary in place of names")
            return name, json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    raise ValueError("not a call")
