"""Charts as inline SVG: no script, colours from the page's style sheet, a title under the pointer.

The page sets the colours: classes `series-0` to `series-7`, `axis`, `grid`, `label`, `level`, `mark` and
`chance`. Text keeps its size only while a chart is shown about as wide as its `Size` says.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.analysis.formatting import number, percent, percent_range, short_count

_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 12.0, 12.0, 28.0
_LABEL_GAP = 16.0
_MAX_POINTS = 240
_MAX_TITLES = 60
NUM_COLOURS = 8
"""Series beyond this many start again with the first colour."""


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height of a chart's drawing area in pixels, when it is shown unscaled."""

    width: float
    height: float


REGULAR = Size(460.0, 220.0)
COMPACT = Size(320.0, 170.0)


@dataclass(frozen=True, slots=True)
class Series:
    """One line: what it is called and its points; points whose `y` is not finite leave a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int | None = None
    """Which colour; by default that of its place among the lines."""
    second_colour: int | None = None
    """Dashes of this colour lie over the line, which then stands for a pair."""


class Mark(NamedTuple):
    """A horizontal position to mark, with a word about it above the chart."""

    x: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """Which colour a line has."""

    name: str
    colour: int
    """Index of the page's series colours."""
    second_colour: int | None = None
    """The same for the dashes on the line of a pair."""


def legend_of(series: Sequence[Series]) -> list[LegendEntry]:
    """The colours that `line_chart` gives to these lines."""
    return [
        LegendEntry(
            line.name,
            _colour(line, i),
            None if line.second_colour is None else line.second_colour % NUM_COLOURS,
        )
        for i, line in enumerate(series)
    ]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps values to pixels."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    size: Size

    @property
    def right(self) -> float:
        return self.size.width - _RIGHT

    @property
    def bottom(self) -> float:
        return self.size.height - _BOTTOM

    def x(self, value: float) -> float:
        return _LEFT + (value - self.x_low) / (self.x_high - self.x_low) * (self.right - _LEFT)

    def y(self, value: float) -> float:
        return self.bottom - (value - self.y_low) / (self.y_high - self.y_low) * (self.bottom - _TOP)


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_unit: str = "steps",
    y_limits: tuple[float, float] | None = None,
    marks: Sequence[Mark] = (),
    level: float | None = None,
    whole_x: bool = False,
    size: Size = REGULAR,
) -> str:
    """Lines over a shared axis.

    Args:
        series: At least one point in all of them together must be finite.
        title: What the chart shows, for those who cannot see it.
        x_unit: What the horizontal axis counts.
        y_limits: Fixed vertical range; by default what the values need.
        marks: Horizontal positions to mark, e.g. the steps shown in a film; the axis reaches all of them. A
            label that would run into the one before it is only in the title under the pointer.
        level: A value to compare with, drawn as a line across the chart.
        whole_x: Whether the horizontal axis counts things, so that only whole numbers stand below it.
        size: Size of the drawing.

    Returns:
        An ``<svg>`` element as text, everything in it escaped; empty text when there is nothing to draw.
    """
    drawn = [_thinned(s) for s in series]
    if not any(math.isfinite(y) for s in drawn for y in s.y):
        return ""
    frame = _fit(drawn, y_limits, size, marks=marks, level=level)
    sparse_last = sorted(range(len(drawn)), key=lambda i: -len(drawn[i].x))  # where others do not cover them
    lines = [_polyline(drawn[i], frame, i) for i in sparse_last]
    parts = [
        f'<svg class="chart" viewBox="0 0 {size.width:g} {size.height:g}" role="img" ',
        f'aria-label="{escape(title)}">',
        *_axes(frame, x_unit, whole_x=whole_x),
        *([] if level is None else [_horizontal("level", frame, level)]),
        *_marks(marks, frame),
        *lines,
        *_hover_bands(drawn, frame, x_unit, marks),
        "</svg>",
    ]
    return "".join(parts)


def sparkline(values: Sequence[float], *, title: str) -> str:
    """A small line without axes; empty text with fewer than two finite values."""
    thinned = _thinned(Series("", [float(i) for i in range(len(values))], values), limit=60)
    points = [(x, y) for x, y in zip(thinned.x, thinned.y, strict=True) if math.isfinite(y)]
    if len(points) < 2:
        return ""
    low, high = min(y for _, y in points), max(y for _, y in points)
    span = (high - low) or 1.0
    left, right = points[0][0], points[-1][0]
    path = " ".join(
        f"{2 + 96 * (x - left) / (right - left):.1f},{22 - 20 * (y - low) / span:.1f}" for x, y in points
    )
    return (
        f'<svg class="sparkline" viewBox="0 0 100 24" role="img" aria-label="{escape(title)}">'
        f'<title>{escape(title)}</title><polyline class="series-0" points="{path}"/></svg>'
    )


def interval_bar(rate: float, low: float, high: float, *, name: str, chance: float | None = None) -> str:
    """One horizontal bar of a share with its interval; its width follows the page, so rows line up.

    Args:
        rate: Share, 0 to 1.
        low: Lower bound of the interval, 0 to 1.
        high: Upper bound, 0 to 1.
        name: What was measured, for the title.
        chance: Where guessing would be, drawn as a line through the row.
    """
    title = escape(f"{name}: {percent(rate)} (95 % interval {percent_range(low, high)})")
    line = ""
    if chance is not None:
        at = f"{100 * chance:.2f}%"
        line = f'<line class="chance" x1="{at}" x2="{at}" y1="0" y2="32"/>'
    ends = "".join(
        f'<line class="whisker" x1="{100 * x:.2f}%" x2="{100 * x:.2f}%" y1="11" y2="21"/>'
        for x in (low, high)
    )
    return (
        f'<svg class="bar" width="100%" height="32" role="img" aria-label="{title}"><title>{title}</title>'
        '<rect class="track" x="0" y="7" width="100%" height="18" rx="4"/>'
        f'<rect class="fill" x="0" y="7" width="{100 * rate:.2f}%" height="18" rx="4"/>'
        f'{line}<line class="whisker" x1="{100 * low:.2f}%" x2="{100 * high:.2f}%" y1="16" y2="16"/>'
        f"{ends}</svg>"
    )


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) within [low, high], about `wanted` of them."""
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= 0.75 * raw)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _fit(
    series: Sequence[Series],
    y_limits: tuple[float, float] | None,
    size: Size,
    *,
    marks: Sequence[Mark],
    level: float | None,
) -> _Frame:
    xs = [*(float(x) for s in series for x in s.x), *(mark.x for mark in marks)]
    x_low, x_high = min(xs), max(xs)
    if y_limits is None:
        ys = [y for s in series for y in s.y if math.isfinite(y)]
        ys += [] if level is None else [level]
        low, high = min(ys), max(ys)
        margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
        y_limits = (0.0 if 0 <= low < margin else low - margin, high + margin)
    return _Frame(x_low, x_high if x_high > x_low else x_low + 1.0, *y_limits, size)


def _axes(frame: _Frame, x_unit: str, *, whole_x: bool) -> list[str]:
    """Grid, the line at the bottom, and numbers; the last number below carries the unit."""
    right, bottom = frame.right, frame.bottom
    parts = [f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>']
    for tick in ticks(frame.y_low, frame.y_high):
        parts.append(_horizontal("grid", frame, tick))
        parts.append(_label(_LEFT - 6, frame.y(tick) + 4, short_count(tick), "end"))
    positions = ticks(frame.x_low, frame.x_high)
    if whole_x:
        positions = [position for position in positions if position == round(position)]
    taken_from = math.inf
    for tick in reversed(positions):  # the one with the unit stays; those that would run into it give way
        text = f"{short_count(tick)} {x_unit}" if tick == positions[-1] else short_count(tick)
        half = 3.5 * len(text)
        x = min(frame.x(tick), right - half)
        if x + half + _LABEL_GAP <= taken_from:
            at_edge = x < frame.x(tick)
            parts.append(_label(right if at_edge else x, bottom + 19, text, "end" if at_edge else "middle"))
            taken_from = x - half
    return parts


def _label(x: float, y: float, text: str, anchor: str, kind: str = "label") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _marks(marks: Sequence[Mark], frame: _Frame) -> list[str]:
    """A line at each mark; labels stand in one row above the chart, as far as there is room."""
    parts, free_from = [], 0.0
    for mark in sorted(marks):
        parts.append(_vertical("mark labelled" if mark.label else "mark", frame, mark.x))
        width = 6.6 * len(mark.label)
        start = max(min(frame.x(mark.x), frame.right - width), 0.0)
        if mark.label and start >= free_from:
            parts.append(_label(start, _TOP - 4, mark.label, "start", kind="label note"))
            free_from = start + width + _LABEL_GAP / 3
    return parts


def _colour(series: Series, index: int) -> int:
    return (index if series.colour is None else series.colour) % NUM_COLOURS


def _polyline(series: Series, frame: _Frame, index: int) -> str:
    """One path, two for a pair; a value that is not finite lifts the pen."""
    commands, pen = [], "M"
    for x, y in zip(series.x, series.y, strict=True):
        if math.isfinite(y):
            clipped = min(max(y, frame.y_low), frame.y_high)
            commands.append(f"{pen}{frame.x(x):.1f} {frame.y(clipped):.1f}")
            pen = "L"
        else:
            pen = "M"
    kind = "line"
    if len(commands) == 1:
        commands.append("h.1")  # a lone point shows as a dot: the line has round ends
        kind = "line point"
    path = "".join(commands)
    line = f'<path class="{kind} series-{_colour(series, index)}" d="{path}"/>'
    if series.second_colour is not None:
        line += f'<path class="line dashes series-{series.second_colour % NUM_COLOURS}" d="{path}"/>'
    return line


def _hover_bands(series: Sequence[Series], frame: _Frame, x_unit: str, marks: Sequence[Mark]) -> list[str]:
    """Invisible columns; the one under the pointer shows a line, dots and a title with every value."""
    positions = sorted({float(x) for s in series for x in s.x})
    if len(positions) > _MAX_TITLES:
        chosen = np.linspace(0, len(positions) - 1, _MAX_TITLES).round().astype(int)
        positions = [positions[i] for i in chosen]
    edges = [(a + b) / 2 for a, b in itertools.pairwise(positions)]
    edges = [frame.x_low, *edges, frame.x_high]
    bands = []
    for position, (left, right) in zip(positions, itertools.pairwise(edges), strict=True):
        x, x0, x1 = frame.x(position), frame.x(left), frame.x(right)
        lines, dots = [f"{position:,.10g} {x_unit}"], []
        # Half open, the last one closed, so that every mark is in one title.
        within = (m for m in marks if left <= m.x < right or m.x == right == frame.x_high)
        lines += [mark.label for mark in within if mark.label]
        for index, s in enumerate(series):
            y = _nearest_value(s, position)
            lines.append(f"{s.name}: {number(y)}")
            if math.isfinite(y):
                y_pixel = frame.y(min(max(y, frame.y_low), frame.y_high))
                colour = f"dot series-{_colour(s, index)}"
                dots.append(f'<circle class="{colour}" cx="{x:.1f}" cy="{y_pixel:.1f}" r="3.5"/>')
        bands.append(
            f'<g class="band"><title>{escape(chr(10).join(lines))}</title>'
            f'<rect x="{x0:.1f}" y="{_TOP}" width="{max(x1 - x0, 1):.1f}" '
            f'height="{frame.bottom - _TOP}"/>'
            f"{_vertical('pointer', frame, position)}{''.join(dots)}</g>"
        )
    return bands


def _vertical(kind: str, frame: _Frame, position: float) -> str:
    x = frame.x(position)
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{frame.bottom}"/>'


def _horizontal(kind: str, frame: _Frame, value: float) -> str:
    y = frame.y(value)
    return f'<line class="{kind}" x1="{_LEFT}" x2="{frame.right}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _nearest_value(series: Series, position: float) -> float:
    if not len(series.x):
        return math.nan
    return series.y[int(np.argmin(np.abs(np.asarray(series.x) - position)))]


def _thinned(series: Series, limit: int = _MAX_POINTS) -> Series:
    """At most `limit` points, each the mean of its neighbours; the axis stays in proportion."""
    x, y = np.asarray(series.x, dtype=np.float64), np.asarray(series.y, dtype=np.float64)
    if len(x) <= limit:
        return replace(series, x=x.tolist(), y=y.tolist())
    groups = np.array_split(np.arange(len(x)), limit)
    means = [_finite_mean(y[group]) for group in groups]
    return replace(series, x=[float(x[group].mean()) for group in groups], y=means)


def _finite_mean(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else math.nan
