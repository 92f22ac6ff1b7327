"""Small plots drawn with Pillow alone: a column over its index, a matrix or depth picture in colours.

Colours run from dark blue over green to yellow, evenly spaced in lightness, so that they also tell values
apart in grey.
"""

import io
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core.errors import require
from sensorium.core.types import Modality
from sensorium.observations.array import array_of
from sensorium.observations.base import Part
from sensorium.observations.values import ArrayValue, Column, TableValue
from sensorium.representations.layout.array import block_means

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

SIZE = (480, 280)
"""Width and height of a plot, pixels."""
MIN_POINTS = 30
"""Values of a column or vector from which on a plot says more than numbers."""
MIN_SIDE = 8
"""Rows and columns of a matrix from which on a plot says more than numbers."""
_LEFT, _TOP, _RIGHT, _BOTTOM = 62, 22, 14, 38
_STOPS = np.array(
    [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], dtype=np.float64
)
_INK, _GRID, _LINE, _VOID = (40, 40, 40), (225, 225, 225), (31, 90, 180), (255, 255, 255)
_MAX_CELLS = 256


class Series(NamedTuple):
    """What a line plot shows."""

    x: NDArray[np.float64]
    """(N,) ascending."""
    y: NDArray[np.float64]
    """(N,), NaN where there is none."""
    x_name: str
    y_name: str
    start: str = ""
    """What the first x is when it is no number, e.g. a date."""
    end: str = ""
    """What the last x is when it is no number."""


def small_plot(part: Part) -> bytes | None:
    """Draw a table's most telling column, a vector, a matrix or a depth picture.

    Returns:
        A PNG of 480x280 pixels; None when the part is of another kind, or too short for a plot to say more
        than numbers do.
    """
    value = part.value
    if isinstance(value, ArrayValue):
        array = array_of(value)
        if array is None or not array.size or value.low is None:
            return None
        return _array_plot(part, value, array)
    if isinstance(value, TableValue):
        series = column_series(value)
        return None if series is None else _line_plot(series)
    return None


def column_series(table: TableValue) -> Series | None:
    """The numeric column with the most different values over the column that orders the rows.

    The horizontal axis is the first date column that ascends, or the row number.
    """
    if len(table.rows) < MIN_POINTS:
        return None
    candidates = [
        (column.distinct or 0, -position)
        for position, column in enumerate(table.columns)
        if column.quantiles is not None
        and (column.distinct or 0) > 2
        and not _counts(table, position, column)
    ]
    if not candidates:
        return None
    position = -max(candidates)[1]
    cells = [row[position] for row in table.rows]
    y = np.array([float(c) if isinstance(c, int | float) else np.nan for c in cells], dtype=np.float64)
    if np.count_nonzero(np.isfinite(y)) < MIN_POINTS:
        return None
    x = np.array(table.row_numbers, dtype=np.float64)
    name, unit = table.columns[position].name, table.columns[position].unit
    label = f"{name} [{unit}]" if unit and unit not in name else name
    for place, column in enumerate(table.columns):
        dates = [row[place] for row in table.rows]
        if isinstance(column.low, str) and all(isinstance(one, str) for one in dates):
            texts = [str(one) for one in dates]
            if texts == sorted(texts):
                return Series(x, y, column.name, label, texts[0][:16], texts[-1][:16])
    return Series(x, y, "row", label)


def _counts(table: TableValue, position: int, column: Column) -> bool:
    """Whether a column only numbers the rows."""
    if column.distinct != table.num_rows:
        return False
    cells = [row[position] for row in table.rows]
    steps = {
        (b - a) / max(1, n - m)
        for a, b, m, n in zip(cells, cells[1:], table.row_numbers, table.row_numbers[1:], strict=False)
        if isinstance(a, int | float) and isinstance(b, int | float)
    }
    return len(steps) == 1


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between two bounds, about `count` of them: 1, 2 or 5 times a power of ten apart."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / max(1, count)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= raw), 10.0 * power)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, min(last, first + 4 * count) + 1)]


def colours(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.uint8]:
    """Colours of numbers.

    Args:
        values: Any shape; NaN becomes white.
        low: Value of the darkest colour.
        high: Value of the brightest.

    Returns:
        (..., 3) uint8.
    """
    span = high - low
    with np.errstate(invalid="ignore", over="ignore"):
        share = np.clip((values - low) / span, 0.0, 1.0) if span > 0 else np.zeros_like(values)
    places = np.where(np.isfinite(share), share, 0.0) * (len(_STOPS) - 1)
    below = np.minimum(places.astype(np.intp), len(_STOPS) - 2)
    part = (places - below)[..., None]
    mixed = _STOPS[below] * (1.0 - part) + _STOPS[below + 1] * part
    mixed[~np.isfinite(values)] = _VOID
    return np.asarray(np.rint(mixed), dtype=np.uint8)


def _array_plot(part: Part, value: ArrayValue, array: NDArray[Any]) -> bytes | None:
    numbers = np.abs(array) if array.dtype.kind == "c" else array
    numbers = np.squeeze(numbers).astype(np.float64)
    if numbers.ndim == 1 and numbers.size >= MIN_POINTS and value.low != value.high:
        index = np.arange(numbers.size, dtype=np.float64)
        return _line_plot(Series(index, numbers, "index", value.unit or "value"))
    if numbers.ndim != 2 or min(numbers.shape) < MIN_SIDE:
        return None
    is_depth = part.modality is Modality.DEPTH
    if is_depth:
        numbers = np.where(numbers > 0, numbers, np.nan)
    rows, columns = (min(size, _MAX_CELLS) for size in numbers.shape)
    return _heat_map(block_means(numbers, rows, columns), numbers.shape, value.unit or "")


def _heat_map(cells: NDArray[np.float64], shape: tuple[int, ...], unit: str) -> bytes | None:
    """Draw a matrix with a scale of colours beside it."""
    finite = cells[np.isfinite(cells)]
    if not finite.size:
        return None
    image_module = require("PIL.Image", extra="observe", purpose="plots")
    low, high = float(finite.min()), float(finite.max())
    picture, draw = _blank()
    right = SIZE[0] - 90
    scale = min((right - _LEFT) / shape[1], (SIZE[1] - _TOP - _BOTTOM) / shape[0])
    width, height = max(8, round(shape[1] * scale)), max(8, round(shape[0] * scale))
    heat = image_module.fromarray(colours(cells, low, high))
    # Enlarged cells keep their edges; reduced ones are averaged already.
    picture.paste(heat.resize((width, height), image_module.Resampling.NEAREST), (_LEFT, _TOP))
    draw.rectangle((_LEFT - 1, _TOP - 1, _LEFT + width, _TOP + height), outline=_INK)
    for axis, size, length in ((0, shape[1], width), (1, shape[0], height)):
        for tick in ticks(0.0, float(size - 1), 4):
            place = round((tick + 0.5) * length / size)
            if axis == 0:
                _text(draw, (_LEFT + place, _TOP + height + 4), f"{tick:.0f}", "ma")
            else:
                _text(draw, (_LEFT - 6, _TOP + place), f"{tick:.0f}", "rm")
    _text(draw, (_LEFT + width // 2, SIZE[1] - 4), "column", "md")
    _text(draw, (4, 4), "row", "la")
    _colour_bar(picture, draw, low, high, unit)
    return _png(picture)


def _colour_bar(
    picture: "Image.Image", draw: "ImageDraw.ImageDraw", low: float, high: float, unit: str
) -> None:
    image_module = require("PIL.Image", extra="observe", purpose="plots")
    left, top, height = SIZE[0] - 74, _TOP, SIZE[1] - _TOP - _BOTTOM
    column = np.linspace(high, low, height)[:, None].repeat(12, axis=1)
    picture.paste(image_module.fromarray(colours(column, low, high)), (left, top))
    draw.rectangle((left - 1, top - 1, left + 12, top + height), outline=_INK)
    for tick in ticks(low, high, 4):
        share = (tick - low) / (high - low) if high > low else 0.0
        _text(draw, (left + 17, top + round((1.0 - share) * (height - 1))), _label(tick), "lm")
    if unit:
        _text(draw, (left, 4), unit, "la")


class _Axis(NamedTuple):
    """Maps numbers to pixels; halves keep the difference of huge bounds finite."""

    low: float
    high: float
    begin: int
    """Pixel of the lowest number."""
    end: int
    """Pixel of the highest number."""

    def places(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pixels of numbers, (N,) to (N,)."""
        share = (numbers / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return np.asarray(self.begin + share * (self.end - self.begin), dtype=np.float64)

    def at(self, number: float) -> int:
        """Pixel of one number."""
        return round(float(self.places(np.array([number]))[0]))


def _line_plot(series: Series) -> bytes:
    """Draw values over an axis; where there are more than pixels, the range within each pixel column."""
    picture, draw = _blank()
    finite = np.isfinite(series.y)
    low, high = float(series.y[finite].min()), float(series.y[finite].max())
    if low == high:
        low, high = low - 1.0, high + 1.0
    x_low, x_high = float(series.x[0]), float(series.x[-1])
    right, bottom = SIZE[0] - _RIGHT, SIZE[1] - _BOTTOM
    across = _Axis(x_low, x_high if x_high > x_low else x_low + 1.0, _LEFT, right - 1)
    up = _Axis(low, high, bottom - 1, _TOP)
    for tick in ticks(low, high, 5):
        place = up.at(tick)
        draw.line((_LEFT, place, right, place), fill=_GRID)
        _text(draw, (_LEFT - 5, place), _label(tick), "rm")
    if series.start or series.end:
        _text(draw, (_LEFT, bottom + 5), series.start, "la")
        _text(draw, (right, bottom + 5), series.end, "ra")
    else:
        for tick in ticks(x_low, x_high, 5):
            place = across.at(tick)
            draw.line((place, bottom, place, bottom + 3), fill=_INK)
            _text(draw, (place, bottom + 5), _label(tick), "ma")
    draw.line((_LEFT, _TOP, _LEFT, bottom, right, bottom), fill=_INK)
    _curve(draw, across.places(series.x), up.places(np.where(finite, series.y, np.nan)))
    _text(draw, (4, 4), series.y_name[:60], "la")
    _text(draw, ((_LEFT + right) // 2, SIZE[1] - 4), series.x_name[:60], "md")
    return _png(picture)


def _curve(draw: "ImageDraw.ImageDraw", x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    if len(x) > 2 * SIZE[0]:
        x, y = _envelope(x, y)
    points: list[tuple[float, float]] = []
    for px, py in zip(x.tolist(), y.tolist(), strict=True):
        if py == py:
            points.append((px, py))
            continue
        _stroke(draw, points)
        points = []
    _stroke(draw, points)


def _stroke(draw: "ImageDraw.ImageDraw", points: list[tuple[float, float]]) -> None:
    if len(points) > 1:
        draw.line(points, fill=_LINE, width=1)
    elif points:
        px, py = points[0]
        draw.ellipse((px - 1, py - 1, px + 1, py + 1), fill=_LINE)


def _envelope(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lowest and highest value of each pixel column, so that no spike is lost."""
    columns = x.astype(np.intp)
    starts = np.flatnonzero(np.diff(columns, prepend=columns[0] - 1))
    low = np.fmin.reduceat(y, starts)
    high = np.fmax.reduceat(y, starts)
    places = columns[starts].astype(np.float64)
    return places.repeat(2), np.stack((low, high), axis=1).reshape(-1)


def _blank() -> "tuple[Image.Image, ImageDraw.ImageDraw]":
    image_module = require("PIL.Image", extra="observe", purpose="plots")
    draw_module = require("PIL.ImageDraw", extra="observe", purpose="plots")
    picture = image_module.new("RGB", SIZE, _VOID)
    return picture, draw_module.Draw(picture)


def _text(draw: "ImageDraw.ImageDraw", place: tuple[float, float], text: str, anchor: str) -> None:
    font_module = require("PIL.ImageFont", extra="observe", purpose="plots")
    draw.text(place, text, fill=_INK, anchor=anchor, font=font_module.load_default(11))


def _label(number: float) -> str:
    return f"{number:.4g}"


def _png(picture: "Image.Image") -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
