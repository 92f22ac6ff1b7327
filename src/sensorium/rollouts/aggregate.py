"""Metrics of many rollouts, with the names and numbers of NeMo Gym's ``/aggregate_metrics``."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sensorium.rollouts import row_names as names
from sensorium.rollouts.columns import columns_of, describe, numbers_of, present, spread
from sensorium.rollouts.speed import speed_summary

Row = Mapping[str, Any]
Extra = Callable[[list[list[Row]]], Mapping[str, Any]]
"""The measured rows of each task -> further metrics."""
_NOT_STRIPPED = ("usage", "incomplete_details")
_HEAVY = frozenset(
    {
        names.RESPONSE,
        names.PARAMS,
        names.OURS,
        "ng_agent_observations",
        "ng_model_call_capture",
        "ng_trajectory",
    }
)
_STATISTICS = (
    "max",
    "min",
    "median",
    "std",
    "sem",
    "se",
    "p25",
    "p75",
    "ci_low_95",
    "ci_high_95",
    "histogram",
)
_DERIVED_ENDINGS = (
    *(f"/{name}" for name in ("max", "min", "median", "p5", "p25", "p75", "p95", "ci_low_95", "ci_high_95")),
    "/ci_lower",
    "/ci_upper",
    "_ci_lower",
    "_ci_upper",
    "_ci95_lower",
    "_ci95_upper",
    "/std_dev_across_runs",
    "/std_err_across_runs",
    "/avg_sample_std_dev",
)
_NO_METRICS = frozenset({"num_repeats", "token_usage_version"})


def stripped(row: Row) -> dict[str, Any]:
    """A row without prompts and trajectories: all that metrics need of it."""
    made = {name: value for name, value in row.items() if name not in _HEAVY}
    response = names.section(row, names.RESPONSE)
    kept = {name: response[name] for name in _NOT_STRIPPED if response.get(name) is not None}
    return made | ({names.RESPONSE: kept} if kept else {})


def by_task(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows grouped by their task, in the order of the tasks' numbers."""
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.get(names.TASK_INDEX, 0)].append(row)
    return [groups[task] for task in sorted(groups)]


def aggregate_metrics(rows: Sequence[Row], extra: Extra | None = None) -> dict[str, Any]:
    """Metrics of the rollouts of one agent.

    Every top-level number of a row is a metric, true counting as 1, and so are the numbers of its usage. Rows
    with ``mask_sample`` count in nothing but ``coverage``.

    Args:
        rows: Finished rows, whole or `stripped`.
        extra: Adds metrics of the whole run, e.g. `pass_majority_metrics`.

    Returns:
        ``group_level_metrics`` (by task), ``agent_metrics`` (of all rows), ``key_metrics``, ``perf_summary``,
        ``repeat_level_metrics`` (by repeat).
    """
    made: dict[str, Any] = {
        "group_level_metrics": [],
        "agent_metrics": {},
        "key_metrics": {},
        "perf_summary": None,
        "repeat_level_metrics": [],
    }
    if not rows:
        return made
    measured = [row for row in rows if not row.get(names.MASK)]
    coverage = _coverage(rows, measured)
    speeds = [row["ng_perf"] for row in rows if isinstance(row.get("ng_perf"), Mapping)]
    made["perf_summary"] = speed_summary(speeds, len(rows))
    if not measured:
        return made | {"agent_metrics": dict(coverage), "key_metrics": dict(coverage)}
    numbers = [numbers_of(row) for row in measured]
    columns = list(dict.fromkeys(name for row in numbers for name in row))
    repeats = _by_repeat(measured, numbers)
    agent = {**describe(columns_of(numbers, columns)), **across_repeats(repeats), **coverage}
    tasks = by_task(measured)
    if extra is not None:
        agent |= extra(tasks)
    agent["num_repeats"] = len({row.get(names.ROLLOUT_INDEX, 0) for row in rows})
    return made | {
        "group_level_metrics": [_group(group, columns) for group in tasks],
        "agent_metrics": agent,
        "key_metrics": {name: value for name, value in agent.items() if name.startswith("mean/")} | coverage,
        "repeat_level_metrics": repeats,
    }


def across_repeats(repeats: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Statistics of each ``mean/...`` over the repeats, as ``<statistic>_across_repeats/mean/...``."""
    made: dict[str, float] = {}
    for name in sorted({name for row in repeats for name in row if is_primary(name)}):
        values = present([float(row[name]) for row in repeats if name in row])
        if values:
            told = spread(values, error_name="se", quartiles=False)
            made |= {f"{statistic}_across_repeats/{name}": value for statistic, value in told.items()}
    return made


def is_primary(name: str) -> bool:
    """Whether a metric is an estimate of its own, no statistic of another one and no count."""
    return (
        not name.startswith("_ng_")
        and name not in _NO_METRICS
        and name not in ("sample_count", "missing_count")
        and not name.startswith(tuple(f"{statistic}/" for statistic in _STATISTICS))
        and not name.endswith(_DERIVED_ENDINGS)
        and "_across_repeats/" not in name
    )


def _coverage(rows: Sequence[Row], measured: Sequence[Row]) -> dict[str, int]:
    """How much was measured; nothing when everything was."""
    if len(measured) == len(rows):
        return {}
    tasks = {row.get(names.TASK_INDEX, 0) for row in rows}
    known = {row.get(names.TASK_INDEX, 0) for row in measured}
    return {
        "coverage/measured_rollouts": len(measured),
        "coverage/masked_rollouts": len(rows) - len(measured),
        "coverage/measured_tasks": len(known),
        "coverage/fully_masked_tasks": len(tasks - known),
    }


def _group(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, Any]:
    """Metrics of one task."""
    count = len(rows)
    numbers = [numbers_of(row) for row in rows]
    infos = [_identity(row) | own for row, own in zip(rows, numbers, strict=True)]
    return {
        names.TASK_INDEX: rows[0].get(names.TASK_INDEX, 0),
        **describe(columns_of(numbers, columns)),
        "sample": {names.AGENT: {"name": "agent"}},
        "num_rollouts": count,
        "expected_num_rollouts": count,
        "missing_num_rollouts": 0,
        "reward_profile_completion_pct": 100.0,
        "rollout_infos": sorted(infos, key=lambda info: int(info[names.ROLLOUT_INDEX])),
    }


def _identity(row: Row) -> dict[str, Any]:
    """Which rollout a row is of."""
    task, rollout = row.get(names.TASK_INDEX, 0), row.get(names.ROLLOUT_INDEX, 0)
    return {"rollout_id": f"{task}:{rollout}", names.TASK_INDEX: task, names.ROLLOUT_INDEX: rollout}


def _by_repeat(rows: Sequence[Row], numbers: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """Metrics of the first rollouts of all tasks, of the second ones, ...; none when there is one repeat."""
    groups: dict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        groups[row.get(names.ROLLOUT_INDEX, 0)].append(place)
    if len(groups) < 2:
        return []
    num_tasks = len({row.get(names.TASK_INDEX, 0) for row in rows})
    made = []
    for repeat in sorted(groups):
        places = groups[repeat]
        count = len({rows[place].get(names.TASK_INDEX, 0) for place in places})
        entry: dict[str, Any] = {
            names.ROLLOUT_INDEX: repeat,
            "sample_count": count,
            "missing_count": num_tasks - count,
        }
        for name, values in sorted(columns_of([numbers[place] for place in places]).items()):
            there = present(values)
            if there:
                told = spread(there, error_name="sem", quartiles=True)
                entry |= {f"{stat}/{name}": value for stat, value in told.items() if not math.isnan(value)}
        made.append(entry)
    return made
