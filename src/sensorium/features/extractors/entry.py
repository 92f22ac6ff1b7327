"""How features are kept in a cache: JSON and raw float32 numbers with a checksum, never pickle."""

import hashlib
import json
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core import FeatureError
from sensorium.features.extractors.base import Features

_MAGIC = b"SFE1"
_HEAD = struct.Struct("<4sII")  # magic, bytes of JSON, numbers of the vector
_CHECKSUM_BYTES = 16
_NO_VECTOR = 0xFFFFFFFF


class Entry(NamedTuple):
    """What an extractor found in some content, apart from any part."""

    data: dict[str, Any]
    vector: NDArray[np.float32] | None
    """Read-only."""
    summary: str


def pack(features: Features) -> bytes:
    """The bytes of an entry.

    Raises:
        FeatureError: The data of the features is not plain JSON data.
    """
    try:
        text = json.dumps({"data": features.data, "summary": features.summary}).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FeatureError(
            f"Extractor {features.extractor!r} returned data that JSON cannot express ({error}); expected "
            f"text, numbers, booleans, None, lists and dicts with text as keys."
        ) from error
    vector = features.vector
    raw = b"" if vector is None else np.ascontiguousarray(vector, "<f4").tobytes()
    count = _NO_VECTOR if vector is None else len(raw) // 4
    body = _HEAD.pack(_MAGIC, len(text), count) + text + raw
    return body + hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()


def unpack(packed: object) -> Entry | None:
    """The entry in some bytes; None when they are damaged or of another kind."""
    if not isinstance(packed, bytes) or len(packed) < _HEAD.size + _CHECKSUM_BYTES:
        return None
    body, checksum = packed[:-_CHECKSUM_BYTES], packed[-_CHECKSUM_BYTES:]
    if hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest() != checksum:
        return None
    magic, text_bytes, count = _HEAD.unpack_from(body)
    if magic != _MAGIC:
        return None
    start = _HEAD.size + text_bytes
    value = json.loads(body[_HEAD.size : start])
    vector = None if count == _NO_VECTOR else np.frombuffer(body, "<f4", count, start)
    return Entry(value["data"], vector, value["summary"])
