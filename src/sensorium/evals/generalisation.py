"""Combinations of senses, and worlds, that training did not have."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sensorium.analysis.evaluations import CombinationResult, GeneralisationResults, RateSummary
from sensorium.analysis.statistics import interquartile_mean_of_rates, interquartile_rate_interval
from sensorium.core import EpisodeStatus
from sensorium.evals.combinations import read_combinations
from sensorium.evals.episodes import EpisodeResults
from sensorium.evals.missing_modality import subset_result
from sensorium.evals.probe import Probe


def generalisation(probe: Probe) -> GeneralisationResults:
    """Success with given combinations of sensors, in the world of training and in a shifted one.

    Every combination plays the same episodes; its other sensors are absent.

    Raises:
        ConfigError: A combination is missing or names an unknown sensor.
    """
    request = probe.request
    trained, held_out = read_combinations(request.combinations, request.trained, probe.sensors)
    worlds = {"trained": probe.env} | ({"shifted": probe.shifted} if probe.shifted is not None else {})
    every = trained | held_out
    probe.expect([probe.episodes] * len(every) * len(worlds))
    played = {
        world: {
            name: probe.play(f"{name}, {world} world", blanked=frozenset(probe.sensors) - present, env=env)
            for name, present in every.items()
        }
        for world, env in worlds.items()
    }
    return GeneralisationResults(
        combinations={
            name: CombinationResult(
                sensors=tuple(name.split("+")),
                held_out=name in held_out,
                worlds={world: subset_result(results[name]) for world, results in played.items()},
            )
            for name in every
        },
        trained={world: rate_summary(results, trained) for world, results in played.items() if trained},
        held_out={world: rate_summary(results, held_out) for world, results in played.items()},
    )


def rate_summary(results: Mapping[str, EpisodeResults], names: Mapping[str, object]) -> RateSummary:
    """Interquartile mean of the success rates of some combinations; episodes are resampled within each."""
    strata = [_outcomes(results[name]) for name in names]
    interval = interquartile_rate_interval(strata)
    return RateSummary(
        interquartile_mean=interquartile_mean_of_rates(strata),
        ci95=(interval.low, interval.high),
        combinations=len(strata),
    )


def _outcomes(played: EpisodeResults) -> NDArray[np.float64]:
    return np.array([episode.status is EpisodeStatus.SUCCESS for episode in played.finished], np.float64)
