"""What is made of a finished run: aggregate metrics, and rows in order."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sensorium.core.files import atomic_write_bytes
from sensorium.rollouts import row_names as names
from sensorium.rollouts.aggregate import aggregate_metrics, by_task, stripped
from sensorium.rollouts.journal import read_rows
from sensorium.rollouts.jsonl import dumps
from sensorium.rollouts.pass_at_k import pass_majority_metrics
from sensorium.rollouts.row_names import RowKey
from sensorium.rollouts.run_record import RunFiles
from sensorium.rollouts.runner import RowRunner

Group = tuple[str | None, str | None]
"""Environment server and agent."""


async def write_metrics(files: RunFiles, runner: RowRunner) -> list[dict[str, Any]]:
    """Compute the aggregate metrics of a run and write them.

    Args:
        files: Of the run.
        runner: Servers behind it are asked for their own view first, as NeMo Gym's collector does.

    Returns:
        One entry for each environment server, or agent where there is none: ``agent_ref``, the metrics of
        `aggregate_metrics`, and under ``sensorium`` pass@k where there are repeats.
    """
    groups = group_rows(files.output)
    labels = _labels(list(groups))
    entries = []
    for group, rows in groups.items():
        server = group[0]
        theirs = await runner.aggregate(server or group[1], rows)
        if theirs is None:
            theirs = aggregate_metrics(rows)
        entry: dict[str, Any] = {names.AGENT: {"name": labels[group]}}
        if server is not None:
            entry[names.ENVIRONMENT_SERVER] = server
        for part in ("agent_metrics", "key_metrics", "group_level_metrics", "repeat_level_metrics"):
            entry[part] = theirs.get(part) or ([] if part.endswith("level_metrics") else {})
        if theirs.get("perf_summary") is not None:
            entry["perf_summary"] = theirs["perf_summary"]
        entry[names.OURS] = {"num_rollouts": len(rows), "pass_at_k": repeats_metrics(rows)}
        entries.append(entry)
    atomic_write_bytes(files.metrics, dumps(entries, pretty=True) + b"\n")
    return entries


def repeats_metrics(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """pass@k of the rewards of measured rows; nothing where no task has two rollouts."""
    tasks = by_task([row for row in rows if not row.get(names.MASK)])
    if not tasks or max(len(task) for task in tasks) < 2:
        return {}
    metrics = pass_majority_metrics(tasks)
    metrics.pop("per_sample_aggregate", None)
    return metrics


def group_rows(path: Path) -> dict[Group, list[dict[str, Any]]]:
    """The `stripped` rows of a file by what ran them, each rollout once, in order."""
    groups: dict[Group, dict[RowKey, dict[str, Any]]] = defaultdict(dict)
    for row in read_rows(path):
        server = row.get(names.ENVIRONMENT_SERVER)
        group = (server if isinstance(server, str) else None, names.agent_name(row))
        groups[group].setdefault(RowKey.of(row), stripped(row))
    return {group: [rows[key] for key in sorted(rows)] for group, rows in sorted(groups.items(), key=str)}


def sort_rows(path: Path) -> None:
    """Put the rows of a file into the order of tasks and repeats; it is replaced at once or not at all."""
    rows = sorted(read_rows(path), key=RowKey.of)
    atomic_write_bytes(path, b"".join(dumps(row) + b"\n" for row in rows))


def _labels(groups: Sequence[Group]) -> dict[Group, str]:
    """The agent's name where it says which group is meant, else the server's."""
    agents = [agent for _, agent in groups]
    return {
        (server, agent): agent
        if agent is not None and agents.count(agent) == 1
        else server or agent or "agent"
        for server, agent in groups
    }
