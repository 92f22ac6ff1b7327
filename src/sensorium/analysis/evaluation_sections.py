"""The report's sections about evaluation suites: tables with a chart in every row, and curves."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

from sensorium.analysis.charts import NUM_COLOURS, LegendEntry, Series, legend_of, line_chart
from sensorium.analysis.curves import Chart
from sensorium.analysis.evaluation_tables import ResultRow, ResultTable, result_tables
from sensorium.analysis.evaluations import Evaluation, MissingModalityEvaluation
from sensorium.analysis.row_charts import interval_dots, share_bars

HEADINGS = {
    "missing-modality": "When senses break",
    "sensor-failure": "When a sense fails in mid-episode",
    "generalisation": "Combinations that training did not have",
}


@dataclass(frozen=True, slots=True)
class DrawnTable:
    """A table with the chart of each of its rows and a legend of their colours."""

    table: ResultTable
    rows: Sequence[tuple[ResultRow, str]]
    legend: Sequence[LegendEntry]
    has_charts: bool


@dataclass(frozen=True, slots=True)
class EvaluationSection:
    """One suite in the report."""

    heading: str
    question: str
    charts: Sequence[Chart]
    tables: Sequence[DrawnTable]
    evaluation: Evaluation


def evaluation_sections(evaluations: Sequence[Evaluation]) -> list[EvaluationSection]:
    """One section per suite that was run."""
    return [
        EvaluationSection(
            heading=HEADINGS[evaluation.suite],
            question=suite_question(type(evaluation)),
            charts=_curves(evaluation),
            tables=[_drawn(table) for table in result_tables(evaluation)],
            evaluation=evaluation,
        )
        for evaluation in evaluations
    ]


def suite_question(evaluation: type[Evaluation]) -> str:
    """What a suite asks, from the first line of its docstring."""
    text = (inspect.getdoc(evaluation) or "").split("\n", 1)[0].partition(": ")[2]
    return text[:1].upper() + text[1:]


def _drawn(table: ResultTable) -> DrawnTable:
    rows = []
    for row in table.rows:
        if row.shares:
            svg = share_bars(row.shares, table.legend, name=row.name)
        else:
            svg = interval_dots(
                row.measured, table.legend, name=row.name, right_end=table.right_end, mark=table.mark
            )
        rows.append((row, svg))
    legend = [LegendEntry(name, i % NUM_COLOURS) for i, name in enumerate(table.legend)]
    return DrawnTable(table, rows, legend, any(svg for _, svg in rows))


def _curves(evaluation: Evaluation) -> list[Chart]:
    if not isinstance(evaluation, MissingModalityEvaluation):
        return []
    series = [
        Series(kind, [float(i) for i in range(len(found.curve))], found.curve)
        for kind, found in evaluation.results.items()
        if len(found.curve) > 1
    ]
    if not series:
        return []
    svg = line_chart(
        series,
        title="Success against the number of broken senses",
        x_unit="broken",
        y_limits=(0.0, 1.0),
        whole_x=True,
    )
    explanation = "Mean over the subsets that lack as many senses. The area below is the relative robustness."
    return [Chart("Success against the number of broken senses", svg, legend_of(series), explanation, None)]
