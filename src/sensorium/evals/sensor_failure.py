"""Sensors that fail in the middle of an episode: how much success is kept, and through which sense."""

from collections.abc import Mapping, Sequence

import numpy as np

from sensorium.analysis import wilson_interval
from sensorium.analysis.evaluations import FailureResult, GateShift, SensorFailureResults
from sensorium.analysis.statistics import paired_success_ratio
from sensorium.core import EpisodeStatus
from sensorium.core.counted import counted
from sensorium.evals.episodes import EpisodeResults
from sensorium.evals.faults import Fault, FaultKind
from sensorium.evals.gates import FaultRecord
from sensorium.evals.missing_modality import senses_of, subset_result
from sensorium.evals.probe import Probe

DEFAULT_KINDS = (FaultKind.ABSENT, FaultKind.FROZEN)

LEAST_GAIN = 0.02
"""Smallest gain in share by which a sensor is said to take over."""

LEAST_LEAD = 1e-3
"""Smallest lead over the next sensor's gain."""


def sensor_failure(probe: Probe) -> SensorFailureResults:
    """Success kept when each sensor and each sense fails in mid-episode, for good and for a while.

    The failure begins at a random step of the first half of the mean clean episode, from step 1 on. Only
    episodes that last until then count, and the same ones without failure are what they are compared with: up
    to the failure both are the same.
    """
    kinds = probe.request.kinds or DEFAULT_KINDS
    targets = failure_targets(probe.sensors, senses_of(probe.run.config.env))
    conditions = [(lost, kind) for lost in targets for kind in kinds if _matters(probe, targets[lost], kind)]
    probe.expect([probe.episodes] * (3 + 2 * len(conditions)))
    clean = probe.play("all senses")
    mean_length = float(np.mean([episode.length for episode in clean.finished]))
    onset = (1, max(1, int(mean_length / 2)))
    recovery = probe.request.recovery_steps or max(1, round(mean_length / 4))
    undisturbed = {
        duration: probe.play("all senses", fault=Fault(sensors=frozenset(), onset=onset, duration=duration))
        for duration in (None, recovery)
    }
    failures = []
    for lost, kind in conditions:
        for duration, same in undisturbed.items():
            fault = Fault(sensors=frozenset(targets[lost]), kind=kind, onset=onset, duration=duration)
            name = f"{lost} {kind}" + ("" if duration is None else f" for {counted(duration, 'step')}")
            broken = probe.play(name, fault=fault)
            failures.append(failure_result(lost, fault, same, broken, probe.sensors))
    return SensorFailureResults(
        clean=subset_result(clean), mean_length=mean_length, onset=onset, failures=tuple(failures)
    )


def failure_targets(sensors: Sequence[str], senses: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What is lost together: each sense that has several sensors, then each sensor.

    Args:
        sensors: Names.
        senses: Sensor -> its sense, from `senses_of`.

    Example:
        >>> senses = {"rgb": "sight", "depth": "sight", "speech": "hearing"}
        >>> failure_targets(list(senses), senses)
        {'sight': ('rgb', 'depth'), 'rgb': ('rgb',), 'depth': ('depth',), 'speech': ('speech',)}
    """
    members: dict[str, tuple[str, ...]] = {}
    for name in sensors:
        sense = senses[name]
        members[sense] = (*members.get(sense, ()), name)
    groups = {sense: names for sense, names in members.items() if len(names) > 1}
    return groups | {name: (name,) for name in sensors}


def _matters(probe: Probe, lost: Sequence[str], kind: FaultKind) -> bool:
    """A reading that is constant within an episode cannot freeze in the middle of it."""
    sensors = probe.env.worlds.sensors
    return kind is not FaultKind.FROZEN or not all(sensors[name].per_episode for name in lost)


def failure_result(
    lost: str, fault: Fault, clean: EpisodeResults, broken: EpisodeResults, sensors: Sequence[str]
) -> FailureResult:
    """Compare episodes with a failure and the same ones without it.

    Args:
        lost: What failed.
        fault: How it failed.
        clean: Episodes without failure, in which its steps were marked.
        broken: Episodes with it, from the same seed.
        sensors: The policy's sensors, canonical order.
    """
    solved_clean = {e.seed: e.status is EpisodeStatus.SUCCESS for e in clean.finished}
    solved_broken = {e.seed: e.status is EpisodeStatus.SUCCESS for e in broken.finished}
    struck = [record for record in broken.faults if record.struck and record.seed in solved_clean]
    before = [solved_clean[record.seed] for record in struck]
    after = [solved_broken[record.seed] for record in struck]
    ratio = paired_success_ratio(np.array(before, float), np.array(after, float)) if struck else None
    interval = wilson_interval(sum(after), len(after))
    undisturbed = {record.seed: record for record in clean.faults}
    gates = gate_shifts([(record, undisturbed[record.seed]) for record in struck], sensors)
    return FailureResult(
        lost=lost,
        sensors=tuple(name for name in sensors if name in fault.sensors),
        kind=fault.kind.value,
        duration=fault.duration,
        struck=len(struck),
        success_rate=float(np.mean(after)) if struck else None,
        ci95=(interval.low, interval.high) if struck else None,
        clean_success_rate=float(np.mean(before)) if struck else None,
        kept=ratio.value if ratio else None,
        kept_ci95=(ratio.low, ratio.high) if ratio else None,
        gates=gates,
        took_over=_winner(gates, fault.sensors),
    )


def _winner(gates: Mapping[str, GateShift], broken: frozenset[str]) -> str | None:
    """The intact sensor that gained most; None when none did, or several alike (a fusion without gates)."""
    gain = {name: shift.during - shift.undisturbed for name, shift in gates.items() if name not in broken}
    ranked = sorted(gain, key=lambda name: -gain[name])
    if not ranked or gain[ranked[0]] < LEAST_GAIN:
        return None
    alike = len(ranked) > 1 and gain[ranked[0]] - gain[ranked[1]] < LEAST_LEAD
    return None if alike else ranked[0]


def gate_shifts(
    pairs: Sequence[tuple[FaultRecord, FaultRecord]], sensors: Sequence[str]
) -> dict[str, GateShift]:
    """Mean gates before and during a failure, and without it; each episode counts alike.

    Args:
        pairs: An episode with the failure, and the same one without it.
        sensors: The policy's sensors, canonical order.
    """
    parts = [
        (broken.gates_before, broken.gates_during, clean.gates_during)
        for broken, clean in pairs
        if broken.gates_before and broken.gates_during and clean.gates_during
    ]
    if not parts:
        return {}
    before, during, undisturbed = np.mean(parts, axis=0).clip(0.0, 1.0)
    return {
        name: GateShift(before=float(before[m]), during=float(during[m]), undisturbed=float(undisturbed[m]))
        for m, name in enumerate(sensors)
    }
