"""Charts of measurements, chosen from real samples: scatter plots, histograms, boxes; and pages of charts."""

import itertools
import math
import random
from collections.abc import Callable, Sequence

from sensorium.envs.visual_qa.charts.content import bar_chart, line_chart
from sensorium.envs.visual_qa.charts.model import Axis, Chart, Series, axis
from sensorium.envs.visual_qa.charts.tables import tables_where
from sensorium.envs.visual_qa.colors import COLORS

_STRONG = tuple(name for name in COLORS if name not in ("yellow", "pink"))
_POINT_GAP = 0.03  # share of the picture between points, so that they can be counted
_HEIGHT_SHARE = 0.7


def scatter_plot(rng: random.Random, split: str, width: int) -> Chart:
    """Points, in colours by group where there are groups; no two of them touch."""
    table = rng.choice(tables_where(split, lambda t: t.kind == "sample"))
    x, y = rng.sample(table.columns, 2)
    x_axis = axis(x.name, x.unit, x.values, from_zero=False)
    y_axis = axis(y.name, y.unit, y.values, from_zero=False)
    rows = _apart(rng, list(zip(x.values, y.values, strict=True)), x_axis, y_axis, rng.randint(9, 22))
    groups = sorted({table.groups[row] for row in rows}) if table.groups else [""]
    colors = rng.sample(_STRONG, len(groups))
    series = []
    for group, color in zip(groups, colors, strict=True):
        members = [row for row in rows if not group or table.groups[row] == group]
        series.append(
            Series(
                name=group or "points",
                values=tuple(y.values[row] for row in members),
                x=tuple(x.values[row] for row in members),
                color=color,
            )
        )
    return Chart(
        kind="scatter",
        title=table.title,
        series=tuple(series),
        x=x_axis,
        y=y_axis,
        unit=y.unit,
        width=width,
        height=round(width * _HEIGHT_SHARE),
    )


def histogram(rng: random.Random, split: str, width: int) -> Chart:
    """How often values fall between round limits."""
    table = rng.choice(tables_where(split, lambda t: t.kind == "sample"))
    column = rng.choice(table.columns)
    x_axis = axis(column.name, column.unit, column.values, from_zero=False, num_ticks=rng.randint(5, 8))
    edges = x_axis.ticks
    counts = [0.0] * (len(edges) - 1)
    for value in column.values:
        place = min(int((value - x_axis.low) / x_axis.step + 1e-9), len(counts) - 1)
        counts[place] += 1.0
    names = tuple(f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges))
    return Chart(
        kind="histogram",
        title=f"{table.title}: {column.name.lower()}",
        categories=names,
        series=(Series(name="count", values=tuple(counts), color=rng.choice(_STRONG)),),
        x=x_axis,
        y=axis("number", "", counts, from_zero=True),
        labelled=rng.random() < 0.3,
        width=width,
        height=round(width * _HEIGHT_SHARE),
    )


def box_plot(rng: random.Random, split: str, width: int) -> Chart:
    """Quartiles of groups, or of months."""
    tables = tables_where(split, lambda t: bool(t.groups) or (t.kind == "series" and len(t.alike()) >= 3))
    table = rng.choice(tables)
    if table.groups:
        column = rng.choice(table.columns)
        names = sorted(set(table.groups))
        values = [
            [v for v, g in zip(column.values, table.groups, strict=True) if g == name] for name in names
        ]
        label, unit = column.name, column.unit
    else:
        columns = sorted(rng.sample(table.alike(), min(5, len(table.alike()))), key=lambda c: c.name)
        names, values = [c.name for c in columns], [list(c.values) for c in columns]
        label, unit = "value", columns[0].unit
    colors = rng.sample(_STRONG, len(names))
    series = tuple(
        Series(name=name, values=tuple(sorted(some)), color=color)
        for name, some, color in zip(names, values, colors, strict=True)
    )
    return Chart(
        kind="box",
        title=table.title,
        categories=tuple(names),
        series=series,
        y=axis(label, unit, [v for some in values for v in some], from_zero=False),
        unit=unit,
        width=width,
        height=round(width * _HEIGHT_SHARE),
    )


def panels(rng: random.Random, split: str, width: int) -> Chart:
    """Two or four small charts on one page, called A, B, ..."""
    kinds: list[Callable[[random.Random, str, int], Chart]] = [bar_chart, line_chart, histogram]
    count = rng.choice((2, 4))
    chosen: list[Chart] = []
    while len(chosen) < count:
        one = rng.choice(kinds)(rng, split, width)
        if all(one.title != other.title for other in chosen) and len(one.series) <= 2 and _fits(one):
            chosen.append(one.model_copy(update={"labelled": False, "horizontal": False}))
    return Chart(
        kind="panels",
        title="",
        panels=tuple(chosen),
        width=width * (5 if count == 4 else 4) // 4,
        height=round(width * (1.0 if count == 4 else 0.5)),
    )


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile of sorted values, as matplotlib's boxes show them."""

    def at(share: float) -> float:
        place = share * (len(values) - 1)
        low = math.floor(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (values[high] - values[low]) * (place - low)

    return at(0.25), at(0.5), at(0.75)


def _fits(chart: Chart) -> bool:
    """Whether a chart can be read at half its size."""
    return len(chart.categories) <= 8 and all(len(name) <= 12 for name in chart.categories)


def _apart(
    rng: random.Random, points: Sequence[tuple[float, float]], x: Axis, y: Axis, count: int
) -> list[int]:
    """Points that do not touch each other, at most `count`."""
    chosen: list[int] = []
    for row in rng.sample(range(len(points)), len(points)):
        place = points[row]
        if all(_gap(place, points[other], x, y) > _POINT_GAP for other in chosen):
            chosen.append(row)
        if len(chosen) == count:
            break
    return sorted(chosen)


def _gap(a: tuple[float, float], b: tuple[float, float], x: Axis, y: Axis) -> float:
    return math.hypot((a[0] - b[0]) / x.span, (a[1] - b[1]) / y.span)
