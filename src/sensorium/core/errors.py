"""Every error a user can meet, named after the boundary it crossed.

    SensoriumError
    ├── ConfigError (ValueError)      a preset, task, sensor or key that does not exist or does not fit
    ├── MissingDependencyError        an optional package or system library is not installed
    ├── EnvError                      an environment or its engine failed
    ├── ObservationError              a raw state cannot be shown (nothing readable, a budget too small)
    ├── FeatureError                  an extractor (speech, text encoder) failed
    ├── ModelError                    a language model's endpoint failed or answered nonsense
    ├── PolicyError                   a policy does not fit the observation or action space
    ├── TrainingError                 a training loop cannot go on
    ├── RunDirectoryError             a run directory exists, or is incomplete
    └── CheckpointError               a checkpoint is corrupt or of another architecture

To add one: subclass the boundary it crosses; keep it picklable (workers send errors between
processes), so pass everything through `args`. A message says what was found, what was expected and
what to do.
"""

import contextlib
import difflib
import importlib
from collections.abc import Iterable, Iterator
from types import ModuleType


class SensoriumError(Exception):
    """Base of every error that Sensorium raises on purpose."""


class ConfigError(SensoriumError, ValueError):
    """A configuration names something that does not exist or does not fit."""


class MissingDependencyError(SensoriumError, ImportError):
    """An optional package or system library is not installed; the message says how to get it."""


class EnvError(SensoriumError):
    """An environment or the engine behind it failed."""


class ObservationError(SensoriumError):
    """A raw state cannot be shown: nothing in it is readable, or the budget is too small."""


class ModelError(SensoriumError):
    """The endpoint of a language model failed, or its answer cannot be used."""


class FeatureError(SensoriumError):
    """A feature extractor (speech synthesis, text encoder) failed."""


class PolicyError(SensoriumError):
    """A policy does not fit the observation or the action space."""


class TrainingError(SensoriumError):
    """A training loop cannot go on."""


class RunDirectoryError(SensoriumError):
    """A run directory exists already, or lacks a file that the caller needs."""


class CheckpointError(SensoriumError):
    """A checkpoint is corrupt, incomplete or of another architecture."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names the closest known names, e.g. ``Did you mean 'rgb'? Known: ...``."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(repr(n) for n in close)}? " if close else ""
    return f"{hint}Known: {', '.join(names) or 'none'}."


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """Build the error for a name that is not in a registry: names it and the nearest known ones."""
    return ConfigError(f"Unknown {kind} {name!r}. {nearest(name, known)}")


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say in one sentence which pip extra brings it.

    Args:
        module: Dotted name, e.g. ``"vizdoom"``.
        extra: The extra of this distribution that installs it, e.g. ``"doom"``.
        purpose: What needs it, e.g. ``"the doom backend"``.

    Raises:
        MissingDependencyError: The module, or something it imports, is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose[:1].upper()}{purpose[1:]} needs {module} ({error}). "
            f"Install it with: pip install 'sensorium[{extra}]'"
        ) from error


@contextlib.contextmanager
def boundary(error_type: type[SensoriumError], what: str) -> Iterator[None]:
    """Classify whatever crosses a boundary: third-party exceptions become `error_type`, ours pass through."""
    try:
        yield
    except SensoriumError:
        raise
    except Exception as error:
        raise error_type(f"{what}: {type(error).__name__}: {error}") from error
