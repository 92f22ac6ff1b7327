"""`arena`: a batch-native room simulator with sight, hearing and language; N worlds advance in one call."""

from sensorium.envs.embodied.arena.config import ArenaOptions
from sensorium.envs.embodied.arena.tasks import TASKS, build

__all__ = ["TASKS", "ArenaOptions", "build"]
