"""What a file of rollouts says: rewards and successes by task, tokens, times, failures by kind."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sensorium.core import ConfigError, Interval, wilson_interval
from sensorium.rollouts import row_names as names
from sensorium.rollouts.columns import mean, quantile, sample_std
from sensorium.rollouts.failures import failure_of
from sensorium.rollouts.finish import repeats_metrics
from sensorium.rollouts.journal import read_rows
from sensorium.rollouts.row_names import RowKey
from sensorium.rollouts.run_record import RunFiles
from sensorium.rollouts.student_t import t_interval
from sensorium.rollouts.task_rows import instruction_of


class Estimate(NamedTuple):
    """A mean with its 95 % confidence interval."""

    mean: float
    low: float
    high: float
    num_rollouts: int


class Rollout(NamedTuple):
    """What a profile keeps of one row."""

    key: RowKey
    reward: float | None
    success: float | None
    masked: bool
    input_tokens: int | None
    output_tokens: int | None
    num_steps: int | None
    wall_s: float | None


class TaskProfile(NamedTuple):
    """All rollouts of one task."""

    task: int
    name: str
    num_rollouts: int
    missing: int
    mean_reward: float | None
    best_reward: float | None
    success: float | None
    """Share of the rollouts."""
    tokens: float | None
    """Mean of all tokens, read and written."""
    num_steps: float | None
    wall_s: float | None


class FailureProfile(NamedTuple):
    """Failed attempts of one kind."""

    kind: str
    stage: str
    attempts: int
    lost: int
    """Rollouts without a result whose last attempt failed so."""
    example: str


class Profile(NamedTuple):
    """What a run says."""

    num_rollouts: int
    expected: int
    """Rollouts that there should be."""
    masked: int
    reward: Estimate | None
    success: Estimate | None
    pass_at_k: Mapping[str, float]
    tokens: Mapping[str, float]
    """``input``, ``output`` of one rollout: mean; ``total``: of all."""
    wall_s: Mapping[str, float]
    """``mean``, ``p50``, ``p90``, ``max`` seconds of one rollout."""
    tasks: tuple[TaskProfile, ...]
    failures: tuple[FailureProfile, ...]


def profile_run(output: Path) -> Profile:
    """Profile a file of rollouts, ours or one of NeMo Gym's collector.

    Raises:
        ConfigError: The file does not exist.
        RunDirectoryError: It is damaged.
    """
    if not output.is_file():
        raise ConfigError(f"There is no file {output}.")
    files = RunFiles(output)
    found: dict[RowKey, Rollout] = {}
    labels: dict[int, str] = {}
    for row in read_rows(output):
        one = _rollout(row)
        found.setdefault(one.key, one)
        labels.setdefault(one.key.task, _label(row))
    expected: Counter[int] = Counter()
    if files.materialised.is_file():
        for row in read_rows(files.materialised):
            key = RowKey.of(row)
            expected[key.task] += 1
            labels.setdefault(key.task, _label(row))
    by_task: dict[int, list[Rollout]] = defaultdict(list, {task: [] for task in expected})
    for key in sorted(found):
        by_task[key.task].append(found[key])
    tasks = tuple(_task(task, labels[task], by_task[task], expected[task]) for task in sorted(by_task))
    measured = [one for rollouts in by_task.values() for one in rollouts if not one.masked]
    rewards = [one._asdict() | {names.TASK_INDEX: one.key.task} for one in measured]
    return Profile(
        num_rollouts=len(found),
        expected=sum(task.num_rollouts + task.missing for task in tasks),
        masked=len(found) - len(measured),
        reward=_estimate([(one.key.task, one.reward) for one in measured], share=False),
        success=_estimate([(one.key.task, one.success) for one in measured], share=True),
        pass_at_k=repeats_metrics(sorted(rewards, key=lambda row: row["key"])),
        tokens=_tokens(list(found.values())),
        wall_s=_times(list(found.values())),
        tasks=tasks,
        failures=_failures(files.failures, set(found)),
    )


def _rollout(row: Mapping[str, Any]) -> Rollout:
    ours, usage = names.section(row, names.OURS), names.section(names.section(row, names.RESPONSE), "usage")
    reward = _number(row.get(names.REWARD))
    success = _number(row.get("success"))
    if success is None and reward is not None:
        success = float(reward >= 1.0)
    latency_ms = _number(names.section(row, "ng_perf").get("total_latency_ms"))
    read, written = _number(usage.get("input_tokens")), _number(usage.get("output_tokens"))
    steps, wall_s = _number(ours.get("num_steps")), _number(ours.get("wall_s"))
    return Rollout(
        key=RowKey.of(row),
        reward=reward,
        success=success,
        masked=bool(row.get(names.MASK)),
        input_tokens=None if read is None else int(read),
        output_tokens=None if written is None else int(written),
        num_steps=None if steps is None else int(steps),
        wall_s=latency_ms / 1000 if wall_s is None and latency_ms is not None else wall_s,
    )


def _label(row: Mapping[str, Any]) -> str:
    """What people know a task by."""
    task, identity = names.section(row, names.OURS).get("task"), row.get(names.MATERIALISED_TASK)
    if isinstance(task, Mapping):
        task = task.get("id")
    if isinstance(identity, Mapping):
        identity = identity.get("task_id")
    for name in (task, identity):
        if isinstance(name, str):
            return name
    return " ".join(instruction_of(row).split())[:60]


def _task(task: int, name: str, rollouts: Sequence[Rollout], expected: int) -> TaskProfile:
    measured = [one for one in rollouts if not one.masked]
    rewards = [one.reward for one in measured if one.reward is not None]
    successes = [one.success for one in measured if one.success is not None]
    tokens = [
        float((one.input_tokens or 0) + (one.output_tokens or 0))
        for one in rollouts
        if one.input_tokens is not None or one.output_tokens is not None
    ]
    return TaskProfile(
        task=task,
        name=name,
        num_rollouts=len(rollouts),
        missing=max(0, expected - len(rollouts)),
        mean_reward=_mean(rewards),
        best_reward=max(rewards, default=None),
        success=_mean(successes),
        tokens=_mean(tokens),
        num_steps=_mean([float(one.num_steps) for one in rollouts if one.num_steps is not None]),
        wall_s=_mean([one.wall_s for one in rollouts if one.wall_s is not None]),
    )


def _estimate(values: Sequence[tuple[int, float | None]], *, share: bool) -> Estimate | None:
    """The mean of all rollouts; its interval is one over tasks, as rollouts of one task are not independent.

    Args:
        values: Task and value of each rollout.
        share: The values are shares: the interval stays within [0, 1], and where every task has one rollout
            that is 0 or 1 it is Wilson's.
    """
    by_task: dict[int, list[float]] = defaultdict(list)
    for task, value in values:
        if value is not None:
            by_task[task].append(value)
    if not by_task:
        return None
    flat = [value for one in by_task.values() for value in one]
    centre = mean(flat)
    means = [mean(one) for one in by_task.values()]
    if share and len(flat) == len(means) and all(value in (0.0, 1.0) for value in flat):
        interval = wilson_interval(round(sum(flat)), len(flat))
    elif len(means) < 2:
        interval = Interval(0.0, 1.0) if share else Interval(-math.inf, math.inf)
    else:
        low, high = t_interval(mean(means), sample_std(means) / math.sqrt(len(means)), len(means))
        interval = Interval(max(0.0, low), min(1.0, high)) if share else Interval(low, high)
    return Estimate(centre, interval.low, interval.high, len(flat))


def _tokens(rollouts: Sequence[Rollout]) -> dict[str, float]:
    made: dict[str, float] = {}
    read = [float(one.input_tokens) for one in rollouts if one.input_tokens is not None]
    written = [float(one.output_tokens) for one in rollouts if one.output_tokens is not None]
    if read:
        made["input"] = mean(read)
    if written:
        made["output"] = mean(written)
    if read or written:
        made["total"] = sum(read) + sum(written)
    return made


def _times(rollouts: Sequence[Rollout]) -> dict[str, float]:
    times = [one.wall_s for one in rollouts if one.wall_s is not None]
    if not times:
        return {}
    return {
        "mean": mean(times),
        "p50": quantile(times, 0.5),
        "p90": quantile(times, 0.9),
        "max": max(times),
    }


def _failures(path: Path, done: set[RowKey]) -> tuple[FailureProfile, ...]:
    if not path.is_file():
        return ()
    attempts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    last: dict[RowKey, tuple[str, str]] = {}
    for row in read_rows(path):
        failure = failure_of(row)
        if failure is None:
            continue
        cause = (failure.kind, failure.stage)
        attempts[cause] += 1
        examples.setdefault(cause, failure.reason[:300])
        last[RowKey.of(row)] = cause
    lost = Counter(cause for key, cause in last.items() if key not in done)
    return tuple(
        FailureProfile(*cause, attempts=count, lost=lost[cause], example=examples[cause])
        for cause, count in attempts.most_common()
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _mean(values: Sequence[float]) -> float | None:
    return mean(values) if values else None
