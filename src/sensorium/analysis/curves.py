"""Which metrics of a run become which chart, and the table that explains all of them."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sensorium.analysis.charts import (
    COMPACT,
    REGULAR,
    LegendEntry,
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
class _Plan:
    """One chart: its heading and a pattern for the names it draws; a group is the name of the line."""

    heading: str
    pattern: str
    is_share: bool = False


_LEARNING = (
    _Plan("Success", r"(rollout|eval)/success_rate", is_share=True),
    _Plan("Return", r"(rollout|eval)/return_mean"),
)
_DETAILS = (
    _Plan("Policy loss", r"loss/policy"),
    _Plan("Value loss", r"loss/value"),
    _Plan("Entropy", r"policy/entropy"),
    _Plan("KL divergence", r"policy/kl"),
    _Plan("Clip fraction", r"policy/clip_fraction"),
    _Plan("Explained variance", r"value/explained_variance"),
    _Plan("Gradient norm", r"gradient/norm"),
    _Plan("Episode length", r"rollout/episode_length"),
    _Plan("Learning rate", r"lr"),
    _Plan("Gates of the senses", r"fusion/gate/([^/]+)"),
    _Plan("Presence of the senses", r"presence/([^/]+)", is_share=True),
    _Plan("Attention", r"attention/([^/]+)"),
    _Plan("Gradient per sense", r"gradient/norm/([^/]+)"),
    _Plan("Seconds per update", r"time/([^/]+)_s"),
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


def learning_charts(rows: MetricRows) -> list[Chart]:
    """Success and return over environment steps, where they were measured."""
    return _draw(rows, _LEARNING, REGULAR)


def detail_charts(rows: MetricRows) -> list[Chart]:
    """Losses, entropy, divergence, gates and times over environment steps, where they were measured."""
    return _draw(rows, _DETAILS, COMPACT)


def metric_table(rows: MetricRows) -> list[MetricRow]:
    """Every metric with its first and last value and what it means, in the order of the names."""
    table = []
    for name in _names(rows):
        values = _values(rows, name)
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


def _draw(rows: MetricRows, plans: Sequence[_Plan], size: Size) -> list[Chart]:
    steps = [float(row["step"]) for row in rows]
    charts = []
    for plan in plans:
        series, metric = [], ""
        for name in _names(rows):
            match = re.fullmatch(plan.pattern, name)
            if match:
                metric = name
                label = match.group(1) if match.groups() else name
                series.append(_measured(Series(label, steps, _values(rows, name))))
        series = [line for line in series if line.y]
        limits = (0.0, 1.0) if plan.is_share else None
        svg = line_chart(series, title=f"{plan.heading} over environment steps", y_limits=limits, size=size)
        if svg:
            several = len(series) > 1
            charts.append(
                Chart(
                    heading=plan.heading,
                    svg=svg,
                    legend=legend_of(series) if several else (),
                    explanation=None if several else meaning(metric),
                    latest=None if several else number(series[0].y[-1]),
                )
            )
    return charts


def _measured(series: Series) -> Series:
    """Without the updates that did not measure it: an update in which no episode ended is no gap."""
    points = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(y)]
    return Series(series.name, [x for x, _ in points], [y for _, y in points])


def _names(rows: MetricRows) -> list[str]:
    return sorted({name for row in rows for name in row} - {"step", "wall_s"})


def _values(rows: MetricRows, name: str) -> list[float]:
    """A metric over the run; NaN where it was not measured or not finite, the median of a histogram."""
    return [_as_float(row.get(name)) for row in rows]


def _as_float(value: Any) -> float:
    if isinstance(value, Mapping):
        value = value.get("p50")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else math.nan
