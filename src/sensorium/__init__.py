"""Agents that perceive through several senses at once.

Public names are loaded when they are first used, so that `import sensorium` stays fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensorium.envs.embodied import EmbodiedEnvConfig, MultiModalGym, MultiModalVectorEnv, register_envs
    from sensorium.observations import Source, read
    from sensorium.presets import find_preset
    from sensorium.representations import History, ObservationPipeline, PipelineConfig, Session
    from sensorium.trainers.config import PPOConfig, TrainConfig

__version__ = "0.1.0"

_HOMES = {
    "EmbodiedEnvConfig": "sensorium.envs.embodied",
    "MultiModalGym": "sensorium.envs.embodied",
    "MultiModalVectorEnv": "sensorium.envs.embodied",
    "register_envs": "sensorium.envs.embodied",
    "Source": "sensorium.observations",
    "read": "sensorium.observations",
    "find_preset": "sensorium.presets",
    "History": "sensorium.representations",
    "ObservationPipeline": "sensorium.representations",
    "PipelineConfig": "sensorium.representations",
    "Session": "sensorium.representations",
    "PPOConfig": "sensorium.trainers.config",
    "TrainConfig": "sensorium.trainers.config",
}

__all__ = [
    "EmbodiedEnvConfig",
    "History",
    "MultiModalGym",
    "MultiModalVectorEnv",
    "ObservationPipeline",
    "PPOConfig",
    "PipelineConfig",
    "Session",
    "Source",
    "TrainConfig",
    "find_preset",
    "read",
    "register_envs",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'sensorium' has no attribute {name!r}")
