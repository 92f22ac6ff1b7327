"""The first layer: a raw state becomes typed, timestamped parts."""

from sensorium.observations.base import Observation, Part
from sensorium.observations.code import CodeState
from sensorium.observations.config import ReadConfig
from sensorium.observations.read import read
from sensorium.observations.source import Source

__all__ = ["CodeState", "Observation", "Part", "ReadConfig", "Source", "read"]
