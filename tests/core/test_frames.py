import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.core.frames import MAGIC, MAX_HEADER_BYTES, FrameError, pack, unpack


def frame(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<4sI", MAGIC, len(text)) + text + data


def test_the_bytes_are_those_of_the_description():
    message = pack({"a": np.array([1, 2], ">i2"), "t": "ß"})
    magic, length = struct.unpack_from("<4sI", message)
    assert (magic, length % 8) == (b"SNS1", 0)
    header = json.loads(message[8 : 8 + length])
    assert header == {"value": {"a": {"$array": 0}, "t": "ß"}, "arrays": [["int16", [2]]]}
    assert message[8 + length :] == b"\x01\0\x02\0" + b"\0" * 4


def test_values_come_back_as_they_were():
    value = {
        "rgb": np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3),
        "flags": np.array([True, False]),
        "none": None,
        "nested": [{"x": np.float32(1.5)}, "text", 2**80, -1, True],
        "empty": np.zeros((0, 4), np.int64),
        "scalar": np.array(7, np.int16),
        "status": np.array(["running", "success"]),
        "grid": np.array([["a", "bb"], ["c", ""]]),
        "no_texts": np.array([], str),
        "infinite": float("-inf"),
        "$array": {"$text": 1, "$$": 2},
        "columns": np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
    }
    found = unpack(pack(value))
    assert found.keys() == value.keys()
    for key in ("rgb", "flags", "empty", "scalar", "status", "grid", "no_texts", "columns"):
        assert found[key].shape == value[key].shape
        assert found[key].dtype.kind == value[key].dtype.kind
        assert np.array_equal(found[key], value[key])
    assert found["nested"][1:] == ["text", 2**80, -1, True]
    assert found["nested"][0]["x"] == np.float32(1.5)
    assert found["infinite"] == -np.inf
    assert found["$array"] == {"$text": 1, "$$": 2}
    found["rgb"][0] = 0  # it belongs to the caller


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, np.array([object()]), np.zeros(1, complex), b"raw", {"a": {"b": {1, 2}}}]
)
def test_what_cannot_be_sent_is_refused(value):
    with pytest.raises(FrameError):
        pack(value)


def test_values_that_are_too_large_or_deep_are_refused():
    deep: list = []
    for _ in range(40):
        deep = [deep]
    with pytest.raises(FrameError, match="deep"):
        pack(deep)
    with pytest.raises(FrameError, match="beside its arrays"):
        pack("x" * (MAX_HEADER_BYTES + 1))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"", "at least"),
        (b"SNS2" + bytes(4), "begins with"),
        (struct.pack("<4sI", MAGIC, 2**31), "at most"),
        (struct.pack("<4sI", MAGIC, 64) + b"{}", "within its header"),
        (frame(b"{"), "no JSON"),
        (frame(b"[" * 5000), "no JSON"),
        (frame([1]), "no JSON object"),
        (frame({"value": 1}), "lists its arrays"),
        (frame({"value": 1, "arrays": [["object", [1]]]}, bytes(8)), "of the types"),
        (frame({"value": 1, "arrays": [["int8", [-1]]]}), "whole numbers"),
        (frame({"value": 1, "arrays": [["int8", [True]]]}), "whole numbers"),
        (frame({"value": 1, "arrays": [["float64", [2**39]]]}, bytes(8)), "within array 0"),
        (frame({"value": 1, "arrays": [["float64", [2**39, 2**39, 2**39]]]}, bytes(8)), "within array 0"),
        (frame({"value": 1, "arrays": [["int8", [0, 2**39, 2**39]]]}), "no array of the shape"),
        (frame({"value": 1, "arrays": [["int8", [1]]]}, bytes(16)), "tells of"),
        (frame({"value": {"$array": 0}, "arrays": []}), "no array 0"),
        (frame({"value": {"$array": "x"}, "arrays": []}), "no array"),
        (frame({"value": {"$text": [1], "shape": [1]}, "arrays": []}), "list of texts"),
        (frame({"value": {"$text": ["a"], "shape": [2]}, "arrays": []}), "do not make"),
        (frame({"value": {"$text": ["a" * 5000] + [""] * 5000, "shape": [5001]}, "arrays": []}), "too many"),
    ],
)
def test_messages_that_are_none_are_errors_that_say_why(message, said):
    with pytest.raises(FrameError, match=said):
        unpack(message)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 300), st.booleans())
def test_random_changes_are_read_or_refused(noise, place, cut):
    message = bytearray(pack({"a": np.arange(20, dtype=np.float32), "b": ["x", {"c": np.array(["t"])}]}))
    changed = bytes(message[:place] if cut else message[:place] + noise + message[place + len(noise) :])
    for one in (changed, noise):
        try:
            unpack(one)
        except FrameError:
            continue
