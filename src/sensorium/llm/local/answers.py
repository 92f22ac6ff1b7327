"""Reading calls of tools out of what a model wrote."""

import json
import re
from collections.abc import Collection
from typing import Any

from sensorium.llm.local.grammars import CALL_CLOSES, CALL_OPENS

_OPENS = re.compile(rf"{re.escape(CALL_OPENS)}\s*")
_CLOSES = re.compile(rf"\s*(?:{re.escape(CALL_CLOSES)}|\Z)")

Call = tuple[str, str]
"""Name of a function, and its arguments as JSON text."""


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def read_answer(text: str, names: Collection[str]) -> tuple[str, list[Call]]:
    """Separate an answer into what is said and what is called.

    A call is a JSON object with ``name`` and ``arguments`` (or ``parameters``), or a list of them, between
    ``<tool_call>`` marks; or the whole answer, when it names a tool of the request. What cannot be read as
    that stays text.

    Args:
        text: The answer.
        names: Tools of the request.
    """
    calls: list[Call] = []
    said: list[str] = []
    place = 0
    for found in _OPENS.finditer(text):
        if found.start() < place:  # inside of an argument of the call before
            continue
        value, end = _parsed_at(text, found.end())
        closed = _CLOSES.match(text, end)
        if closed and (read := _as_calls(value)):
            calls += read
            said.append(text[place : found.start()])
            place = closed.end()
    said.append(text[place:])
    if not calls:
        whole = _as_calls(_parsed(text))
        if whole and all(name in names for name, _ in whole):
            return "", whole
        return text, []
    return "\n".join(filter(None, (part.strip() for part in said))), calls


def _as_calls(value: Any) -> list[Call] | None:
    """Calls in a JSON value; None when it holds anything else."""
    calls = [_read_call(one) for one in (value if isinstance(value, list) else [value])]
    return None if None in calls else [call for call in calls if call is not None]


def _read_call(value: Any) -> Call | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        arguments = _parsed(arguments)
    if not isinstance(arguments, dict):
        return None
    return value["name"], json.dumps(arguments, ensure_ascii=False)


def _parsed(text: str) -> Any:
    """What a JSON text says; None when it is none, which is no call either."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _parsed_at(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins somewhere in a text, whatever marks stand inside of it, and its end."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
