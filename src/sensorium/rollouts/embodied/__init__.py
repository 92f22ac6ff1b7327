"""Environment and policy together: what was perceived, done and earned."""

from sensorium.rollouts.embodied.collector import Collector, env_action, finished_episode
from sensorium.rollouts.embodied.rollout import FinishedEpisode, Rollout
from sensorium.rollouts.embodied.source import RolloutSource

__all__ = ["Collector", "FinishedEpisode", "Rollout", "RolloutSource", "env_action", "finished_episode"]
