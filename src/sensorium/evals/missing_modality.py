"""The missing-modality test: what remains of a policy's success with each subset of its senses."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations

from sensorium.analysis import SubsetResult, wilson_interval
from sensorium.analysis.evaluations import KindResults
from sensorium.analysis.senses import robustness
from sensorium.envs.embodied import EmbodiedEnvConfig, MultiModalVectorEnv
from sensorium.evals.episodes import EpisodeResults, play_episodes
from sensorium.evals.faults import Fault, FaultKind
from sensorium.evals.probe import Probe
from sensorium.trainers.build import Agent

MAX_SENSORS_APART = 4
"""With more sensors, subsets are of senses."""


def senses_of(config: EmbodiedEnvConfig) -> dict[str, str]:
    """Sense of every sensor of a world, those of other people's backends too.

    Example:
        >>> senses_of(EmbodiedEnvConfig(task="mine/walk", visual_obs=("left_eye",), proprio=True))
        {'left_eye': 'sight', 'proprio': 'body'}
    """
    senses = {
        "sight": config.visual_obs,
        "hearing": config.audio_obs,
        "language": config.text_obs,
        "body": ("proprio",) if config.proprio else (),
    }
    return {name: sense for sense, names in senses.items() for name in names}


def sensor_groups(sensors: Sequence[str], senses: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What is taken away together: each sensor by itself, or each sense when there are more than four.

    Args:
        sensors: Names.
        senses: Sensor -> its sense, from `senses_of`.

    Example:
        >>> senses = {"a": "sight", "b": "sight", "c": "hearing", "d": "hearing", "e": "body"}
        >>> sensor_groups(["a", "c"], senses)
        {'a': ('a',), 'c': ('c',)}
        >>> sensor_groups(list(senses), senses)
        {'sight': ('a', 'b'), 'hearing': ('c', 'd'), 'body': ('e',)}
    """
    if len(sensors) <= MAX_SENSORS_APART:
        return {name: (name,) for name in sensors}
    groups: dict[str, tuple[str, ...]] = {}
    for name in sensors:
        sense = senses[name]
        groups[sense] = (*groups.get(sense, ()), name)
    return groups


def sensor_subsets(sensors: Sequence[str], senses: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Every non-empty subset, all first, then by falling size: name (``"rgb+speech"``) -> its sensors."""
    groups = sensor_groups(sensors, senses)
    subsets: dict[str, frozenset[str]] = {}
    for size in range(len(groups), 0, -1):
        for chosen in combinations(groups, size):
            subsets["+".join(chosen)] = frozenset(name for group in chosen for name in groups[group])
    return subsets


def missing_modality(probe: Probe) -> dict[str, KindResults]:
    """Success with every non-empty subset of the senses, the others absent, frozen or noisy all along.

    Every condition plays the same episodes; all senses are played once and count for every kind.
    """
    kinds = probe.request.kinds or tuple(FaultKind)
    subsets = sensor_subsets(probe.sensors, senses_of(probe.run.config.env))
    everything = next(iter(subsets))
    probe.expect([probe.full_episodes] + [probe.episodes] * (len(subsets) - 1) * len(kinds))
    clean = subset_result(probe.play(everything, episodes=probe.full_episodes))
    results: dict[str, KindResults] = {}
    for kind in kinds:
        found = {everything: clean}
        for name, intact in subsets.items():
            if name == everything:
                continue
            broken = frozenset(probe.sensors) - intact
            if kind is FaultKind.ABSENT:
                played = probe.play(f"{name}, others {kind}", blanked=broken)
            else:
                played = probe.play(f"{name}, others {kind}", fault=Fault(sensors=broken, kind=kind))
            found[name] = subset_result(played)
        results[kind.value] = kind_results(found)
    return results


def kind_results(found: dict[str, SubsetResult]) -> KindResults:
    """The results of one kind of fault with the figures that sum them up."""
    summed = robustness(found)
    return KindResults(
        subsets=found,
        curve=summed.curve,
        relative_robustness=summed.relative_robustness,
        worst_sense=summed.worst.sense if summed.worst else None,
        worst_drop=summed.worst.change if summed.worst else None,
    )


def missing_modality_test(
    agent: Agent,
    env: MultiModalVectorEnv,
    *,
    episodes: int,
    subset_episodes: int,
    seed: int,
    on_episode: Callable[[str], None] | None = None,
) -> dict[str, SubsetResult]:
    """Success with every non-empty subset of the trained sensors, the others absent.

    Every subset plays the same episodes.

    Args:
        agent: Policy and representer.
        env: The worlds.
        episodes: Episodes with all senses.
        subset_episodes: Episodes with each smaller subset.
        seed: Decides the episodes; choose one that training did not use.
        on_episode: Called with the subset's name when an episode ends.

    Returns:
        Subset name -> success rate with its 95 % Wilson interval; the first entry is all senses.
    """
    sensors = agent.policy.perception.names
    results: dict[str, SubsetResult] = {}
    for name, present in sensor_subsets(sensors, senses_of(env.config)).items():
        report = None if on_episode is None else partial(on_episode, name)
        played = play_episodes(
            agent,
            env,
            episodes=episodes if len(present) == len(sensors) else subset_episodes,
            seed=seed,
            blanked=frozenset(sensors) - present,
            on_episode=report,
        )
        results[name] = subset_result(played)
    return results


def subset_result(played: EpisodeResults) -> SubsetResult:
    """Success rate with its interval."""
    trials = len(played.finished)
    interval = wilson_interval(played.successes, trials)
    return SubsetResult(
        success_rate=played.successes / trials,
        ci95=(interval.low, interval.high),
        episodes=trials,
        mean_return=played.mean_return,
    )
