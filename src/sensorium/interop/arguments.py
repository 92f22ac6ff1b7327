"""Checks of a call's arguments before they go to where a mistake of the model would be an accident."""

from collections.abc import Mapping
from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def problem_of(schema: Mapping[str, Any] | None, arguments: Mapping[str, Any] | str) -> str:
    """What is wrong with arguments: no object, missing, unknown, of another type, not in the list; or empty.

    Args:
        schema: JSON schema of an object; only its first level is looked at.
        arguments: What was sent; text where it was no JSON object.
    """
    if isinstance(arguments, str):
        return f"the arguments are no JSON object: {arguments[:200]!r}"
    schema = schema or {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    missing = [str(name) for name in schema.get("required") or () if name not in arguments]
    if missing:
        return f"missing: {', '.join(missing)}"
    unknown = [name for name in arguments if name not in properties]
    if unknown and not schema.get("additionalProperties"):
        return f"unknown: {', '.join(unknown)}; known: {', '.join(properties) or 'none'}"
    for name, value in arguments.items():
        wanted = properties.get(name)
        if isinstance(wanted, Mapping) and (found := _misfit(wanted, value)):
            return f"{name}: {found}"
    return ""


def _misfit(wanted: Mapping[str, Any], value: Any) -> str:
    choices = wanted.get("enum")
    if isinstance(choices, list) and value not in choices:
        return f"{value!r} is none of {', '.join(map(repr, choices))}"
    kinds = wanted.get("type")
    names = [str(name) for name in kinds] if isinstance(kinds, list) else [str(kinds)]
    if not all(name in _KINDS for name in names):
        return ""
    fits = any(
        isinstance(value, _KINDS[name]) and not (isinstance(value, bool) and name in ("integer", "number"))
        for name in names
    )
    whole = "integer" in names and isinstance(value, float) and value.is_integer()
    return "" if fits or whole else f"expected {' or '.join(names)}, found {str(value)[:100]!r}"
