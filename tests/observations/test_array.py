import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sensorium.core.types import Modality
from sensorium.observations.array import MAX_KEPT_BYTES, array_of, read_array
from sensorium.observations.base import Part
from sensorium.observations.read import read
from sensorium.observations.source import Source
from sensorium.observations.values import ArrayValue, ProprioValue, TableValue


def array_part(raw: Any, **more: Any) -> tuple[ArrayValue, tuple[str, ...]]:
    (part,) = read_array(raw, **more)
    assert isinstance(part.value, ArrayValue), part.value
    assert Part.model_validate_json(part.model_dump_json()) == part
    return part.value, part.notes


def test_statistics_leave_out_what_is_not_finite() -> None:
    value, _ = array_part(np.array([[1.0, 2.0], [np.nan, np.inf]]), unit="N")
    assert (value.shape, value.dtype, value.unit) == ((2, 2), "float64", "N")
    assert (value.low, value.high, value.mean, value.std, value.num_non_finite) == (1.0, 2.0, 1.5, 0.5, 2)


@pytest.mark.parametrize(
    "raw",
    [
        np.array(3.5),
        np.zeros((0, 4)),
        np.arange(6, dtype=">i2").reshape(2, 3),
        np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([True, False]),
        np.array([1, 2], dtype=np.uint64) + np.uint64(2**63),
        np.float16([1.5, 65504]),
        np.full((2, 2), np.nan),
    ],
)
def test_kept_elements_come_back_in_shape(raw: np.ndarray[Any, Any]) -> None:
    value, _ = array_part(raw)
    back = array_of(value)
    assert back is not None
    np.testing.assert_array_equal(back, raw)
    assert back.shape == raw.shape


def test_complex_numbers_are_measured_by_magnitude() -> None:
    value, notes = array_part(np.array([3 + 4j, 0]))
    assert (value.low, value.high) == (0.0, 5.0)
    assert "magnitudes" in notes[0]
    assert array_of(value).tolist() == [3 + 4j, 0]  # type: ignore[union-attr]


def test_masked_elements_become_nan_and_are_counted() -> None:
    value, notes = array_part(np.ma.masked_greater(np.array([1, 2, 99]), 50))
    assert (value.high, value.num_non_finite) == (2.0, 1)
    assert notes == ("1 masked elements, kept as NaN",)


def test_an_array_too_large_to_keep_has_its_statistics() -> None:
    value, notes = array_part(np.ones(MAX_KEPT_BYTES + 1, dtype=np.uint8))
    assert value.data is None
    assert array_of(value) is None
    assert value.mean == 1.0
    assert "not kept" in notes[0]


@pytest.mark.parametrize(
    ("raw", "unit", "expected"),
    [
        (np.array([[500, 1000]], dtype=np.uint16), None, [[0.5, 1.0]]),
        (np.array([[0.5, 1.0]], dtype=np.float32), None, [[0.5, 1.0]]),
        (np.array([[50.0, 100.0]]), "cm", [[0.5, 1.0]]),
        (np.array([[1, 2]], dtype=np.uint8), "m", [[1.0, 2.0]]),
    ],
)
def test_depth_is_in_metres(raw: Any, unit: str | None, expected: Any) -> None:
    (part,) = read_array(raw, modality=Modality.DEPTH, unit=unit)
    assert part.modality is Modality.DEPTH
    assert isinstance(part.value, ArrayValue)
    assert part.value.unit == "m"
    np.testing.assert_allclose(array_of(part.value), expected, rtol=1e-6)


def test_depth_in_a_strange_unit_is_a_problem_that_names_the_known_ones() -> None:
    (part,) = read_array(np.ones((2, 2)), modality=Modality.DEPTH, unit="miles")
    assert part.value.kind == "problem"
    assert "m, cm or mm" in part.value.what


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]), ["a", "b"]),
        (np.array(["x", "y"]), ["value"]),
        (np.array([1, "x", None], dtype=object), ["value"]),
        (np.array(["2024-01-01", "NaT"], dtype="M8[D]"), ["value"]),
        (np.array([["a", "b"], ["c", "d"]]), ["column 1", "column 2"]),
    ],
)
def test_records_texts_dates_and_objects_become_tables(raw: Any, names: list[str]) -> None:
    (part,) = read(Source(raw, modality=Modality.TABLE, timestamp_s=1.0))
    assert isinstance(part.value, TableValue)
    assert [c.name for c in part.value.columns] == names
    assert part.timestamp_s == 1.0
    assert "from an array" in part.notes[-1]


def test_an_object_array_without_dimensions_is_shown_as_text() -> None:
    (part,) = read_array(np.array({"a": 1}, dtype=object))
    assert part.text == "array({'a': 1}, dtype=object)"


def test_tensors_are_arrays() -> None:
    torch = pytest.importorskip("torch")
    value, notes = array_part(torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True))
    assert (value.shape, value.mean) == ((2, 3), 1.0)
    assert "bfloat16" in notes[0]


def test_proprioception_names_scalars_and_elements() -> None:
    source = Source(
        {
            "speed": np.float32(1.5),
            "joint": [1, 2.0],
            "on": True,
            "name": "arm",
            "none": None,
            "far": 10**400,
        },
        modality=Modality.PROPRIO,
        units={"speed": "m/s", "joint": "rad"},
        timestamp_s=3.0,
    )
    (part,) = read(source)
    value = part.value
    assert isinstance(value, ProprioValue)
    assert value.names == ("speed", "joint[0]", "joint[1]", "on", "far")
    assert value.values == (1.5, 1.0, 2.0, 1.0, float("inf"))
    assert value.units == ("m/s", "rad", "rad", "", "")
    assert part.notes == ("not numbers, left out: name, none",)
    assert (part.modality, part.timestamp_s) == (Modality.PROPRIO, 3.0)


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(
        hnp.scalar_dtypes() | hnp.array_dtypes(max_size=3) | st.just(np.dtype("O")),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
        fill=st.nothing(),
    )
)
def test_any_array_becomes_a_part_that_survives_json(raw: np.ndarray[Any, Any]) -> None:
    for part in read_array(raw):
        assert part.value.kind in ("array", "table", "text"), part.value
        assert Part.model_validate_json(part.model_dump_json()) == part


def test_reading_arrays_loads_neither_pandas_nor_torch() -> None:
    script = (
        "import sys, numpy\n"
        "from sensorium.observations.array import read_array\n"
        "read_array(numpy.ones(3))\n"
        "print([m for m in ('pandas', 'torch', 'PIL') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
