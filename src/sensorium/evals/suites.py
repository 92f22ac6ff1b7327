"""The evaluation suites by name, and how one is run: worlds, results, JSON, report."""

import shlex
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sensorium.analysis import write_report
from sensorium.analysis.evaluations import (
    EVALUATIONS,
    Evaluation,
    MissingModalityEvaluation,
    write_evaluation,
)
from sensorium.core import ConfigError, unknown_name
from sensorium.evals.finish import write_results
from sensorium.evals.generalisation import generalisation
from sensorium.evals.loading import LoadedRun, loaded_run, shifted_worlds
from sensorium.evals.missing_modality import missing_modality
from sensorium.evals.probe import Probe, SuiteRequest
from sensorium.evals.sensor_failure import sensor_failure
from sensorium.trainers.run_directory import read_config

SUITES: dict[str, Callable[[Probe], Any]] = {
    "missing-modality": missing_modality,
    "sensor-failure": sensor_failure,
    "generalisation": generalisation,
}
"""Name -> the function that plays it; `sensorium.analysis.evaluations.EVALUATIONS` says what it returns."""

COMPARES_WORLDS = frozenset({"generalisation"})
"""Suites that play in the world of training and in a changed one; the others play in the changed one only."""

_FLAGS = {
    "episodes": "--episodes",
    "seed": "--seed",
    "kinds": "--kinds",
    "recovery_steps": "--recovery-steps",
    "combinations": "--combinations",
    "trained": "--trained-combinations",
    "sampled": "--sampled",
}
"""Field of a `SuiteRequest` -> its flag."""

_READ_BY: dict[str, tuple[str, ...]] = {
    "kinds": ("missing-modality", "sensor-failure"),
    "recovery_steps": ("sensor-failure",),
    "combinations": ("generalisation",),
    "trained": ("generalisation",),
    "sampled": ("missing-modality", "generalisation"),  # sensor-failure compares episodes step by step
}
"""Field of a `SuiteRequest` -> the suites that read it, where it is not all of them."""


def run_suite(
    run: Path,
    suite: str,
    request: SuiteRequest | None = None,
    *,
    on_total: Callable[[int], None] | None = None,
    on_episode: Callable[[str], None] | None = None,
) -> Evaluation:
    """Ask a run's newest policy a question; write ``RUN/evals/{suite}.json`` and the report.

    `missing-modality` with default settings writes `summary.json` anew, too. Where there is no summary
    yet, the other suites write no report.

    Args:
        run: The run's directory.
        suite: A name in `SUITES`.
        request: What differs from the defaults.
        on_total: Called once with the number of episodes to come.
        on_episode: Called with the condition's name when an episode ends.

    Raises:
        ConfigError: The suite, a sensor or a setting does not exist, or a number is out of range.
        RunDirectoryError: `run` is no run, or has no checkpoint.
        CheckpointError: The checkpoint is corrupt or of another architecture.
    """
    if suite not in SUITES:
        raise unknown_name("suite", suite, SUITES)
    request = request or SuiteRequest()
    _check(request, suite)
    wanted = request.episodes or read_config(run).evaluation.subset_episodes
    start = time.perf_counter()
    with ExitStack() as stack:
        default = suite == "missing-modality" and request == SuiteRequest()
        loaded = stack.enter_context(loaded_run(run, None if default else wanted))
        changed = stack.enter_context(shifted_worlds(loaded, request.world)) if request.world else None
        compares = suite in COMPARES_WORLDS
        probe = Probe(
            run=loaded,
            request=request,
            env=loaded.env if changed is None or compares else changed,
            shifted=changed if compares else None,
            on_total=on_total,
            on_episode=on_episode,
        )
        results = SUITES[suite](probe)
        evaluation = EVALUATIONS[suite].model_validate(
            _header(loaded, probe, suite, time.perf_counter() - start) | {"results": results}
        )
        write_evaluation(run, evaluation)
        if isinstance(evaluation, MissingModalityEvaluation) and default:
            write_results(loaded, evaluation.results["absent"].subsets)
        elif (run / "summary.json").exists():
            write_report(run)
    return evaluation


def _check(request: SuiteRequest, suite: str) -> None:
    for field, readers in _READ_BY.items():
        if getattr(request, field) not in (None, False) and suite not in readers:
            raise ConfigError(
                f"{_FLAGS[field]} means nothing to the suite {suite}; it belongs to {' and '.join(readers)}. "
                f"Add --suite {readers[0]}, or leave it out."
            )
    for name, value, least in (
        ("episodes", request.episodes, 1),
        ("seed", request.seed, 0),
        ("recovery-steps", request.recovery_steps, 1),
    ):
        if value is not None and value < least:
            raise ConfigError(f"--{name} must be at least {least}, found {value}.")


def _header(run: LoadedRun, probe: Probe, suite: str, wall_s: float) -> dict[str, Any]:
    worlds = probe.env.num_envs
    return {
        "command": command(run.path, suite, probe.request),
        "seed": probe.seed,
        "episodes": -(-probe.episodes // worlds) * worlds,
        "env_steps": run.env_steps,
        "config_digest": run.config.digest(exclude=set(run.config.unnamed)),
        "world": probe.request.world,
        "wall_s": wall_s,
    }


def command(run: Path, suite: str, request: SuiteRequest) -> str:
    """The command line that does the same, quoted for a shell."""
    words = ["sensorium", "eval", str(run), "--suite", suite]
    for field, flag in _FLAGS.items():
        value = getattr(request, field)
        if value is None or value is False:
            continue
        words += [flag] if value is True else [flag, ",".join(value) if field == "kinds" else str(value)]
    for name, value in _flat(request.world, "env"):
        words += [f"--{name}", _as_yaml(value)]
    return shlex.join(words)


def _flat(values: dict[str, Any], prefix: str) -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for name, value in values.items():
        path = f"{prefix}.{name}"
        flat += _flat(value, path) if isinstance(value, dict) and value else [(path, value)]
    return flat


def _as_yaml(value: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")
