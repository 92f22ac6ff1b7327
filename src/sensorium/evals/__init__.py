"""Questions that are asked by running: of a trained policy, and of what a language model is told."""

from sensorium.evals.episodes import EpisodeResults, Player, play_episodes
from sensorium.evals.facts import Fact, is_retained
from sensorium.evals.faults import Fault, FaultInjector, FaultKind
from sensorium.evals.finish import finish_run
from sensorium.evals.gates import FaultRecord
from sensorium.evals.loading import LoadedRun, load_agent, loaded_run
from sensorium.evals.missing_modality import missing_modality_test, senses_of, sensor_groups, sensor_subsets
from sensorium.evals.planting import Planted, plant_facts
from sensorium.evals.probe import Probe, SuiteRequest
from sensorium.evals.record import record_episode
from sensorium.evals.retention import Retention, embedding_similarity, measure_retention
from sensorium.evals.suites import SUITES, run_suite

__all__ = [
    "SUITES",
    "EpisodeResults",
    "Fact",
    "Fault",
    "FaultInjector",
    "FaultKind",
    "FaultRecord",
    "LoadedRun",
    "Planted",
    "Player",
    "Probe",
    "Retention",
    "SuiteRequest",
    "embedding_similarity",
    "finish_run",
    "is_retained",
    "load_agent",
    "loaded_run",
    "measure_retention",
    "missing_modality_test",
    "plant_facts",
    "play_episodes",
    "record_episode",
    "run_suite",
    "senses_of",
    "sensor_groups",
    "sensor_subsets",
]
