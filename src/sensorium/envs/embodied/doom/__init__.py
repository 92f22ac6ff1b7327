"""ViZDoom: a real game engine with sight, depth, stereo sound, messages and a body."""

from sensorium.envs.embodied.doom.config import DoomOptions
from sensorium.envs.embodied.doom.scenarios import SCENARIOS, Scenario, SuccessRule

__all__ = ["SCENARIOS", "DoomOptions", "Scenario", "SuccessRule"]
