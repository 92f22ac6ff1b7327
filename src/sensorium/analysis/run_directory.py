"""Reads a run directory: what was configured, measured and found, with types.

runs/{task}_{modalities}_{algorithm version}/{seed}-{config hash}/
    config.json        every setting, resolved
    metrics.jsonl      one line per update
    tensorboard/       the same, for TensorBoard
    checkpoints/{step}/
    film/              one recorded episode (episode.npz, episode.json)
    summary.json       what the run achieved, and what each sense is worth
    curriculum.json    when senses joined, if the run had a curriculum; see `curriculum`
    evals/             one file per evaluation suite that was run; see `evaluations`
    episodes/          of language models' runs: some episodes of every update; see `language_episodes`
    report.html        the page made from all of this
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from sensorium.analysis.film import Film
from sensorium.core.config import Config
from sensorium.core.errors import RunDirectoryError
from sensorium.core.files import atomic_write_json
from sensorium.metrics.sinks import read_jsonl

Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number from 0 to 1."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
SummaryT = TypeVar("SummaryT", bound=Config)


class SubsetResult(Config):
    """What the policy achieved with some of its senses."""

    success_rate: Share
    """Share of the episodes that solved the task."""
    ci95: tuple[Share, Share]
    """95 % Wilson interval of `success_rate`."""
    episodes: int = Field(ge=0)
    """Number of episodes; those that an engine failure ended are not among them."""
    mean_return: Finite
    """Mean undiscounted return."""


class Summary(Config):
    """What a run achieved: the content of `summary.json`."""

    task: str
    """Name of the task, e.g. ``"arena/find"``."""
    modalities: tuple[str, ...]
    """Kinds of sense the policy was trained with, e.g. ``("image", "audio", "text")``."""
    sensors: tuple[str, ...]
    """Sensors the policy was trained with, e.g. ``("rgb", "speech", "instruction")``."""
    algorithm: str
    """Name of the algorithm, e.g. ``"ppo"``."""
    seed: int
    """Seed of the run."""
    env_steps: int = Field(ge=0)
    """Environment steps trained on."""
    wall_s: Finite = Field(ge=0)
    """Seconds of training, of all sessions together when the run was resumed."""
    steps_per_s: Finite = Field(ge=0)
    """`env_steps` / `wall_s`, learning included."""
    success_rate: Share
    """With all senses, on seeds that were not trained on."""
    success_ci95: tuple[Share, Share]
    """95 % Wilson interval of `success_rate`."""
    episodes: int = Field(ge=0)
    """Evaluation episodes behind `success_rate`."""
    mean_return: Finite
    """Mean undiscounted return of the same episodes."""
    chance_success: Share | None = None
    """Success of a policy that cannot know the goal; None when it is not known."""
    missing_modality: dict[str, SubsetResult] = Field(default_factory=dict)
    """Subset of the senses joined by ``+`` (``"rgb+speech"``) -> result when only these are present."""
    onnx_max_abs_diff: Finite | None = None
    """Largest difference between the exported and the trained policy's outputs; None when not exported."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One saved state of a run."""

    step: int
    """Environment steps taken when it was saved."""
    path: Path
    """Its directory."""


class RunDirectory:
    """Typed access to one run; nothing is read before it is asked for."""

    def __init__(self, path: Path) -> None:
        """Point at a run.

        Raises:
            RunDirectoryError: `path` is not a directory.
        """
        if not path.is_dir():
            raise RunDirectoryError(
                f"There is no run directory {path}. Make one with: sensorium train PRESET"
            )
        self.path = path

    @property
    def report_path(self) -> Path:
        """Where the report is, or will be."""
        return self.path / "report.html"

    def config(self) -> dict[str, Any]:
        """Every setting of the run, as plain values.

        Raises:
            RunDirectoryError: `config.json` is missing or no JSON object.
        """
        return self._json("config.json", made_by="sensorium train PRESET")

    def metrics(self) -> list[dict[str, Any]]:
        """One dict per update with `step`, `wall_s` and every metric; None stands for NaN.

        Raises:
            RunDirectoryError: `metrics.jsonl` is missing, or a line other than the last is broken.
        """
        return read_jsonl(self._file("metrics.jsonl", made_by="sensorium train PRESET"))

    def summary(self) -> Summary:
        """What the run achieved.

        Raises:
            RunDirectoryError: `summary.json` is missing, or a field is missing, unknown or out of range.
        """
        return self.read_summary(Summary, made_by=f"sensorium eval {self.path} --suite missing-modality")

    def read_summary(self, kind: type[SummaryT], *, made_by: str) -> SummaryT:
        """`summary.json` as one kind of run writes it.

        Args:
            kind: Class of its content.
            made_by: Command that makes it, for the error.

        Raises:
            RunDirectoryError: It is missing, or a field is missing, unknown or out of range.
        """
        values = self._json("summary.json", made_by=made_by)
        try:
            return kind.model_validate(values)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise RunDirectoryError(
                f"{self.path / 'summary.json'} does not fit: {problems}. Make it anew with: {made_by}"
            ) from error

    def write_summary(self, summary: Summary) -> Path:
        """Write `summary.json`, completely or not at all, and return its path.

        Raises:
            OSError: The disk is full; the old file is as it was.
        """
        path = self.path / "summary.json"
        atomic_write_json(path, summary.model_dump(mode="json"))
        return path

    def film(self) -> Film | None:
        """The recorded episode, or None when none was recorded.

        Raises:
            RunDirectoryError: The film's files are broken or do not fit each other.
        """
        directory = self.path / "film"
        return Film.load(directory) if directory.is_dir() else None

    def checkpoints(self) -> list[Checkpoint]:
        """Complete checkpoints, oldest first; unfinished ones have no plain number as name."""
        directory = self.path / "checkpoints"
        found = directory.iterdir() if directory.is_dir() else ()
        complete = [Checkpoint(int(p.name), p) for p in found if p.is_dir() and p.name.isdecimal()]
        return sorted(complete, key=lambda checkpoint: checkpoint.step)

    def latest_checkpoint(self) -> Checkpoint:
        """The checkpoint with the most steps.

        Raises:
            RunDirectoryError: There is none.
        """
        checkpoints = self.checkpoints()
        if not checkpoints:
            raise RunDirectoryError(
                f"{self.path} has no checkpoint in checkpoints/. Make one with: sensorium train PRESET"
            )
        return checkpoints[-1]

    def _file(self, name: str, *, made_by: str) -> Path:
        path = self.path / name
        if not path.is_file():
            raise RunDirectoryError(f"{self.path} has no {name}. Make it with: {made_by}")
        return path

    def _json(self, name: str, *, made_by: str) -> dict[str, Any]:
        path = self._file(name, made_by=made_by)
        try:
            values = json.loads(path.read_bytes())
        except ValueError as error:
            raise RunDirectoryError(f"{path} is not JSON ({error}). Make it anew with: {made_by}") from error
        if not isinstance(values, dict):
            raise RunDirectoryError(f"{path} holds {type(values).__name__}, expected a JSON object.")
        return values
