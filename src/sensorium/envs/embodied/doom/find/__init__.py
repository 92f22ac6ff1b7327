"""`doom/find`: a room of our own in the engine, with several objects, of which the instruction names one."""

from sensorium.envs.embodied.doom.find.config import FindOptions
from sensorium.envs.embodied.doom.find.kinds import KINDS, Kind, sentences

__all__ = ["KINDS", "FindOptions", "Kind", "sentences"]
