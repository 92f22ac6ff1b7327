"""Values with arrays as one binary message: a JSON header, then the bytes of the arrays.

    bytes    what
    4        ``SNS1``
    4        length of the header, unsigned, little-endian
    n        the header, JSON in UTF-8, filled up with blanks to a multiple of 8
    ...      the arrays one after another, little-endian, C order, each filled up to a multiple of 8

The header is ``{"value": ..., "arrays": [[dtype, shape], ...]}``. In the value, ``{"$array": i}`` stands for
array i, and ``{"$text": [...], "shape": ...}`` for an array of texts; keys of other objects that begin with
``$`` have one ``$`` more. Nothing in a message is executed: there is no pickle, and sizes are checked before
anything is allocated.
"""

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json, to_json

from sensorium.core.errors import EnvError

MAGIC = b"SNS1"
MAX_HEADER_BYTES = 1024 * 1024
MAX_ARRAYS = 4096
_PREFIX = struct.Struct("<4sI")
_ALIGN = 8
_MAX_DIMS = 16
_MAX_DEPTH = 32
_MAX_TEXT_CHARS = 2**22
_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
} | {name: np.dtype(name).newbyteorder("<") for name in ("float16", "float32", "float64")}
"""The types that travel, by name."""
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class FrameError(EnvError):
    """A message is not what this module writes."""


def pack(value: Any) -> bytes:
    """A value as a message.

    Args:
        value: None, numbers, texts, NumPy arrays of numbers, flags or texts; lists, tuples and dicts of such.
            Tuples become lists.

    Raises:
        FrameError: Something in it cannot be sent.

    Example:
        >>> unpack(pack({"reward": np.zeros(2, np.float32), "status": "running"}))
        {'reward': array([0., 0.], dtype=float32), 'status': 'running'}
    """
    arrays: list[NDArray[Any]] = []
    tree = _plain(value, arrays, 0)
    table = [[_NAMES[array.dtype], array.shape] for array in arrays]
    header = to_json({"value": tree, "arrays": table})
    header += b" " * (-len(header) % _ALIGN)
    if len(header) > MAX_HEADER_BYTES or len(arrays) > MAX_ARRAYS:
        raise FrameError(
            f"A message has at most {MAX_HEADER_BYTES:,} bytes beside its arrays, and {MAX_ARRAYS:,} arrays; "
            f"this one {len(header):,} and {len(arrays):,}."
        )
    pieces = [_PREFIX.pack(MAGIC, len(header)), header]
    for array in arrays:
        data = array.tobytes()
        pieces += [data, b"\0" * (-len(data) % _ALIGN)]
    return b"".join(pieces)


def unpack(message: bytes) -> Any:
    """The value of a message; its arrays are copies that belong to the caller.

    Raises:
        FrameError: It is truncated, too long, or not such a message at all.
    """
    header, start = _header(message)
    table = header.get("arrays")
    if not isinstance(table, list) or len(table) > MAX_ARRAYS:
        raise FrameError(f"A message lists its arrays, at most {MAX_ARRAYS:,} of them.")
    arrays: list[NDArray[Any]] = []
    for entry in table:
        dtype, shape = _kind(entry)
        count = math.prod(shape)
        length = count * dtype.itemsize
        if start + length > len(message):
            raise FrameError(
                f"The message ends within array {len(arrays)} ({dtype.name}, shape {list(shape)}): "
                f"{len(message) - start:,} bytes are left of {length:,}."
            )
        read = np.frombuffer(message, dtype, count, start) if count else np.empty(0, dtype)
        try:
            arrays.append(read.reshape(shape).copy())
        except ValueError as error:  # nothing in it, and too large all the same
            raise FrameError(f"There is no array of the shape {list(shape)}.") from error
        start += length + -length % _ALIGN
    if start != len(message):
        raise FrameError(f"The message has {len(message):,} bytes; its header tells of {start:,}.")
    return _restored(header.get("value"), arrays, 0)


def _header(message: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin."""
    if len(message) < _PREFIX.size:
        raise FrameError(f"A message has at least {_PREFIX.size} bytes; this one has {len(message)}.")
    magic, length = _PREFIX.unpack_from(message)
    if magic != MAGIC:
        raise FrameError(f"A message begins with {MAGIC!r}; this one with {magic!r}.")
    if length > MAX_HEADER_BYTES or length % _ALIGN:
        raise FrameError(
            f"A header has at most {MAX_HEADER_BYTES:,} bytes, a multiple of {_ALIGN}; this one {length:,}."
        )
    start = _PREFIX.size + length
    if start > len(message):
        raise FrameError(f"The message ends within its header: {len(message):,} bytes of {start:,}.")
    try:
        header = from_json(message[_PREFIX.size : start], allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"The header is no JSON: {error}.") from error
    if not isinstance(header, dict):
        raise FrameError("The header is no JSON object.")
    return header, start


def _kind(entry: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Type and shape of an array in the header's table."""
    name, shape = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
    dtype = _DTYPES.get(name) if isinstance(name, str) else None
    if dtype is None:
        raise FrameError(f"An array is [dtype, shape], of the types {', '.join(_DTYPES)}.")
    if not isinstance(shape, list) or len(shape) > _MAX_DIMS:
        raise FrameError(f"A shape is a list of at most {_MAX_DIMS} sizes.")
    if not all(type(size) is int and 0 <= size < 2**40 for size in shape):
        raise FrameError("The sizes of a shape are whole numbers of 0 or more.")
    return dtype, tuple(shape)


def _plain(value: Any, arrays: list[NDArray[Any]], depth: int) -> Any:
    """A value as JSON; its arrays are moved to the list."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case np.ndarray() | np.generic() | float():
            return _array(np.asarray(value), arrays)
    if depth >= _MAX_DEPTH:
        raise FrameError(f"A value is nested more than {_MAX_DEPTH} deep.")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise FrameError("The keys of a dict must be texts.")
        return {
            (f"${key}" if key.startswith("$") else key): _plain(one, arrays, depth + 1)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(one, arrays, depth + 1) for one in value]
    raise FrameError(f"A {type(value).__name__} cannot be sent: arrays, numbers, texts, lists and dicts can.")


def _array(array: NDArray[Any], arrays: list[NDArray[Any]]) -> Any:
    if array.dtype.kind == "U":
        return {"$text": array.ravel().tolist(), "shape": array.shape}
    little = array.dtype.newbyteorder("<")
    if little not in _NAMES:
        raise FrameError(f"An array of {array.dtype} cannot be sent: {', '.join(_DTYPES)} and texts can.")
    arrays.append(array.astype(little, copy=False))
    return {"$array": len(arrays) - 1}


def _restored(value: Any, arrays: list[NDArray[Any]], depth: int) -> Any:
    """The value of a header with its arrays in their places."""
    if depth > _MAX_DEPTH + 1:
        raise FrameError(f"A value is nested more than {_MAX_DEPTH} deep.")
    if isinstance(value, list):
        return [_restored(one, arrays, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    if "$array" in value:
        number = value["$array"]
        if type(number) is not int or not 0 <= number < len(arrays):
            raise FrameError(f"There is no array {str(number)[:40]}; there are {len(arrays)}.")
        return arrays[number]
    if "$text" in value:
        return _texts(value["$text"], value.get("shape"))
    return {
        key[1:] if key.startswith("$") else key: _restored(one, arrays, depth + 1)
        for key, one in value.items()
    }


def _texts(texts: Any, shape: Any) -> NDArray[Any]:
    """An array of texts, of a list of them."""
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise FrameError("An array of texts is told by a list of texts.")
    longest = max(map(len, texts), default=0)
    if longest * len(texts) > _MAX_TEXT_CHARS:
        raise FrameError(f"{len(texts)} texts of up to {longest:,} letters are too many for an array.")
    _, sizes = _kind(["uint8", shape])
    if math.prod(sizes) != len(texts):
        raise FrameError(f"{len(texts)} texts do not make the shape {list(sizes)}.")
    return np.array(texts, str).reshape(sizes)
