"""Which metrics of a run become which chart, and the table that explains all of them."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sensorium.analysis.charts import (
    COMPACT,
    REGULAR,
    LegendEntry,
    Mark,
    Series,
    Size,
    legend_of,
    line_chart,
    sparkline,
)
from sensorium.analysis.formatting import number
from sensorium.metrics.names import meaning

MetricRows = Sequence[Mapping[str, Any]]
"""Lines of `metrics.jsonl`."""


@dataclass(frozen=True, slots=True)
class Course:
    """What a run measured, and what its charts have in common."""

    rows: MetricRows
    sensors: Sequence[str] = ()
    """Canonical order; the position of a sensor is its colour in every chart."""
    marks: Sequence[Mark] = ()
    """Steps at which training changed."""
    x_unit: str = "steps"
    """What `step` counts, for the axis."""
    x_name: str = "environment steps"
    """The same in words, for those who cannot see the chart."""

    @property
    def names(self) -> list[str]:
        """Every metric, sorted."""
        return sorted({name for row in self.rows for name in row} - {"step", "wall_s"})

    def values(self, name: str) -> list[float]:
        """One metric; NaN where it was not measured or not finite, the median of a histogram."""
        return [_as_float(row.get(name)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Plan:
    """One chart: its heading and a pattern for the names it draws; a group is the name of the line."""

    heading: str
    pattern: str
    about: str | None = None
    """Name of a metric whose meaning explains several lines; None when the heading says enough."""
    is_share: bool = False
    level: float | None = None
    """Value to compare with."""
    sentence: str | None = None
    """Explains the chart instead of the meaning of its metric."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Name of a line -> what it is called in the legend."""
    quiet_at: float | None = None
    """Not drawn when every value is this: nothing happened."""


_LEARNING = (
    Plan("Success", r"(rollout|eval)/success_rate", is_share=True),
    Plan("Return", r"(rollout|eval)/return_mean"),
)
_DETAILS = (
    Plan("Policy loss", r"loss/policy"),
    Plan("Value loss", r"loss/value"),
    Plan("Entropy", r"policy/entropy"),
    Plan("KL divergence", r"policy/kl"),
    Plan("Clip fraction", r"policy/clip_fraction"),
    Plan("Explained variance", r"value/explained_variance"),
    Plan("Gradient norm", r"gradient/norm"),
    Plan("Episode length", r"rollout/episode_length"),
    Plan("Learning rate", r"lr"),
    Plan("Learning rates of the parts", r"lr/([^/]+)", "lr/each part"),
    Plan("Reward terms", r"reward/([^/]+)", "reward/of each line"),
    Plan("Alignment loss", r"loss/alignment"),
    Plan("Contrastive loss", r"loss/contrastive"),
    Plan("Contrastive accuracy", r"contrastive/(accuracy|chance)", "contrastive/accuracy", is_share=True),
    Plan("Direction of pairs", r"similarity/cosine/([^/]+)", "similarity/cosine/two senses", level=0.0),
    Plan("Evenness of attention", r"attention/entropy/([^/]+)", "attention/entropy/a sense", is_share=True),
    Plan("Stage of the curriculum", r"curriculum/stage"),
    Plan("Success that promotion looks at", r"curriculum/success_lower", is_share=True),
    Plan("Seconds per update", r"time/((?!steps_per_s|eta_s)[^/]+)_s", "time/each part_s"),
)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart with its heading and, for several lines, a legend."""

    heading: str
    svg: str
    legend: Sequence[LegendEntry]
    explanation: str | None
    latest: str | None
    """Last value, when there is a single line."""


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One line of the table."""

    name: str
    first: str
    last: str
    meaning: str
    sparkline: str


def learning_charts(course: Course) -> list[Chart]:
    """Success and return over environment steps, where they were measured."""
    return draw_charts(course, _LEARNING, REGULAR)


def detail_charts(course: Course) -> list[Chart]:
    """Losses, entropy, divergence, rates and times over environment steps, where they were measured."""
    return draw_charts(replace(course, marks=()), _DETAILS, COMPACT)


def metric_table(course: Course) -> list[MetricRow]:
    """Every metric with its first and last value and what it means, in the order of the names."""
    table = []
    for name in course.names:
        values = course.values(name)
        measured = [value for value in values if math.isfinite(value)]
        table.append(
            MetricRow(
                name=name,
                first=number(measured[0] if measured else None),
                last=number(measured[-1] if measured else None),
                meaning=meaning(name) or "",
                sparkline=sparkline(values, title=f"{name} over the run"),
            )
        )
    return table


def draw_charts(course: Course, plans: Sequence[Plan], size: Size) -> list[Chart]:
    """One chart per plan, over `Course.x_name`; none where nothing that it draws was measured."""
    charts, names = [], course.names
    for plan in plans:
        metrics = {
            plan.labels.get(label := match[match.lastindex or 0], label): name
            for name in names
            if (match := re.fullmatch(plan.pattern, name))
        }
        series = _coloured(course, metrics)
        if all(y == plan.quiet_at for line in series for y in line.y):
            continue
        svg = line_chart(
            series,
            x_unit=course.x_unit,
            whole_x=True,
            title=f"{plan.heading} over {course.x_name}",
            y_limits=(0.0, 1.0) if plan.is_share else None,
            marks=course.marks,
            level=plan.level,
            size=size,
        )
        if svg:
            several = len(series) > 1
            about = plan.about if several else metrics[series[0].name]
            charts.append(
                Chart(
                    heading=plan.heading,
                    svg=svg,
                    legend=legend_of(series) if several or series[0].name in course.sensors else (),
                    explanation=plan.sentence or (meaning(about) if about is not None else None),
                    latest=None if several else number(series[0].y[-1]),
                )
            )
    return charts


def _coloured(course: Course, metrics: Mapping[str, str]) -> list[Series]:
    """Lines of the metrics that were measured: sensors and pairs in their order and colours, then the rest.

    Args:
        course: Where they were measured.
        metrics: Name of the line -> metric.
    """
    steps = [float(row["step"]) for row in course.rows]
    lines = [_measured(Series(label, steps, course.values(name))) for label, name in metrics.items()]
    place = {name: i for i, name in enumerate(course.sensors)}
    known, others = [], []
    for line in lines:
        parts = [place[part] for part in line.name.split("+") if part in place]
        whole = len(parts) == line.name.count("+") + 1 <= 2
        if line.y and whole:
            known.append((parts, line))
        elif line.y:
            others.append(line)
    known.sort(key=lambda entry: entry[0])
    first_free = len(place) if known else 0
    return [
        replace(line, colour=parts[0], second_colour=parts[1] if len(parts) == 2 else None)
        for parts, line in known
    ] + [replace(line, colour=first_free + i) for i, line in enumerate(others)]


def _measured(series: Series) -> Series:
    """Without the updates that did not measure it: an update in which no episode ended is no gap."""
    points = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(y)]
    return Series(series.name, [x for x, _ in points], [y for _, y in points])


def _as_float(value: Any) -> float:
    if isinstance(value, Mapping):
        value = value.get("p50")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else math.nan
