"""Our metrics are NeMo Gym's numbers, on rows it was asked about (`capture_nemo`) and on those it ships."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import nemo_peer
import pytest
from capture_nemo import ask
from compat_servers import golden

from sensorium.rollouts.aggregate import aggregate_metrics, by_task
from sensorium.rollouts.pass_at_k import pass_majority_metrics

CASES: dict[str, Any] = golden("metrics.json")


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where two results differ; numbers may by rounding."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for key in sorted({*ours, *theirs}, key=str):
            if key not in ours or key not in theirs:
                yield f"{path}/{key} only in {'theirs' if key in theirs else 'ours'}"
            else:
                yield from differences(ours[key], theirs[key], f"{path}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}/{number}")
    elif isinstance(theirs, int | float) and isinstance(ours, int | float):
        if not math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{path}: {ours!r} instead of {theirs!r}"
    elif ours != theirs:
        yield f"{path}: {ours!r} instead of {theirs!r}"


@pytest.mark.parametrize("name", CASES)
def test_aggregate_metrics_are_those_of_nemo_gym(name: str) -> None:
    case = CASES[name]
    assert list(differences(aggregate_metrics(case["rows"]), case["expected"]["aggregate"])) == []


@pytest.mark.parametrize("name", CASES)
def test_pass_and_majority_metrics_are_those_of_nemo_gym(name: str) -> None:
    case = CASES[name]
    expected, tasks = case["expected"], by_task(case["rows"])
    found = pass_majority_metrics(tasks, answer_key=case.get("answer_key"))
    assert list(differences(found, expected["pass_majority"])) == []


@pytest.mark.slow
@pytest.mark.nemo_gym
def test_metrics_agree_on_the_rollouts_that_nemo_gym_ships() -> None:
    cases: dict[str, dict[str, Any]] = {}
    for path in sorted(nemo_peer.installed().glob("resources_servers/*/data/example_rollouts.jsonl")):
        text = path.read_text()
        if not text.startswith("{"):  # a pointer to a large file that is elsewhere
            continue
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
        kept = [
            {key: value for key, value in row.items() if not isinstance(value, dict | list)}
            | {"_ng_task_index": number // 2, "_ng_rollout_index": number % 2}
            for number, row in enumerate(rows)
        ]
        if kept and all(isinstance(row.get("reward"), int | float) for row in kept):
            cases[path.parent.parent.name] = {"rows": kept}
    assert len(cases) > 50
    answers = {name: answer for name, answer in ask("metrics", cases).items() if answer is not None}
    assert len(answers) > 0.9 * len(cases)
    for name, theirs in answers.items():
        ours = aggregate_metrics(cases[name]["rows"])
        assert list(differences(ours, theirs["aggregate"])) == [], name
        passes = pass_majority_metrics(by_task(cases[name]["rows"]))
        assert list(differences(passes, theirs["pass_majority"])) == [], name
