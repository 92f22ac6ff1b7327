"""pass@k, majority@k and their spread, with the names and numbers of NeMo Gym; shares are percentages."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sensorium.rollouts import row_names as names
from sensorium.rollouts.columns import mean, sample_std

Scores = Mapping[str, float]
ScoreFunction = Callable[[Mapping[str, Any]], Mapping[str, float]]


def pass_at_k(correct: int, count: int, k: int) -> float:
    """Probability that one of k rollouts of a task solves it: 1 - C(n - c, k) / C(n, k).

    Args:
        correct: c, rollouts that solved it.
        count: n, rollouts of the task.
        k: At most n.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1.
    """
    if not 0 <= correct <= count or not 1 <= k <= count:
        raise ValueError(
            f"Expected 0 <= correct <= count and 1 <= k <= count, found {correct}, {count}, {k}."
        )
    return 1.0 - math.comb(count - correct, k) / math.comb(count, k)


def accuracy(row: Mapping[str, Any]) -> dict[str, float]:
    """The reward as the one score of a row; no score for a row without."""
    reward = row.get(names.REWARD)
    return {"accuracy": reward} if isinstance(reward, int | float) else {}


def pass_majority_metrics(
    tasks: Sequence[Sequence[Mapping[str, Any]]],
    score: ScoreFunction = accuracy,
    *,
    answer_key: str | None = None,
) -> dict[str, Any]:
    """Metrics over repeats.

    - ``pass@k/<score>``: `pass_at_k` where all scores of a task are 0 or 1, else the best of the first k;
      tasks with fewer than k rollouts are left out.
    - ``pass@1[avg-of-k]/<score>``: mean of the first k, with ``/std_dev_across_runs`` and
      ``/std_err_across_runs`` (over the means of the first, the second, ... rollouts of all tasks) and
      ``/avg_sample_std_dev`` (mean deviation within a task).
    - ``majority@k/<score>``: score of the most frequent answer among the first k, ties averaged.
      Without any answer it is 0.

    Args:
        tasks: The rows of each task, in the order of their rollouts.
        score: A row -> its scores; by default the reward, called accuracy.
        answer_key: Field with the answer; with it there are ``majority@k`` and the score ``no_answer``.
    """
    if not tasks:
        return {}
    scored = [[_scores(row, score, answer_key) for row in rows] for rows in tasks]
    score_names = sorted({name for rows in scored for one in rows for name in one})
    max_k = max(len(rows) for rows in tasks)
    metrics: dict[str, Any] = {}
    for k in range(1, max_k + 1):
        for name in score_names:
            _at_k(metrics, scored, name, k)
            if answer_key is not None:
                answers = [[row.get(answer_key) for row in rows] for rows in tasks]
                values = [_majority(a, s, name, k) for a, s in zip(answers, scored, strict=True)]
                metrics[f"majority@{k}/{name}"] = 100.0 * sum(values) / len(values)
    runs = {name: _runs(scored, name, max_k) for name in score_names}
    metrics["per_sample_aggregate"] = {name: values for name, values in runs.items() if values}
    for k in range(2, max_k + 1):
        for name in score_names:
            _spread(metrics, scored, runs[name][:k], name, k)
    return metrics


def _scores(row: Mapping[str, Any], score: ScoreFunction, answer_key: str | None) -> Scores:
    made = {name: int(value) if isinstance(value, bool) else value for name, value in score(row).items()}
    if answer_key is not None:
        made["no_answer"] = 1 if row.get(answer_key) is None else 0
    return made


def _values(rows: Sequence[Scores], name: str) -> list[float]:
    return [row[name] for row in rows if name in row]


def _at_k(metrics: dict[str, Any], scored: Sequence[Sequence[Scores]], name: str, k: int) -> None:
    passed, averages = [], []
    for rows in scored:
        values = _values(rows, name)
        if len(values) >= k:
            binary = all(value in (0, 1) for value in values)
            correct = sum(1 for value in values if value)
            passed.append(pass_at_k(correct, len(values), k) if binary else max(values[:k]))
        if first := _values(rows[:k], name):
            averages.append(sum(first) / len(first))
    if passed:
        metrics[f"pass@{k}/{name}"] = 100.0 * sum(passed) / len(passed)
    if averages:
        metrics[f"pass@1[avg-of-{k}]/{name}"] = 100.0 * sum(averages) / len(averages)


def _majority(answers: Sequence[Any], scored: Sequence[Scores], name: str, k: int) -> float:
    """The score of the most frequent answer."""
    pairs = [
        (_hashable(answer), row[name])
        for answer, row in zip(answers[:k], scored[:k], strict=True)
        if answer is not None and name in row
    ]
    if not pairs:
        return 0.0
    counter = Counter(pairs)
    most = max(counter.values())
    tied = [value for (_, value), count in counter.items() if count == most]
    return sum(tied) / len(tied)


def _hashable(answer: Any) -> Any:
    return answer if isinstance(answer, str | int | float | bool) else repr(answer)


def _runs(scored: Sequence[Sequence[Scores]], name: str, max_k: int) -> list[float]:
    """Mean over the tasks of the first rollouts, of the second ones, ..."""
    made = []
    for run in range(max_k):
        values = [rows[run][name] for rows in scored if run < len(rows) and name in rows[run]]
        if values:
            made.append(100.0 * sum(values) / len(values))
    return made


def _spread(
    metrics: dict[str, Any], scored: Sequence[Sequence[Scores]], runs: Sequence[float], name: str, k: int
) -> None:
    base = f"pass@1[avg-of-{k}]/{name}"
    if len(runs) >= 2:
        metrics[f"{base}/std_dev_across_runs"] = sample_std(runs)
        metrics[f"{base}/std_err_across_runs"] = sample_std(runs) / math.sqrt(len(runs))
    within = [sample_std(values) for rows in scored if len(values := _values(rows[:k], name)) >= 2]
    if within:
        metrics[f"{base}/avg_sample_std_dev"] = mean(within)
