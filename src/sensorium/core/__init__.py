"""Words, errors, configuration, seeds and time: NumPy and pydantic only."""

from sensorium.core.config import Config, parse_config, parse_overrides, read_yaml
from sensorium.core.errors import (
    CheckpointError,
    ConfigError,
    EnvError,
    FeatureError,
    MissingDependencyError,
    ModelError,
    ObservationError,
    PolicyError,
    RunDirectoryError,
    SensoriumError,
    TrainingError,
    boundary,
    require,
    unknown_name,
)
from sensorium.core.intervals import Interval, wilson_interval
from sensorium.core.seeding import derive_seed
from sensorium.core.timing import Stopwatch, available_cores, set_passive_threads
from sensorium.core.types import ActionKind, EpisodeStatus, Modality

__all__ = [
    "ActionKind",
    "CheckpointError",
    "Config",
    "ConfigError",
    "EnvError",
    "EpisodeStatus",
    "FeatureError",
    "Interval",
    "MissingDependencyError",
    "Modality",
    "ModelError",
    "ObservationError",
    "PolicyError",
    "RunDirectoryError",
    "SensoriumError",
    "Stopwatch",
    "TrainingError",
    "available_cores",
    "boundary",
    "derive_seed",
    "parse_config",
    "parse_overrides",
    "read_yaml",
    "require",
    "set_passive_threads",
    "unknown_name",
    "wilson_interval",
]
