"""What a chart shows: enough to draw it, and to answer questions about it."""

import math
from collections.abc import Iterable
from typing import Literal

from sensorium.envs.base import Record

READING_ERROR = 0.025
"""Share of an axis by which a careful reader may be off."""
CLEAR_GAP = 0.04
"""Share of an axis from which two values are seen to differ."""
ChartKind = Literal["bar", "line", "scatter", "histogram", "pie", "stacked", "box", "heat_map", "panels"]


class Axis(Record):
    """An axis of numbers."""

    label: str
    low: float
    high: float
    step: float
    """Between ticks."""
    unit: str = ""

    @property
    def name(self) -> str:
        """The label without the unit."""
        return self.label.removesuffix(f" ({self.unit})")

    @property
    def span(self) -> float:
        """From one end to the other."""
        return self.high - self.low

    @property
    def reading_error(self) -> float:
        """What reading a value off the axis may be off by."""
        return READING_ERROR * self.span

    @property
    def ticks(self) -> tuple[float, ...]:
        """Values that are written at the axis."""
        count = round(self.span / self.step)
        return tuple(self.low + self.step * number for number in range(count + 1))

    def clear(self, a: float, b: float) -> bool:
        """Whether two values are seen to differ."""
        return abs(a - b) >= CLEAR_GAP * self.span


class Series(Record):
    """Values that belong together."""

    name: str
    values: tuple[float, ...]
    color: str
    """One of `colors.COLORS`."""
    x: tuple[float, ...] = ()
    """Of points in a scatter plot."""


class Chart(Record):
    """One chart."""

    family: Literal["chart"] = "chart"
    kind: ChartKind
    title: str
    x_label: str = ""
    categories: tuple[str, ...] = ()
    """Places along the axis without numbers; rows of a heat map are series."""
    series: tuple[Series, ...] = ()
    y: Axis | None = None
    """The axis of values; the vertical one unless `horizontal`."""
    x: Axis | None = None
    """A second axis of numbers: of scatter plots and histograms."""
    labelled: bool = False
    """Whether values are written beside their marks."""
    horizontal: bool = False
    decimals: int = 0
    """Digits after the point of written values."""
    unit: str = ""
    panels: tuple["Chart", ...] = ()
    width: int = 768
    height: int = 512

    @property
    def value_axis(self) -> Axis:
        """The axis of values, of charts that have one."""
        assert self.y is not None
        return self.y

    @property
    def number_axis(self) -> Axis:
        """The second axis of numbers, of charts that have one."""
        assert self.x is not None
        return self.x

    @property
    def value_error(self) -> float:
        """What reading one value may be off by: half of the last written digit, or what the axis allows."""
        return 0.5 * 10.0**-self.decimals if self.labelled else self.value_axis.reading_error

    def clear(self, a: float, b: float) -> bool:
        """Whether two values are seen to differ."""
        return a != b if self.labelled else self.value_axis.clear(a, b)


def axis(label: str, unit: str, values: Iterable[float], *, from_zero: bool, num_ticks: int = 6) -> Axis:
    """An axis that holds all values, with round ticks.

    Args:
        label: What is measured.
        unit: Its unit, written in brackets.
        values: What it must hold.
        from_zero: Whether it begins at zero though no value does.
        num_ticks: About how many.
    """
    known = list(values)
    low, high = min(known), max(known)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high == low:
        high = low + 1.0
    raw = (high - low) * 1.04 / num_ticks
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if raw <= power * factor * 1.0000001)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if high > (last - 0.3) * step:
        last += 1
    if low != 0.0 and low < (first + 0.2) * step and not from_zero:
        first -= 1 if first != 0 else 0
    text = f"{label} ({unit})" if unit else label
    digits = max(0, 2 - math.floor(math.log10(step)))
    return Axis(
        label=text,
        low=round(first * step, digits),
        high=round(last * step, digits),
        step=round(step, digits),
        unit=unit,
    )


def most_decimals(values: Iterable[float]) -> int:
    """Digits after the point that write all values exactly."""
    return max(len(f"{value:.10g}".partition(".")[2]) for value in values)


def written(value: float, decimals: int) -> str:
    """A value as charts write it."""
    return f"{value:,.{decimals}f}"
