"""Questions that are asked by running a trained policy."""

from sensorium.evals.episodes import EpisodeResults, Player, play_episodes
from sensorium.evals.finish import finish_run, load_agent
from sensorium.evals.missing_modality import missing_modality_test, sensor_groups, sensor_subsets
from sensorium.evals.record import record_episode

__all__ = [
    "EpisodeResults",
    "Player",
    "finish_run",
    "load_agent",
    "missing_modality_test",
    "play_episodes",
    "record_episode",
    "sensor_groups",
    "sensor_subsets",
]
