"""From tools and JSON schemas to grammars that decoding is held to.

Grammars are written for `llguidance`, which computes which tokens may come next. JSON is written in one form
(``", "`` and ``": "`` between parts, keys in the schema's order), as chat templates write calls.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sensorium.llm.local.requests import RequestError
from sensorium.llm.local.tools import Tool

CALL_OPENS = "<tool_call>"
CALL_CLOSES = "</tool_call>"
_MAX_CALLS = 16
_COMBINING = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef", "patternProperties"}
)


def calls_grammar(tools: Sequence[Tool], *, is_open: bool, is_parallel: bool, lenient: bool) -> str:
    """Grammar of one call of a tool, or of several.

    Args:
        tools: Which may be called, at least one.
        is_open: Whether ``<tool_call>`` has been said already.
        is_parallel: Whether more calls may follow.
        lenient: Whether keywords of schemas that cannot be enforced are passed over.
    """
    first = f"call_end: SPACE? call SPACE? {_text(CALL_CLOSES)}"
    whole = f"call_whole: {_text(CALL_OPENS + chr(10))} call {_text(chr(10) + CALL_CLOSES)}"
    more = f" (SPACE? {_text(CALL_OPENS)} call_end){{0,{_MAX_CALLS - 1}}} SPACE?" if is_parallel else ""
    lines = [f"start: {'call_end' if is_open else 'call_whole'}{more}", first]
    if not is_open:
        lines.append(whole)
    lines.append("call: " + " | ".join(f"tool_{place}" for place in range(len(tools))))
    for place, tool in enumerate(tools):
        head = f'{{"name": {json.dumps(tool.name, ensure_ascii=False)}, "arguments": '
        schema = {"type": "object", **_closed(tool.parameters)}
        lines.append(f"tool_{place}: {_text(head)} arguments_{place} {_text('}')}")
        lines.append(f"arguments_{place}: %json {_schema(schema, lenient)}")
    lines.append(r"SPACE: /[ \n]{1,3}/")
    return "\n".join(lines) + "\n"


def answer_grammar(schema: Mapping[str, Any]) -> str:
    """Grammar of an answer that is a JSON value of a schema; what cannot be enforced of it is an error."""
    return f"start: %json {_schema(schema, lenient=False)}\n"


def response_schema(response_format: Any) -> Mapping[str, Any] | None:
    """JSON schema that ``response_format`` asks for; None when any text will do.

    Raises:
        RequestError: It is of no known type.
    """
    match response_format:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return {"type": "object"}
        case {"type": "json_schema", "json_schema": {"schema": Mapping() as schema}}:
            return dict(schema)
        case {"type": "json_schema", "schema": Mapping() as schema}:
            return dict(schema)
    raise RequestError(
        f"response_format is {response_format!r}. Expected {{'type': 'text'}}, {{'type': 'json_object'}} or "
        "{'type': 'json_schema', 'json_schema': {'name': ..., 'schema': {...}}}."
    )


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with arguments that it does not name ruled out; one that says something itself is kept.

    What fits this fits the original schema, too; a model is only kept from inventing arguments.
    """
    if "additionalProperties" in schema or not isinstance(schema.get("properties", {}), Mapping):
        return dict(schema)
    if _COMBINING & schema.keys() or "unevaluatedProperties" in schema or "propertyNames" in schema:
        return dict(schema)
    required = schema.get("required", [])
    if isinstance(required, list) and not set(map(str, required)) <= schema.get("properties", {}).keys():
        return dict(schema)
    return {**schema, "additionalProperties": False}


def _schema(schema: Mapping[str, Any], lenient: bool) -> str:
    form = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": lenient}
    try:
        return json.dumps({**schema, "x-guidance": form})
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"A schema cannot be written as JSON: {error}.") from error


def _text(text: str) -> str:
    """A text as a grammar writes it."""
    return json.dumps(text, ensure_ascii=False)
