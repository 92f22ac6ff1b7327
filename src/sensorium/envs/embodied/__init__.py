"""Embodied environments: several senses, several ways to act, several engines."""

from sensorium.envs.embodied.base import ActionSpec, Backend, BackendStep, SensorSpec
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.gym import MultiModalGym, register_envs
from sensorium.envs.embodied.registry import TaskSpec, find_task, list_tasks
from sensorium.envs.embodied.vector import MultiModalVectorEnv

__all__ = [
    "ActionSpec",
    "Backend",
    "BackendStep",
    "EmbodiedEnvConfig",
    "MultiModalGym",
    "MultiModalVectorEnv",
    "SensorSpec",
    "TaskSpec",
    "find_task",
    "list_tasks",
    "register_envs",
]
