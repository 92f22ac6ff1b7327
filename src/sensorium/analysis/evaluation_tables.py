"""The results of an evaluation suite as tables: the same rows on the terminal and in the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sensorium.analysis.evaluations import (
    Evaluation,
    FailureResult,
    GeneralisationEvaluation,
    MissingModalityEvaluation,
    RateSummary,
    SensorFailureEvaluation,
)
from sensorium.analysis.formatting import number, percent, percent_range, points
from sensorium.analysis.run_directory import SubsetResult
from sensorium.core.counted import counted


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure with its interval, for a chart beside the row."""

    series: int
    """Index into the table's legend."""
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One line: what was asked, and what was found."""

    name: str
    cells: tuple[str, ...]
    measured: tuple[Measured, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()
    """Stacked bars, each of one share per legend entry."""
    starts_group: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """Rows with their heading and how to read them."""

    title: str
    reading: str
    """One or two sentences: what a figure means."""
    columns: tuple[str, ...]
    """Of the name and of every cell."""
    rows: tuple[ResultRow, ...]
    legend: tuple[str, ...] = ()
    """What the colours of `measured` or `shares` stand for."""
    right_end: float = 1.0
    """Value at the right end of the chart."""
    mark: float | None = None
    """Where the chart has a dashed line."""


def result_tables(evaluation: Evaluation) -> list[ResultTable]:
    """Tables of one suite's results."""
    return _TABLES[type(evaluation)](evaluation)


def _missing_modality(evaluation: MissingModalityEvaluation) -> list[ResultTable]:
    results = evaluation.results
    kinds = tuple(results)
    subsets = {name: None for kind in results.values() for name in kind.subsets}
    rows: list[ResultRow] = []
    for name in sorted(subsets, key=lambda name: -name.count("+")):
        found = {kind: results[kind].subsets.get(name) for kind in kinds}
        rows.append(
            ResultRow(
                name=_spaced(name),
                cells=tuple(_rate(result) for result in found.values()),
                measured=tuple(
                    Measured(i, r.success_rate, *r.ci95)
                    for i, r in enumerate(found.values())
                    if r is not None
                ),
                starts_group=bool(rows) and rows[-1].name.count("+") != name.count("+"),
            )
        )
    summaries = [
        ResultRow(
            name=kind,
            cells=(
                "–" if r.relative_robustness is None else percent(r.relative_robustness),
                r.worst_sense or "–",
                "–" if r.worst_drop is None else f"{points(r.worst_drop)} points",
            ),
        )
        for kind, r in results.items()
    ]
    return [
        ResultTable(
            title="Success with some senses intact, the others broken",
            reading="Share of episodes solved with its 95 % interval. Absent: the policy is told. Frozen and "
            "noise: it is not.",
            columns=("intact", *kinds),
            rows=tuple(rows),
            legend=kinds,
        ),
        ResultTable(
            title="In one figure",
            reading="Relative robustness is the area under success against the number of broken senses: "
            "success with all senses if breaking them costs nothing. The worst drop is that of one sense.",
            columns=("kind", "relative robustness", "worst sense", "drop"),
            rows=tuple(summaries),
        ),
    ]


def _sensor_failure(evaluation: SensorFailureEvaluation) -> list[ResultTable]:
    results = evaluation.results
    conditions = {_condition(failure): None for failure in results.failures}
    by_target: dict[str, dict[str, FailureResult]] = {}
    for failure in results.failures:
        by_target.setdefault(failure.lost, {})[_condition(failure)] = failure
    highest = [f.kept_ci95[1] for f in results.failures if f.kept_ci95 is not None]
    sensors = tuple(dict.fromkeys(name for failure in results.failures for name in failure.gates))
    first, last = results.onset
    return [
        ResultTable(
            title="Success kept when a sense fails in mid-episode",
            reading=f"Success relative to the same episodes without the failure, with the 95 % interval over "
            f"pairs. The failure begins at a random step from {first} to {last}. Without it, "
            f"{_rate(results.clean)} are solved, in {number(results.mean_length)} steps in the mean.",
            columns=("lost", *conditions),
            rows=tuple(
                ResultRow(
                    name=lost,
                    cells=tuple(_kept(found.get(condition)) for condition in conditions),
                    measured=tuple(
                        Measured(i, found[condition].kept or 0.0, *(found[condition].kept_ci95 or (0.0, 0.0)))
                        for i, condition in enumerate(conditions)
                        if condition in found and found[condition].kept is not None
                    ),
                )
                for lost, found in by_target.items()
            ),
            legend=tuple(conditions),
            right_end=max([1.1, *(min(high, 2.0) for high in highest)]),
            mark=1.0,
        ),
        ResultTable(
            title="Which sense takes over",
            reading="Share of each sensor in the fused vector: before → during the failure (and at the same "
            "steps of the same episodes without it); three bars in this order. A larger share is not yet a "
            "better decision: read it beside the success that was kept.",
            columns=("failure", "episodes struck", "takes over", *sensors),
            rows=tuple(
                ResultRow(
                    name=f"{failure.lost} {_condition(failure)}",
                    cells=(str(failure.struck), failure.took_over or "none", *_gates(failure, sensors)),
                    shares=_bars(failure, sensors),
                )
                for failure in results.failures
            ),
            legend=sensors,
        ),
    ]


def _generalisation(evaluation: GeneralisationEvaluation) -> list[ResultTable]:
    results = evaluation.results
    worlds = tuple(results.held_out)
    rows: list[ResultRow] = []
    for held_out in (False, True):
        chosen = {name: r for name, r in results.combinations.items() if r.held_out is held_out}
        role = "held out" if held_out else "trained"
        for i, (name, combination) in enumerate(chosen.items()):
            found = [combination.worlds[world] for world in worlds]
            rows.append(
                ResultRow(
                    name=_spaced(name),
                    cells=(role, *(_rate(result) for result in found)),
                    measured=tuple(Measured(w, r.success_rate, *r.ci95) for w, r in enumerate(found)),
                    starts_group=held_out and i == 0 and bool(rows),
                )
            )
        summary = results.held_out if held_out else results.trained
        if summary:
            rows.append(_mean_row(role, [summary[world] for world in worlds]))
    return [
        ResultTable(
            title="Success with combinations of senses",
            reading="Share of episodes solved with its 95 % Wilson interval; senses that are not named are "
            "absent. The interquartile mean leaves out the best and the worst quarter; its interval is a "
            "Bayesian bootstrap stratified by combination.",
            columns=("combination", "role", *(f"{world} world" for world in worlds)),
            rows=tuple(rows),
            legend=tuple(f"{world} world" for world in worlds),
        )
    ]


def _mean_row(role: str, summaries: Sequence[RateSummary]) -> ResultRow:
    return ResultRow(
        name="interquartile mean",
        cells=(role, *(f"{percent(s.interquartile_mean)} ({percent_range(*s.ci95)})" for s in summaries)),
        measured=tuple(Measured(w, s.interquartile_mean, *s.ci95) for w, s in enumerate(summaries)),
    )


_TABLES: dict[type[Evaluation], Callable[[Any], list[ResultTable]]] = {
    MissingModalityEvaluation: _missing_modality,
    SensorFailureEvaluation: _sensor_failure,
    GeneralisationEvaluation: _generalisation,
}


def _condition(failure: FailureResult) -> str:
    lasting = "" if failure.duration is None else f" for {counted(failure.duration, 'step')}"
    return f"{failure.kind}{lasting}"


def _spaced(name: str) -> str:
    return name.replace("+", " + ")


def _rate(result: SubsetResult | None) -> str:
    return "–" if result is None else f"{percent(result.success_rate)} ({percent_range(*result.ci95)})"


def _kept(failure: FailureResult | None) -> str:
    """A ratio as percent of the clean success; its interval may lie above 100 %."""
    if failure is None or failure.kept is None or failure.kept_ci95 is None:
        return "–"
    return f"{percent(failure.kept)} ({percent_range(*failure.kept_ci95)})"


def _gates(failure: FailureResult, sensors: Sequence[str]) -> list[str]:
    shifts = [failure.gates.get(name) for name in sensors]
    return ["–" if s is None else f"{s.before:.2f} → {s.during:.2f} ({s.undisturbed:.2f})" for s in shifts]


def _bars(failure: FailureResult, sensors: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    if not failure.gates:
        return ()
    shifts = [failure.gates[name] for name in sensors]
    return tuple(tuple(getattr(s, part) for s in shifts) for part in ("before", "during", "undisturbed"))
