"""Where a run is written, and what happens when it is there already.

runs/{task}_{modalities}_{algorithm version}/{seed}-{config hash}/
config.json  metrics.jsonl  tensorboard/  checkpoints/{step}/  film/  summary.json  report.html
"""

import json
import platform
import subprocess
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from sensorium.core import ConfigError, RunDirectoryError, parse_config
from sensorium.core.files import atomic_write_json
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.run_lock import LOCK_FILE, only_process


@runtime_checkable
class RunConfig(Protocol):
    """What a run's directory is named after."""

    @property
    def run_name(self) -> str:
        """``{task}_{modalities}_{algorithm version}``."""
        ...

    @property
    def seed(self) -> int:
        """Of the run."""
        ...

    @property
    def unnamed(self) -> frozenset[str]:
        """Settings that the hash in the name leaves out: the seed has its own place, some do not matter."""
        ...

    def digest(self, *, exclude: set[str] | None = None) -> str:
        """Hash of the settings."""
        ...

    def model_dump(self, *, mode: str = "python") -> dict[str, Any]:
        """The settings as plain values."""
        ...


class OnExisting(StrEnum):
    """What to do when the run's directory exists."""

    FAIL = "fail"
    RESUME = "resume"
    RESTART = "restart"


def run_path(config: RunConfig, runs: Path) -> Path:
    """Directory of this run below `runs`."""
    return runs / config.run_name / f"{config.seed}-{config.digest(exclude=set(config.unnamed))}"


def open_run(config: RunConfig, runs: Path, on_existing: OnExisting) -> Path:
    """Create the run's directory, or decide what to do with the one that is there.

    `resume` keeps it; `restart` moves it aside to ``...-replaced-N``, deleting nothing.

    Raises:
        RunDirectoryError: It exists and `on_existing` is `fail`, or another process trains it.
    """
    path = run_path(config, runs)
    if path.exists() and on_existing is OnExisting.FAIL:
        raise RunDirectoryError(
            f"{path} exists. Add --on-existing resume to go on with it, --on-existing restart to move it "
            f"aside and begin anew, or choose another --seed."
        )
    if path.exists():
        with only_process(path):
            pass  # it is taken for good where training begins
    if path.exists() and on_existing is OnExisting.RESTART:
        number = 1
        while (aside := path.with_name(f"{path.name}-replaced-{number}")).exists():
            number += 1
        path.rename(aside)
    path.mkdir(parents=True, exist_ok=True)
    if not (path / "config.json").exists():
        atomic_write_json(path / "config.json", {"config": config.model_dump(mode="json"), **_provenance()})
    return path


def discard_unstarted(run: Path) -> None:
    """Remove a run directory in which nothing but the config was written: its run could not be built."""
    if {path.name for path in run.iterdir()} - {LOCK_FILE} == {"config.json"}:
        for path in run.iterdir():
            path.unlink()
        run.rmdir()
        if not any(run.parent.iterdir()):
            run.parent.rmdir()


def read_config(run: Path) -> TrainConfig:
    """Read the config that a run was made with.

    Raises:
        RunDirectoryError: There is no readable config.
    """
    try:
        values = json.loads((run / "config.json").read_text())["config"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(
            f"{run} is not a run directory: its config.json is missing or unreadable ({error}). Give the "
            f"folder that `sensorium train` printed."
        ) from error
    try:
        return parse_config(TrainConfig, values)
    except ConfigError as error:
        raise RunDirectoryError(
            f"{run}/config.json does not fit this version of Sensorium: {error}"
        ) from error


def _provenance() -> dict[str, Any]:
    packages = ("sensorium", "torch", "numpy", "gymnasium", "numba", "vizdoom", "transformers")
    versions = {name: found for name in packages if (found := _version(name))}
    return {"versions": versions, "python": platform.python_version(), "git_revision": _git_revision()}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    """Revision of the source tree; None outside a checkout or without git."""
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
