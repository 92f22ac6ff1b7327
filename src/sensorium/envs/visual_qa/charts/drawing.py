"""Draws charts with matplotlib, without its global state; the same chart gives the same pixels."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import require
from sensorium.envs.visual_qa.charts.model import Axis, Chart, written
from sensorium.envs.visual_qa.colors import COLORS

_DPI = 100
_LOCK = threading.Lock()  # matplotlib's settings and fonts belong to the process
_FIGURES: dict[str, Any] = {}
_GRID = {"color": "#d9d9d9", "linewidth": 0.8}
_MANY_LABELS_CHARS = 48
_MARKERS = ("o", "s", "^")


def draw_chart(chart: Chart) -> NDArray[np.uint8]:
    """The picture of a chart.

    Returns:
        (height, width, 3) uint8.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    matplotlib = require("matplotlib", extra="observe", purpose="drawing charts")
    with _LOCK, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"font.family": "DejaVu Sans", "font.size": 11, "axes.axisbelow": True})
        figure = _figure(chart.width, chart.height)
        try:
            if chart.kind == "panels":
                _draw_panels(figure, chart)
            else:
                _draw_axes(figure.add_subplot(), chart)
            figure.tight_layout(pad=0.8)
            figure.canvas.draw()
            return np.array(figure.canvas.buffer_rgba())[..., :3].copy()
        finally:
            figure.clear()


def _figure(width: int, height: int) -> Any:
    """The figure that all charts are drawn on."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = (width / _DPI, height / _DPI)
    if "only" not in _FIGURES:
        _FIGURES["only"] = Figure(figsize=size, dpi=_DPI)
        FigureCanvasAgg(_FIGURES["only"])
    figure = _FIGURES["only"]
    figure.set_size_inches(*size)
    return figure


def _draw_panels(figure: Any, chart: Chart) -> None:
    rows = 2 if len(chart.panels) == 4 else 1
    for number, panel in enumerate(chart.panels):
        axes = figure.add_subplot(rows, 2, number + 1)
        _draw_axes(axes, panel)
        text = f"{'ABCD'[number]}: {panel.title}"
        axes.set_title(text, fontsize=10 if len(text) < 45 else 8)


def _draw_axes(axes: Any, chart: Chart) -> None:
    drawers = {
        "bar": _draw_bars,
        "line": _draw_lines,
        "scatter": _draw_points,
        "histogram": _draw_histogram,
        "pie": _draw_pie,
        "stacked": _draw_stack,
        "box": _draw_boxes,
        "heat_map": _draw_cells,
    }
    drawers[chart.kind](axes, chart)
    axes.set_title(chart.title, fontsize=13)


def _draw_bars(axes: Any, chart: Chart) -> None:
    places, count = np.arange(len(chart.categories)), len(chart.series)
    width = 0.7 / count
    for number, series in enumerate(chart.series):
        at = places + (number - (count - 1) / 2) * width
        draw = axes.barh if chart.horizontal else axes.bar
        bars = draw(at, series.values, width * 0.95, color=COLORS[series.color], label=series.name)
        if chart.labelled:
            texts = [written(value, chart.decimals) for value in series.values]
            axes.bar_label(bars, texts, padding=2, fontsize=9 if count == 1 else 7)
    _name_places(axes, chart, places)
    _set_values(axes, chart.value_axis, horizontal=chart.horizontal)
    if count > 1:
        _legend(axes)


def _draw_lines(axes: Any, chart: Chart) -> None:
    places = np.arange(len(chart.categories))
    for number, series in enumerate(chart.series):
        marker = _MARKERS[number % len(_MARKERS)]
        axes.plot(places, series.values, marker=marker, color=COLORS[series.color], label=series.name)
    _name_places(axes, chart, places)
    _set_values(axes, chart.value_axis)
    axes.grid(axis="x", **_GRID)
    if len(chart.series) > 1:
        _legend(axes)


def _draw_stack(axes: Any, chart: Chart) -> None:
    places = np.arange(len(chart.categories))
    base = np.zeros(len(places))
    for series in chart.series:
        axes.bar(places, series.values, 0.7, bottom=base, color=COLORS[series.color], label=series.name)
        base = base + np.array(series.values)
    _name_places(axes, chart, places)
    _set_values(axes, chart.value_axis)
    _legend(axes)


def _draw_points(axes: Any, chart: Chart) -> None:
    for number, series in enumerate(chart.series):
        marker = _MARKERS[number % len(_MARKERS)]
        axes.scatter(
            series.x, series.values, s=42, marker=marker, color=COLORS[series.color], label=series.name
        )
    _set_values(axes, chart.value_axis)
    _set_values(axes, chart.number_axis, horizontal=True)
    if len(chart.series) > 1:
        _legend(axes)


def _draw_histogram(axes: Any, chart: Chart) -> None:
    (series,) = chart.series
    scale = chart.number_axis
    bars = axes.bar(
        scale.ticks[:-1],
        series.values,
        scale.step,
        align="edge",
        color=COLORS[series.color],
        edgecolor="white",
    )
    if chart.labelled:
        axes.bar_label(bars, [written(value, 0) for value in series.values], padding=2)
    _set_values(axes, chart.value_axis)
    _set_values(axes, scale, horizontal=True, grid=False)


def _draw_pie(axes: Any, chart: Chart) -> None:
    values = [series.values[0] for series in chart.series]
    texts = [written(value, chart.decimals) + " %" for value in values]
    wedges, *_ = axes.pie(
        values,
        colors=[COLORS[series.color] for series in chart.series],
        startangle=90,
        counterclock=False,
        wedgeprops={"edgecolor": "white"},
        labels=texts if chart.labelled else None,
        labeldistance=1.06,
    )
    names = [series.name for series in chart.series]
    axes.legend(wedges, names, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, fontsize=10)


def _draw_boxes(axes: Any, chart: Chart) -> None:
    drawn = axes.boxplot(
        [series.values for series in chart.series],
        tick_labels=list(chart.categories),
        patch_artist=True,
        whis=(0, 100),
        widths=0.5,
        medianprops={"color": "#1b1b1b", "linewidth": 2},
    )
    for box, series in zip(drawn["boxes"], chart.series, strict=True):
        box.set_facecolor(COLORS[series.color])
        box.set_alpha(0.75)
    _set_values(axes, chart.value_axis)


def _draw_cells(axes: Any, chart: Chart) -> None:
    cells = np.array([series.values for series in chart.series])
    limits = chart.value_axis
    shown = axes.imshow(cells, cmap="viridis", vmin=limits.low, vmax=limits.high, aspect="auto")
    axes.set_yticks(np.arange(len(chart.series)), [series.name for series in chart.series])
    _name_places(axes, chart, np.arange(len(chart.categories)))
    if chart.labelled:
        middle = (limits.low + limits.high) / 2
        for row, series in enumerate(chart.series):
            for place, value in enumerate(series.values):
                color = "white" if value < middle else "black"
                axes.text(place, row, written(value, chart.decimals), ha="center", va="center", color=color,
                          fontsize=9)  # fmt: skip
    bar = axes.figure.colorbar(shown, ax=axes)
    bar.set_ticks(list(limits.ticks), labels=_tick_texts(limits.ticks, limits.step))
    bar.set_label(chart.unit)


def _name_places(axes: Any, chart: Chart, places: NDArray[Any]) -> None:
    names = list(chart.categories)
    if chart.horizontal:
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_ylabel(chart.x_label)
        return
    room = _MANY_LABELS_CHARS if chart.kind != "heat_map" else _MANY_LABELS_CHARS // 2 + 8
    slanted = sum(map(len, names)) > room or max(map(len, names)) > 10
    small = len(axes.figure.axes) > 1 or bool(axes.get_subplotspec().get_gridspec().ncols > 1)
    if slanted or small:
        axes.set_xticks(places, names, rotation=40, ha="right", rotation_mode="anchor")
    else:
        axes.set_xticks(places, names)
    axes.set_xlabel(chart.x_label)


def _set_values(axes: Any, scale: Axis, *, horizontal: bool = False, grid: bool = True) -> None:
    ticks = list(scale.ticks)
    texts = _tick_texts(ticks, scale.step)
    if horizontal:
        axes.set_xlim(scale.low, scale.high)
        axes.set_xticks(ticks, texts)
        axes.set_xlabel(scale.label)
    else:
        axes.set_ylim(scale.low, scale.high)
        axes.set_yticks(ticks, texts)
        axes.set_ylabel(scale.label)
    if grid:
        axes.grid(axis="x" if horizontal else "y", **_GRID)


def _tick_texts(ticks: Sequence[float], step: float) -> list[str]:
    decimals = next(d for d in range(10) if abs(round(step, d) - step) < 1e-9 * max(1.0, step))
    return [written(tick + 0.0, decimals) for tick in ticks]


def _legend(axes: Any) -> None:
    """Outside, so that it hides nothing."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.08), ncols=3, fontsize=9, frameon=False)
