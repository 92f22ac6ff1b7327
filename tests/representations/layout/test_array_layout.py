from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from sensorium.core.types import Modality
from sensorium.observations.array import read_array, read_proprio
from sensorium.observations.base import Part
from sensorium.observations.values import TextValue
from sensorium.representations.base import Document
from sensorium.representations.config import TableConfig
from sensorium.representations.layout.array import block_means, lay_out_array, lay_out_proprio


def laid_out(raw: Any, max_rows: int = 50, **more: Any) -> Document:
    (part,) = read_array(raw, **more)
    return lay_out_array(part, TableConfig(max_rows=max_rows))


def texts(document: Document) -> list[str]:
    return [segment.text for segment in document.segments]


def test_a_small_matrix_is_shown_element_by_element() -> None:
    document = laid_out(np.array([[1.5, 2], [3, np.nan]]), unit="N")
    assert document.title == "array float64 2x2, N"
    assert texts(document) == ["1.5 to 3, mean 2.16667 ± 0.62361; 1 not finite", "[0] 1.5 2", "[1] 3 nan"]
    assert [segment.is_pinned for segment in document.segments] == [True, False, False]


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (np.array(7), ["all elements are 7"]),
        (np.zeros((0, 3)), ["no elements"]),
        (np.full(2, np.nan), ["no finite elements; 2 not finite", "[0] nan nan"]),
        (np.array([True, False]), ["0 to 1, mean 0.5 ± 0.5", "[0] 1 0"]),
        (np.arange(13), ["0 to 12, mean 6 ± 3.74166", "[0] 0 1 2 3 4 5 6 7 8 9 10 11", "[12] 12"]),
    ],
)
def test_other_shapes(raw: Any, lines: list[str]) -> None:
    assert texts(laid_out(raw)) == lines


def test_planes_of_higher_dimensions_have_headings() -> None:
    shown = texts(laid_out(np.arange(8).reshape(2, 2, 2)))
    assert shown[1:] == ["[0, :, :]", "[0, 0] 0 1", "[0, 1] 2 3", "[1, :, :]", "[1, 0] 4 5", "[1, 1] 6 7"]


def test_large_matrices_are_shown_as_block_means() -> None:
    raw = np.zeros((100, 200))
    raw[:50, 100:] = 4.0
    shown = texts(laid_out(raw))
    assert shown[1] == "means of 12x12 blocks:"
    assert shown[2] == "[0:8] 0 0 0 0 0 0 4 4 4 4 4 4"
    assert len(shown) == 14


def test_a_maze_is_shown_cell_by_cell() -> None:
    raw = np.ones((20, 40), np.uint8)
    shown = texts(laid_out(raw * 1 - np.eye(20, 40, dtype=np.uint8)))
    assert shown[1] == "[0] 0 " + " ".join("1" * 39)
    assert len(shown) == 21


def test_long_vectors_are_thinned_to_the_limit() -> None:
    shown = texts(laid_out(np.arange(10_000), max_rows=5))
    assert shown[1] == "every 167th element:"
    assert len(shown) == 7
    assert shown[3].startswith("[2004] 2004 2171")


def test_depth_tells_the_nearest_surface() -> None:
    raw = np.full((30, 40), 3.0, np.float32)
    raw[10, 20] = 0.5
    raw[:15] = np.where(raw[:15] == 3.0, 0.0, raw[:15])
    document = laid_out(raw, modality=Modality.DEPTH)
    assert document.title == "depth picture float32 30x40, m"
    assert "nearest: 0.5 m at (10, 20); 50% of pixels are valid" in texts(document)


def test_block_means_leave_out_what_is_not_finite() -> None:
    raw = np.array([[1.0, np.nan, 3.0], [np.inf, 5.0, np.nan]])
    np.testing.assert_allclose(block_means(raw, 1, 2), [[1.0, 4.0]])
    assert np.isnan(block_means(np.full((2, 2), np.nan), 1, 1)).all()


def test_proprioception_has_a_line_per_value() -> None:
    (part,) = read_proprio({"speed": 1.25, "joint": [0.5, 1.0]}, units={"speed": "m/s"})
    document = lay_out_proprio(part)
    assert document.title == "body state, 3 values"
    assert texts(document) == ["speed = 1.25 m/s", "joint[0] = 0.5", "joint[1] = 1"]


def test_parts_of_other_kinds_are_refused() -> None:
    part = Part(id="a", modality=Modality.TEXT, value=TextValue(text="x"))
    for lay_out in (lay_out_array, lay_out_proprio):
        with pytest.raises(TypeError, match="got a part of kind 'text'"):
            lay_out(part)


@settings(max_examples=80, deadline=None)
@given(
    hnp.arrays(
        hnp.floating_dtypes() | hnp.integer_dtypes() | hnp.boolean_dtypes() | hnp.complex_number_dtypes(),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=15),
        fill=None,
    )
)
def test_any_array_is_laid_out_within_the_limit(raw: np.ndarray[Any, Any]) -> None:
    document = laid_out(raw, max_rows=4)
    places = [segment for segment in document.segments if segment.place.startswith("[")]
    assert len(places) <= 4
    assert document.segments[0].is_pinned
