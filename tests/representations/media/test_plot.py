import io
from typing import Any

import numpy as np
import pytest

from sensorium.core.types import Modality
from sensorium.observations.array import read_array
from sensorium.observations.base import Part
from sensorium.observations.table import read_table
from sensorium.observations.values import TableValue, TextValue
from sensorium.representations.media.plot import SIZE, colours, column_series, small_plot, ticks

Image = pytest.importorskip("PIL.Image", reason="pip install 'sensorium[observe]'")


def pixels(png: bytes | None) -> np.ndarray[Any, Any]:
    assert png is not None
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 10.0, [0, 2, 4, 6, 8, 10]),
        (-1.0, 1.0, [-1.0, -0.5, 0.0, 0.5, 1.0]),
        (0.13, 0.27, [0.15, 0.2, 0.25]),
        (3.0, 3.0, [3.0]),
        (0.0, float("inf"), [0.0]),
    ],
)
def test_ticks_are_round_numbers_within_the_bounds(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_colours_run_from_dark_to_bright_and_leave_gaps_white() -> None:
    found = colours(np.array([0.0, 0.5, 1.0, np.nan]), 0.0, 1.0)
    assert found[0].tolist() == [68, 1, 84]
    assert found[1].tolist() == [33, 145, 140]
    assert found[2].tolist() == [253, 231, 37]
    assert found[3].tolist() == [255, 255, 255]


def test_a_rising_vector_is_a_line_from_the_lower_left_to_the_upper_right() -> None:
    (part,) = read_array(np.arange(1_000.0))
    shown = pixels(small_plot(part))
    assert shown.shape == (SIZE[1], SIZE[0], 3)
    line = (shown == (31, 90, 180)).all(axis=2)
    rows, columns = np.nonzero(line)
    assert rows[columns == columns.min()].max() > 235
    assert rows[columns == columns.max()].min() < 30
    assert len(np.unique(columns)) > 380


def test_no_spike_is_lost_where_there_are_more_values_than_pixels() -> None:
    raw = np.zeros(100_000)
    raw[54_321] = 1.0
    (part,) = read_array(raw)
    line = (pixels(small_plot(part)) == (31, 90, 180)).all(axis=2)
    assert np.nonzero(line)[0].min() <= 23


def test_a_matrix_is_a_heat_map_with_its_bright_corner_in_place() -> None:
    raw = np.zeros((40, 40))
    raw[:20, 20:] = 5.0
    (part,) = read_array(raw)
    shown = pixels(small_plot(part))
    assert shown[40, 250].tolist() == [253, 231, 37]
    assert shown[40, 90].tolist() == [68, 1, 84]
    assert shown[200, 250].tolist() == [68, 1, 84]


def test_depth_leaves_pixels_without_measure_white() -> None:
    raw = np.full((48, 64), 2.0, np.float32)
    raw[:, :32] = 0.0
    raw[0, 63] = 1.0
    (part,) = read_array(raw, modality=Modality.DEPTH)
    shown = pixels(small_plot(part))
    assert shown[120, 100].tolist() == [255, 255, 255]
    assert shown[120, 300].tolist() == [253, 231, 37]


def series_of(raw: Any) -> Any:
    (part,) = read_table(raw)
    assert isinstance(part.value, TableValue)
    return column_series(part.value)


def test_the_most_varied_column_is_drawn_over_dates() -> None:
    days = [f"2024-01-{d:02d}" for d in range(1, 32)]
    text = "id,day,kind,temp_celsius\n" + "".join(
        f"{i},{day},{i % 3},{(i * 7) % 11 + i / 100}\n" for i, day in enumerate(days)
    )
    series = series_of(text)
    assert series.y_name == "temp_celsius [°C]"
    assert (series.x_name, series.start, series.end) == ("day", "2024-01-01", "2024-01-31")
    (part,) = read_table(text)
    assert pixels(small_plot(part)).shape == (SIZE[1], SIZE[0], 3)


def test_gaps_break_the_line_and_unsorted_dates_are_no_axis() -> None:
    text = (
        "day,v\n"
        + "".join(f"2024-01-{31 - i:02d},{'' if i == 9 else i * i}\n" for i in range(31))
        + "2024-01-31,5\n"
    )
    series = series_of(text)
    assert series.x_name == "row"
    assert np.isnan(series.y).sum() == 1
    (part,) = read_table(text)
    assert small_plot(part)


@pytest.mark.parametrize(
    "part",
    [
        Part(id="a", modality=Modality.TEXT, value=TextValue(text="x")),
        read_array(np.arange(5))[0],
        read_array(np.ones(100))[0],
        read_array(np.full((20, 20), np.nan))[0],
        read_array(np.zeros((3, 20)))[0],
        read_array(np.zeros((0, 20)))[0],
        read_table([{"a": "x"}] * 50)[0],
        read_table([{"id": i} for i in range(50)])[0],
        read_table([{"v": i * i} for i in range(10)])[0],
    ],
)
def test_nothing_is_drawn_where_numbers_say_as_much(part: Part) -> None:
    assert small_plot(part) is None


@pytest.mark.parametrize(
    "raw",
    [
        np.array([1e308, -1e308] * 20),
        np.array([np.inf, 1.0, 2.0] * 20),
        np.arange(100) * 1e-300,
        np.eye(30, dtype=complex),
        np.eye(30, dtype=bool),
        np.random.default_rng(0).normal(size=(8, 2_000)),
        np.random.default_rng(0).normal(size=(2_000, 8)),
        np.array([5, 6] * 30, dtype=np.uint8),
    ],
)
def test_extreme_arrays_are_drawn(raw: np.ndarray[Any, Any]) -> None:
    (part,) = read_array(raw)
    assert pixels(small_plot(part)).shape == (SIZE[1], SIZE[0], 3)
