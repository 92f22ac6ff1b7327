"""Questions that are asked by running a trained policy."""

from sensorium.evals.episodes import EpisodeResults, Player, play_episodes
from sensorium.evals.faults import Fault, FaultInjector, FaultKind
from sensorium.evals.finish import finish_run
from sensorium.evals.gates import FaultRecord
from sensorium.evals.loading import LoadedRun, load_agent, loaded_run
from sensorium.evals.missing_modality import missing_modality_test, sensor_groups, sensor_subsets
from sensorium.evals.probe import Probe, SuiteRequest
from sensorium.evals.record import record_episode
from sensorium.evals.suites import SUITES, run_suite

__all__ = [
    "SUITES",
    "EpisodeResults",
    "Fault",
    "FaultInjector",
    "FaultKind",
    "FaultRecord",
    "LoadedRun",
    "Player",
    "Probe",
    "SuiteRequest",
    "finish_run",
    "load_agent",
    "loaded_run",
    "missing_modality_test",
    "play_episodes",
    "record_episode",
    "run_suite",
    "sensor_groups",
    "sensor_subsets",
]
