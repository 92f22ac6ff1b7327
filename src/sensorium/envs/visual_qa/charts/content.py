"""Charts of rows, chosen from real tables: bars, lines, stacks, pies, heat maps."""

import random
from collections.abc import Sequence

from sensorium.envs.visual_qa.charts.model import Axis, Chart, ChartKind, Series, axis, most_decimals
from sensorium.envs.visual_qa.charts.tables import DataTable, TableColumn, tables_where
from sensorium.envs.visual_qa.colors import COLORS

_LINE_COLORS = tuple(name for name in COLORS if name != "yellow")
_MAX_LABEL_CHARS = 14
_HEIGHT_SHARE = 0.7


def bar_chart(rng: random.Random, split: str, width: int) -> Chart:
    """Bars, one or a few for each category."""
    table = rng.choice(tables_where(split, lambda t: t.kind != "sample" and _has_short_names(t)))
    several = len(table.alike()) > 1 and rng.random() < 0.5
    columns = _columns(rng, table, 3 if several else 1)
    rows = _rows(rng, table, 4, 5 if len(columns) > 1 else 9, even=True)
    return _of_rows(rng, "bar", table, columns, rows, width, from_zero=True)


def line_chart(rng: random.Random, split: str, width: int) -> Chart:
    """One to three lines over an ordered axis."""
    table = rng.choice(tables_where(split, lambda t: t.kind == "series"))
    columns = _columns(rng, table, rng.choice((1, 2, 3)))
    rows = _rows(rng, table, 7, 14)
    chart = _of_rows(rng, "line", table, columns, rows, width, from_zero=False)
    return chart.model_copy(update={"labelled": False, "horizontal": False})


def stacked_chart(rng: random.Random, split: str, width: int) -> Chart:
    """Stacked bars: parts of a whole for each category."""
    table = rng.choice(tables_where(split, _is_stackable))
    columns = _columns(rng, table, 4, least=2)
    rows = _rows(rng, table, 4, 8, even=True)
    chart = _of_rows(rng, "stacked", table, columns, rows, width, from_zero=True)
    totals = [sum(series.values[i] for series in chart.series) for i in range(len(chart.categories))]
    whole = axis(chart.value_axis.name, chart.unit, totals, from_zero=True)
    return chart.model_copy(update={"y": whole, "horizontal": False, "labelled": False})


def pie_chart(rng: random.Random, split: str, width: int) -> Chart:
    """The parts of one whole."""
    tables = tables_where(split, _is_stackable)
    for _ in range(100):
        table = rng.choice(tables)
        columns, row = _columns(rng, table, 6, least=3), rng.randrange(table.num_rows)
        values = [column.values[row] for column in columns]
        shares = [100.0 * value / sum(values) for value in values] if sum(values) > 0 else [0.0]
        if min(shares) >= 4.0:
            break
    colors = rng.sample(list(COLORS), len(columns))
    decimals = rng.choice((0, 1))
    series = tuple(
        Series(name=column.name, values=(round(share, decimals),), color=color)
        for column, share, color in zip(columns, shares, colors, strict=True)
    )
    return Chart(
        kind="pie",
        title=f"{table.title}, {table.index[row]}",
        series=series,
        labelled=rng.random() < 0.6,
        decimals=decimals,
        unit="%",
        y=Axis(label="share (%)", low=0.0, high=100.0, step=10.0, unit="%"),
        width=width,
        height=round(width * _HEIGHT_SHARE),
    )


def heat_map(rng: random.Random, split: str, width: int) -> Chart:
    """A table as coloured cells, with or without numbers in them."""
    table = rng.choice(tables_where(split, lambda t: t.kind != "sample" and len(t.alike()) >= 3))
    columns = _columns(rng, table, 6, least=3)
    rows = _rows(rng, table, 4, 8, even=True)
    chart = _of_rows(rng, "heat_map", table, columns, rows, width, from_zero=False)
    return chart.model_copy(update={"horizontal": False, "labelled": rng.random() < 0.7})


def _of_rows(
    rng: random.Random,
    kind: ChartKind,
    table: DataTable,
    columns: Sequence[TableColumn],
    rows: Sequence[int],
    width: int,
    *,
    from_zero: bool,
) -> Chart:
    colors = rng.sample(_LINE_COLORS, len(columns))
    series = tuple(
        Series(name=column.name, values=tuple(column.values[row] for row in rows), color=color)
        for column, color in zip(columns, colors, strict=True)
    )
    values = [value for one in series for value in one.values]
    label = series[0].name if len(series) == 1 else "value"
    unit = columns[0].unit
    return Chart(
        kind=kind,
        title=table.title,
        x_label=table.index_name,
        categories=tuple(table.index[row] for row in rows),
        series=series,
        y=axis(label, unit, values, from_zero=from_zero),
        labelled=rng.random() < 0.35,
        horizontal=len(series) == 1 and rng.random() < 0.3,
        decimals=most_decimals(values),
        unit=unit,
        width=width,
        height=round(width * _HEIGHT_SHARE),
    )


def _columns(rng: random.Random, table: DataTable, most: int, *, least: int = 1) -> list[TableColumn]:
    """Columns of one unit, in the order of the table."""
    alike = table.alike()
    count = min(len(alike), max(most, least))
    return [alike[i] for i in sorted(rng.sample(range(len(alike)), count))]


def _rows(rng: random.Random, table: DataTable, least: int, most: int, *, even: bool = False) -> list[int]:
    """Rows of a chart: neighbours where they have an order (``even``: or every n-th), any others."""
    most = min(most, table.num_rows)
    count = rng.randint(min(least, most), most)
    if table.kind == "categories":
        return rng.sample(range(table.num_rows), count)
    steps = [step for step in ((1, 2, 5) if even else (1,)) if (count - 1) * step < table.num_rows]
    step = rng.choice(steps)
    first = rng.randrange(table.num_rows - (count - 1) * step)
    return [first + step * number for number in range(count)]


def _has_short_names(table: DataTable) -> bool:
    return max(map(len, table.index)) <= 2 * _MAX_LABEL_CHARS


def _is_stackable(table: DataTable) -> bool:
    return table.additive and len(table.alike()) >= 3
