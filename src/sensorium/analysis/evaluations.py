"""What the evaluation suites find, with types: one JSON file per suite in `evals/` of a run."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from sensorium.analysis.run_directory import Finite, Share, SubsetResult
from sensorium.core.config import Config
from sensorium.core.errors import RunDirectoryError
from sensorium.core.files import atomic_write_json


class Evaluation(Config):
    """What every suite writes beside its results."""

    suite: str
    """Name of the suite."""
    command: str
    """Command that does the same again."""
    seed: int
    """Decides episodes and faults."""
    episodes: int = Field(ge=1)
    """Episodes per condition, rounded up so that every world plays equally many."""
    env_steps: int = Field(ge=0)
    """Training steps of the policy that was judged."""
    config_digest: str
    """Hash of the run's configuration, as in the name of its directory."""
    world: dict[str, Any] = Field(default_factory=dict)
    """Settings of the environment that were changed for this evaluation."""
    wall_s: Finite = Field(ge=0)
    """Seconds that it took."""


class KindResults(Config):
    """Success under one kind of sensor fault."""

    subsets: dict[str, SubsetResult]
    """Senses that are intact, joined by ``+`` -> result when all others are broken."""
    curve: tuple[Share, ...]
    """Mean success over the subsets with 0, 1, 2, ... broken senses."""
    relative_robustness: Share | None
    """Area under `curve`, its horizontal axis scaled to 0 .. 1; null when there is one sense."""
    worst_sense: str | None
    """The single sense whose failure costs most; null when there is one sense."""
    worst_drop: Finite | None
    """Success without `worst_sense` minus success with all."""


class MissingModalityEvaluation(Evaluation):
    """missing-modality: success with every subset of the senses, the others absent, frozen or noisy."""

    suite: Literal["missing-modality"] = "missing-modality"
    results: dict[str, KindResults]
    """Kind of fault -> what remains."""


class GateShift(Config):
    """Share of one sensor in the fused vector, averaged over the episodes that a failure struck."""

    before: Share
    """Over the steps before the failure."""
    during: Share
    """Over the steps of the failure."""
    undisturbed: Share
    """Over the same steps of the same episodes, played without the failure."""


class FailureResult(Config):
    """What one failure in mid-episode costs, and which sense carries on."""

    lost: str
    """Sensor, or sense when several sensors belong to it."""
    sensors: tuple[str, ...]
    """The sensors that fail together."""
    kind: str
    """`absent`, `frozen` or `noise`."""
    duration: int | None
    """Steps after which it works again; null: it does not."""
    struck: int = Field(ge=0)
    """Episodes that lasted until the failure; all figures below are of these."""
    success_rate: Share | None
    """With the failure; null when no episode was struck."""
    ci95: tuple[Share, Share] | None
    """95 % Wilson interval of `success_rate`."""
    clean_success_rate: Share | None
    """Of the same episodes without the failure."""
    kept: Finite | None
    """`success_rate` / `clean_success_rate`; null when no clean episode succeeded."""
    kept_ci95: tuple[Finite, Finite] | None
    """95 % interval of `kept` over pairs of episodes."""
    gates: dict[str, GateShift]
    """Sensor -> its shares; empty when no episode was struck before its end and after its beginning."""
    took_over: str | None
    """The intact sensor whose share during the failure is farthest above that of the undisturbed episodes;
    null when none is above, or several are alike."""


class SensorFailureResults(Config):
    """All failures, against the same episodes without one."""

    clean: SubsetResult
    """Without any failure."""
    mean_length: Finite
    """Mean steps of a clean episode."""
    onset: tuple[int, int]
    """First and last possible step of the failure; each episode draws one."""
    failures: tuple[FailureResult, ...]


class SensorFailureEvaluation(Evaluation):
    """sensor-failure: success kept when a sense is lost in mid-episode, and the sense that takes over."""

    suite: Literal["sensor-failure"] = "sensor-failure"
    results: SensorFailureResults


class CombinationResult(Config):
    """Success with one combination of sensors."""

    sensors: tuple[str, ...]
    """The sensors that are present."""
    held_out: bool
    """Whether training is said not to have had this combination."""
    worlds: dict[str, SubsetResult]
    """`trained` and, where settings were changed, `shifted` -> result."""


class RateSummary(Config):
    """Interquartile mean of success over combinations, with its stratified interval."""

    interquartile_mean: Share
    ci95: tuple[Share, Share]
    combinations: int = Field(ge=1)
    """Number of combinations; with fewer than four, each of them counts alike or in part."""


class GeneralisationResults(Config):
    """Every combination, and what they come to."""

    combinations: dict[str, CombinationResult]
    """Sensors joined by ``+`` -> result."""
    trained: dict[str, RateSummary]
    """World -> over the combinations of training; empty when none was named."""
    held_out: dict[str, RateSummary]
    """World -> over the held-out combinations."""


class GeneralisationEvaluation(Evaluation):
    """generalisation: success with combinations of sensors, and in worlds, that training did not have."""

    suite: Literal["generalisation"] = "generalisation"
    results: GeneralisationResults


EVALUATIONS: dict[str, type[Evaluation]] = {
    "missing-modality": MissingModalityEvaluation,
    "sensor-failure": SensorFailureEvaluation,
    "generalisation": GeneralisationEvaluation,
}
"""Suite -> what it writes; the first line of the docstring says what it asks."""


def evaluation_path(run: Path, suite: str) -> Path:
    """Where a suite's results are, or will be: ``RUN/evals/{suite}.json``."""
    return run / "evals" / f"{suite}.json"


def write_evaluation(run: Path, evaluation: Evaluation) -> Path:
    """Write a suite's results, completely or not at all, and return their path.

    Raises:
        OSError: The disk is full; an older file is as it was.
    """
    path = evaluation_path(run, evaluation.suite)
    atomic_write_json(path, evaluation.model_dump(mode="json"))
    return path


def read_evaluations(run: Path) -> list[Evaluation]:
    """Results of every suite that was run, in the order of `EVALUATIONS`.

    Raises:
        RunDirectoryError: A file is broken; the message names it and the command that makes it anew.
    """
    paths = {suite: evaluation_path(run, suite) for suite in EVALUATIONS}
    return [_read(run, suite, path) for suite, path in paths.items() if path.is_file()]


def _read(run: Path, suite: str, path: Path) -> Evaluation:
    again = f"Make it anew with: sensorium eval {run} --suite {suite}"
    try:
        return EVALUATIONS[suite].model_validate(json.loads(path.read_bytes()))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        raise RunDirectoryError(f"{path} does not fit: {problems}. {again}") from error
    except ValueError as error:
        raise RunDirectoryError(f"{path} is not JSON ({error}). {again}") from error
