import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from sensorium.analysis.charts import (
    COMPACT,
    REGULAR,
    Series,
    Size,
    interval_bar,
    legend_of,
    line_chart,
    sparkline,
    ticks,
)
from sensorium.analysis.formatting import (
    count,
    duration,
    number,
    percent,
    percent_range,
    points,
    short_count,
)


def path_points(svg: str) -> list[tuple[float, float]]:
    path = ElementTree.fromstring(svg).find("path")
    assert path is not None
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path.attrib["d"])]


def test_line_chart_is_well_formed_and_to_scale() -> None:
    svg = line_chart([Series("a", [0.0, 50.0, 100.0], [0.0, 1.0, 0.5])], title="t", y_limits=(0.0, 1.0))
    (x0, y0), (x1, y1), (x2, y2) = path_points(svg)
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 > y2 > y1
    assert y0 - y2 == pytest.approx(y2 - y1)
    assert x2 <= REGULAR.width
    assert y0 <= REGULAR.height


def test_line_chart_escapes_names_and_titles() -> None:
    series = Series('<b>"&', [0.0, 1.0], [1.0, 2.0])
    svg = line_chart([series], title='"><script>', x_unit="<i>")
    root = ElementTree.fromstring(svg)
    assert root.attrib["aria-label"] == '"><script>'
    assert "<script" not in svg
    assert "<i>" not in svg
    titles = [title.text or "" for title in root.iter("title")]
    assert any('<b>"&: 2' in title for title in titles)


def test_titles_give_the_value_at_each_position() -> None:
    svg = line_chart([Series("success", [8192.0, 16384.0], [0.25, 0.5])], title="t")
    titles = [title.text for title in ElementTree.fromstring(svg).iter("title")]
    assert titles == ["8,192 steps\nsuccess: 0.25", "16,384 steps\nsuccess: 0.5"]


def test_gaps_lift_the_pen_and_nothing_draws_nothing() -> None:
    svg = line_chart([Series("a", [0.0, 1.0, 2.0, 3.0], [1.0, math.nan, 2.0, 3.0])], title="t")
    path = ElementTree.fromstring(svg).find("path")
    assert path is not None
    assert path.attrib["d"].count("M") == 2
    assert line_chart([Series("a", [0.0], [math.nan])], title="t") == ""
    assert line_chart([], title="t") == ""


@pytest.mark.parametrize("y", [[0.0], [5.0, 5.0], [-3.0, -3.0], [1e-9, 2e-9], [-1e12, 1e12]])
def test_flat_single_tiny_and_huge_values_are_drawn_inside(y: list[float]) -> None:
    svg = line_chart([Series("a", [float(i) for i in range(len(y))], y)], title="t")
    assert "nan" not in svg
    for _, y_pixel in path_points(svg):
        assert 0 <= y_pixel <= REGULAR.height


def test_long_series_are_thinned_without_moving_them() -> None:
    n = 20_000
    values = [i / n for i in range(n)]
    svg = line_chart([Series("a", values, values)], title="t", y_limits=(0.0, 1.0))
    found = path_points(svg)
    assert len(found) == 240
    assert len(svg) < 40_000
    (x0, y0), (x1, y1) = found[0], found[-1]
    for x, y in found:  # still on the straight line between the ends
        assert y == pytest.approx(y0 + (x - x0) / (x1 - x0) * (y1 - y0), abs=0.15)


def test_legend_matches_the_colours_of_the_lines() -> None:
    series = [Series(str(i), [0.0, 1.0], [float(i), 1.0]) for i in range(10)]
    root = ElementTree.fromstring(line_chart(series, title="t"))
    colours = [path.attrib["class"].split("-")[-1] for path in root.findall("path")]
    assert colours == [str(entry.colour) for entry in legend_of(series)]


def test_interval_bar_shows_rate_interval_and_chance() -> None:
    svg = interval_bar(0.5, 0.4, 0.62, name="rgb & <x>", chance=0.25)
    root = ElementTree.fromstring(svg)
    assert root.attrib["aria-label"] == "rgb & <x>: 50 % (95 % interval 40–62 %)"
    widths = [rect.attrib["width"] for rect in root.findall("rect")]
    assert widths == ["100%", "50.00%"]
    kinds = {line.attrib["class"]: line.attrib["x1"] for line in root.findall("line")}
    assert kinds["chance"] == "25.00%"
    assert kinds["whisker"] == "62.00%"


def test_sparkline_needs_two_values() -> None:
    assert sparkline([1.0, math.nan], title="t") == ""
    assert "nan" not in sparkline([1.0, math.nan, 1.0], title="t")
    ElementTree.fromstring(sparkline([1.0, 2.0, 0.0], title="a < b"))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.0, 1.2e6, [0, 5e5, 1e6]),
        (-0.021, -0.019, [-0.021, -0.0205, -0.02, -0.0195, -0.019]),
    ],
)
def test_ticks_are_round_and_inside(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_numbers_below_the_axis_do_not_run_into_the_one_with_the_unit() -> None:
    svg = line_chart([Series("a", [4096.0, 401_408.0], [0.0, 1.0])], title="t", size=COMPACT)
    below = [e for e in ElementTree.fromstring(svg).iter("text") if float(e.attrib["y"]) > 150]
    assert [e.text for e in below] == ["400k steps", "200k", "100k"]
    wide = line_chart([Series("a", [4096.0, 401_408.0], [0.0, 1.0])], title="t", size=Size(900.0, 200.0))
    assert "300k<" in wide


def test_numbers_as_people_read_them() -> None:
    assert count(1234567) == "1,234,567"
    assert [short_count(x) for x in (1.5e6, 50_000.0, -2000.0, 0.25)] == ["1.5M", "50k", "−2k", "0.25"]
    assert [number(x) for x in (None, math.nan, 0.0, 0.00123456, -1234.5, 3.14159)] == [
        *("–", "–", "0", "0.00123", "−1,234", "3.14"),
    ]
    assert number(3.1e-6) == "3.1e-06"
    assert [percent(x) for x in (0.9725, 1.0, 0.0)] == ["97.2 %", "100 %", "0 %"]
    assert percent_range(0.95, 1.0) == "95–100 %"
    assert [points(x) for x in (-0.634, 0.051, 0.001)] == ["−63", "+5", "±0"]
    assert [duration(x) for x in (252.4, 3600.0, 90_000.0, 0.25)] == [
        "4 min 12 s",
        "1 h",
        "1 d 1 h",
        "0.25 s",
    ]
