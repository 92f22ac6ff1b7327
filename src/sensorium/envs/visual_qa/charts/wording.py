"""Answers about charts in the form that they are checked in."""

from collections.abc import Sequence

from sensorium.envs.visual_qa.answers import ChoiceAnswer, NumberAnswer
from sensorium.envs.visual_qa.charts.model import Chart
from sensorium.envs.visual_qa.colors import COLORS, SYNONYMS
from sensorium.envs.visual_qa.documents.dates import MONTHS

READ_OFF = "Read it off the chart as exactly as you can."


def number(chart: Chart, value: float, tolerance: float, unit: str | None = None) -> NumberAnswer:
    """A value of a chart."""
    labels = [*chart.categories, *(one.name for one in chart.series), chart.title]
    return NumberAnswer(
        value=float(f"{value:.10g}"),
        tolerance=float(f"{tolerance:.4g}"),
        unit=chart.unit if unit is None else unit,
        labels=tuple(dict.fromkeys(label for label in labels if any(c.isdigit() for c in label))),
    )


def count(chart: Chart, value: int) -> NumberAnswer:
    """How many there are."""
    return number(chart, float(value), 0.0, unit="")


def category(chart: Chart, index: int) -> ChoiceAnswer:
    """A place along the axis."""
    names = chart.categories
    return ChoiceAnswer(value=names[index], options=names, synonyms=_synonyms(names))


def series_name(chart: Chart, index: int) -> ChoiceAnswer:
    """A series by its name."""
    names = tuple(one.name for one in chart.series)
    return ChoiceAnswer(value=names[index], options=names, synonyms=_synonyms(names))


def color(name: str) -> ChoiceAnswer:
    """A colour."""
    return ChoiceAnswer(value=name, options=tuple(COLORS), synonyms=SYNONYMS)


def place(chart: Chart, name: str) -> str:
    """A category with the name of its axis, e.g. ``the year 1990``."""
    if chart.kind == "histogram":
        return f"the interval {name}"
    return f"the {chart.x_label} {name}" if chart.x_label and not name.startswith(chart.x_label) else name


def _synonyms(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    return {name: ways for name in names if (ways := _other_ways(name))}


def _other_ways(name: str) -> tuple[str, ...]:
    """How else a category may be written: months in full, intervals with a dash."""
    head, _, tail = name.partition(" ")
    month = next((m for m in MONTHS if m[:3] == head), None)
    if month is not None:
        return (f"{month} {tail}".strip(),) if month != head else ()
    low, to, high = name.partition(" to ")
    if to:
        return (f"{low}-{high}", f"{low} - {high}", f"{low} and {high}", f"[{low}, {high}", f"({low}, {high}",
                f"{low}, {high}")  # fmt: skip
    return ()
