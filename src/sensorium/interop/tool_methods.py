"""Tools as Python methods with types and docstrings, for libraries that read tools from code.

What such a library makes of a method (`transformers.utils.get_json_schema`) is again the tool's schema: type
hints carry types and choices, and what hints cannot say (defaults, limits, nested fields) stands in words
behind the description of the argument.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from types import GenericAlias
from typing import Any, Literal, Union

from sensorium.core import ConfigError

_SCALARS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
_SAID_BY_HINTS = frozenset(
    {"type", "enum", "const", "anyOf", "oneOf", "description", "title", "$defs", "additionalProperties"}
)
_SECTIONS = re.compile(r"\b(Args|Returns|Raises|Example|Examples):")
_CHOICES = re.compile(r"\(choices:", re.IGNORECASE)
_MAX_DEPTH = 8  # a schema may contain itself


def method_of(tool: Mapping[str, Any], call: Callable[[Any, str, dict[str, Any]], Any]) -> Callable[..., Any]:
    """A method that calls a tool.

    Args:
        tool: In the chat-completions form.
        call: Given the object whose method it becomes, the tool's name and the arguments. They are not
            checked before: the environment's answer to wrong ones is what its agents are to read.

    Raises:
        ConfigError: A parameter's name cannot be a name in Python.
    """
    function = tool["function"]
    name, schema = str(function["name"]), function.get("parameters") or {}
    properties: Mapping[str, Any] = schema.get("properties") or {}
    definitions = schema.get("$defs") or {}
    plain = {key: _inlined(value, definitions) for key, value in properties.items()}

    def method(self: Any, /, **arguments: Any) -> Any:
        return call(self, name, arguments)

    hints = {key: hint_of(value) for key, value in plain.items()}
    required = schema.get("required") or ()
    method.__name__ = method.__qualname__ = name
    method.__doc__ = _docstring(str(function.get("description") or name), plain)
    method.__annotations__ = hints
    try:
        parameters = [
            inspect.Parameter(
                key,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=hints[key],
                default=inspect.Parameter.empty if key in required else value.get("default"),
            )
            for key, value in plain.items()
        ]
    except ValueError as error:
        raise ConfigError(
            f"The tool {name} cannot become a Python method: {error}. Rename the parameter."
        ) from error
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    signed: Any = method
    signed.__signature__ = inspect.Signature([itself, *parameters])
    return method


def hint_of(schema: Mapping[str, Any]) -> Any:
    """The type hint that says most of a JSON schema.

    Example:
        >>> hint_of({"anyOf": [{"type": "string"}, {"type": "null"}]})
        typing.Optional[str]
        >>> hint_of({"type": "array", "items": {"enum": ["a", "b"]}})
        list[typing.Literal['a', 'b']]
    """
    if choices := _choices(schema):
        return Literal[choices]
    kinds = schema.get("anyOf") or schema.get("oneOf")
    if kinds:
        return _union(hint_of(kind) for kind in kinds)
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(hint_of({**schema, "type": one}) for one in kind)
    if kind == "array" and schema.get("items"):
        return GenericAlias(list, (hint_of(schema["items"]),))
    values_of = schema.get("additionalProperties")
    if kind == "object" and isinstance(values_of, Mapping) and values_of:
        return GenericAlias(dict, (str, hint_of(values_of)))
    return _SCALARS.get(str(kind), Any)


def _choices(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    """Values that are allowed; empty when all are, or when they are no scalars."""
    values = [schema["const"]] if "const" in schema else schema.get("enum") or ()
    return tuple(values) if all(isinstance(one, str | int | float | None) for one in values) else ()


def _union(hints: Iterable[Any]) -> Any:
    return Union[tuple(hints)]  # noqa: UP007  # made at run time


def _inlined(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> Any:
    """The schema with what it refers to in its place."""
    if isinstance(schema, list):
        return [_inlined(one, definitions, depth) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        found = definitions.get(reference.rpartition("/")[2], {}) if depth < _MAX_DEPTH else {}
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _inlined({**found, **rest}, definitions, depth + 1)
    return {key: _inlined(value, definitions, depth) for key, value in schema.items()}


def _docstring(description: str, properties: Mapping[str, Any]) -> str:
    lines = [_one_line(description)]
    if properties:
        lines += ["", "Args:"]
        lines += [f"    {name}: {_about(name, schema)}" for name, schema in properties.items()]
    return "\n".join(lines)


def _about(name: str, schema: Mapping[str, Any]) -> str:
    """Description of an argument, and in brackets what its type hint leaves out."""
    said_by_hints = _SAID_BY_HINTS if _choices(schema) else _SAID_BY_HINTS - {"enum", "const"}
    more = {key: value for key, value in schema.items() if key not in said_by_hints}
    if isinstance(more.get("items"), Mapping) and _is_said(more["items"]):
        del more["items"]
    said = "; ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in more.items())
    about = _one_line(str(schema.get("description") or name))
    return f"{about} ({_one_line(said)})" if said else about


def _is_said(schema: Mapping[str, Any]) -> bool:
    """Whether a type hint says all of a schema."""
    inner = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    inner += [one for one in (schema.get("items"), schema.get("additionalProperties")) if one]
    is_plain = all(key in _SAID_BY_HINTS or key == "items" for key in schema)
    return is_plain and all(_is_said(one) for one in inner if isinstance(one, Mapping))


def _one_line(text: str) -> str:
    """Without line ends and without what parsers of docstrings take for the beginning of a section."""
    text = _SECTIONS.sub(r"\1 -", " ".join(text.split()))
    return _CHOICES.sub("(one of:", text)
