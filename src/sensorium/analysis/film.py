"""A film: one recorded episode, with what was seen, heard and done at every step.

`episode.npz` holds the arrays, `episode.json` everything else. Every part is optional: a sensor that the run
does not have is simply not there.
"""

import json
import zipfile
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from sensorium.core.config import Config
from sensorium.core.errors import RunDirectoryError
from sensorium.core.files import atomic_write_bytes


class FilmNotes(Config):
    """What was read, said and done: the content of `episode.json`. Lists have one entry per step."""

    sensors: tuple[str, ...] = ()
    """Sensors that the policy perceived with."""
    instruction: str | None = None
    """What the agent was told to do."""
    notifications: tuple[str, ...] | None = None
    """Messages of the environment; empty where there was none."""
    actions: tuple[str, ...] = ()
    """The action in words, e.g. ``"turn left"``."""
    rewards: tuple[float, ...] = ()
    """Reward that followed the action."""
    values: tuple[float, ...] = ()
    """Return that the critic expected before the action."""
    timestamps_s: tuple[float, ...] = ()
    """Simulated time of the observation."""
    outcome: str | None = None
    """How the episode ended, e.g. ``"success"``."""
    speech_sample_rate_hz: int = Field(default=16000, gt=0)
    """Samples per second of the waveform."""


_DIMENSIONS = {"rgb": 4, "depth": 4, "env_sound": 4, "map": 4, "speech": 2, "speech_waveform": 1}
_PER_STEP_ARRAYS = ("rgb", "depth", "env_sound", "map")
_PER_STEP_NOTES = ("notifications", "actions", "rewards", "values", "timestamps_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """T steps of one episode; row t of every array is what was perceived before action t.

    Raises:
        RunDirectoryError: An array has the wrong number of dimensions, or parts differ in their T.
    """

    notes: FilmNotes
    rgb: NDArray[np.uint8] | None = None
    """(T, height, width, 3), 0 to 255."""
    depth: NDArray[np.float32] | None = None
    """(T, height, width, 1), in the unit of the sensor; far is large."""
    env_sound: NDArray[np.float32] | None = None
    """(T, 2, frames, mels) log-mel of the left and right ear since the step before."""
    map: NDArray[np.uint8] | None = None
    """(T, height, width, 3): the world from above, which the policy does not see."""
    speech: NDArray[np.float32] | None = None
    """(frames, mels) log-mel of the spoken instruction."""
    speech_waveform: NDArray[np.float32] | None = None
    """(samples,) of the spoken instruction, -1 to 1."""

    def __post_init__(self) -> None:
        for name, dimensions in _DIMENSIONS.items():
            array = getattr(self, name)
            if array is not None and array.ndim != dimensions:
                raise RunDirectoryError(
                    f"Film part {name!r} must have {dimensions} dimensions, found shape {array.shape}."
                )
        lengths = self._lengths()
        if len(set(lengths.values())) > 1:
            raise RunDirectoryError(f"Parts of a film must have one entry per step, found {lengths}.")

    @property
    def num_steps(self) -> int:
        """T, 0 for an empty film."""
        return next(iter(self._lengths().values()), 0)

    def save(self, directory: Path) -> None:
        """Write `episode.npz` and `episode.json` into `directory`, made if missing.

        Raises:
            OSError: The disk is full or the directory cannot be written.
        """
        arrays = {name: getattr(self, name) for name in _DIMENSIONS if getattr(self, name) is not None}
        buffer = BytesIO()
        np.savez_compressed(buffer, **arrays)
        atomic_write_bytes(directory / "episode.npz", buffer.getvalue())
        atomic_write_bytes(directory / "episode.json", self.notes.model_dump_json(indent=2).encode())

    @staticmethod
    def load(directory: Path) -> "Film | None":
        """Read a film; None when `directory` holds neither of its files.

        Raises:
            RunDirectoryError: A file is broken, or the parts do not fit each other.
        """
        arrays_path, notes_path = directory / "episode.npz", directory / "episode.json"
        if not arrays_path.exists() and not notes_path.exists():
            return None
        try:
            notes = FilmNotes.model_validate(
                json.loads(notes_path.read_bytes()) if notes_path.exists() else {}
            )
            arrays = _read_arrays(arrays_path) if arrays_path.exists() else {}
        except (ValidationError, ValueError, OSError, zipfile.BadZipFile) as error:
            raise RunDirectoryError(
                f"The film in {directory} cannot be read: {error}. Remove the directory, or record it anew."
            ) from error
        return Film(notes=notes, **arrays)

    def _lengths(self) -> dict[str, int]:
        """T of every part that has one entry per step and is there."""
        arrays = {name: getattr(self, name) for name in _PER_STEP_ARRAYS}
        notes = {name: getattr(self.notes, name) or None for name in _PER_STEP_NOTES}
        return {name: len(part) for name, part in {**arrays, **notes}.items() if part is not None}


def _read_arrays(path: Path) -> dict[str, Any]:
    known = {field.name for field in fields(Film)}
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files if name in known & _DIMENSIONS.keys()}
