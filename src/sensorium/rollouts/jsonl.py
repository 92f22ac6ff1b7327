"""Lines of JSON, written and read fast, whatever text is in them."""

import json
import math
from typing import Any

import orjson

_SHOWN = 60


def dumps(value: Any, *, pretty: bool = False) -> bytes:
    """JSON, without line ends unless it is `pretty`.

    NaN and infinity become null. Half a surrogate pair, which UTF-8 cannot hold, is written as an escape.

    Raises:
        TypeError: The value holds something that JSON cannot.
    """
    try:
        layout = orjson.OPT_INDENT_2 if pretty else 0
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS | layout)
    except TypeError:  # surrogates, integers over 64 bits, depth
        text = json.dumps(
            _finite(value), indent=2 if pretty else None, separators=None if pretty else (",", ":")
        )
        return text.encode("ascii")


def loads(data: bytes | str) -> Any:
    """Read JSON, also with the escapes of half surrogate pairs and with numbers of any length.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            return json.loads(data)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def line_problem(data: bytes) -> str | dict[str, Any]:
    """The object in a line, or in words what is wrong with it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8 (byte {error.start}: {data[error.start : error.start + 4]!r})"
    try:
        value = loads(text)
    except ValueError as error:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        return f"not JSON ({str(error).partition(': line')[0]}): {shown}"
    if not isinstance(value, dict):
        return f"a JSON {_called(value)}; expected an object"
    return value


def _finite(value: Any) -> Any:
    """A value without NaN and infinity, for which JSON has no form: null stands for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _called(value: Any) -> str:
    match value:
        case list():
            return "array"
        case str():
            return "string"
        case bool():
            return "boolean"
        case None:
            return "null"
        case _:
            return "number"
