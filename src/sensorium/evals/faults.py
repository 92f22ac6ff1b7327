"""Sensor faults: what a policy gets from a sensor that is lost, stuck or noisy.

A fault acts between environment and policy, on raw observations. What happens in an episode depends on the
evaluation's seed and the episode's seed alone, not on the number of worlds.

| kind | the policy gets | is it told? |
| --- | --- | --- |
| `absent` | nothing: presence 0, the reading is never read | yes |
| `frozen` | the last reading before the fault, again and again, presence 1 and stamped as new | no |
| `noise` | noise of the sensor's own scale, presence 1 | no |

A fault that is there from an episode's first step freezes the last reading of the episode before it: a stuck
camera shows the former scene, a stuck speaker repeats the former sentence. A reading that is constant within
an episode (an instruction, read or spoken) is therefore untouched by a freeze later in the episode. Noise
takes the place of a constant reading or a text once per fault, of all others at every step; for texts it is
the words of an earlier episode's text in random order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ConfigError, Modality, derive_seed, unknown_name
from sensorium.envs.embodied import SensorSpec
from sensorium.evals.noise import NoiseScale, garbled

Readings = NDArray[Any] | Sequence[str]
"""One sensor's readings in all worlds: (N, ...), or N texts."""


class FaultKind(StrEnum):
    """What a broken sensor delivers."""

    ABSENT = "absent"
    FROZEN = "frozen"
    NOISE = "noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Which sensors fail, how, and when in each episode.

    Raises:
        ConfigError: A step count is out of range.
    """

    sensors: frozenset[str]
    """None of them: nothing fails, and the steps of the fault are only marked, to compare with."""
    kind: FaultKind = FaultKind.ABSENT
    onset: int | tuple[int, int] = 0
    """First step of the fault; or first and last possible step, of which each episode draws one."""
    duration: int | None = None
    """Steps that it lasts; None: to the end of the episode."""

    def __post_init__(self) -> None:
        first, last = self.onset_range
        if not 0 <= first <= last:
            raise ConfigError(
                f"A fault's onset must be a step from 0 on or a rising range, found {self.onset}."
            )
        if self.duration is not None and self.duration < 1:
            raise ConfigError(f"A fault lasts at least 1 step (None: for good), found {self.duration}.")

    @property
    def onset_range(self) -> tuple[int, int]:
        """First and last possible onset, steps."""
        return self.onset if isinstance(self.onset, tuple) else (self.onset, self.onset)

    def onset_of(self, seed: int, episode_seed: int) -> int:
        """The onset in one episode: uniform over the range, decided by the two seeds."""
        first, last = self.onset_range
        random = np.random.default_rng(derive_seed(seed, "onset", episode_seed))
        return int(random.integers(first, last, endpoint=True))


class FaultInjector:
    """Applies one fault to the observations of a vector environment.

    Args:
        fault: What fails, and when.
        sensors: What the environment delivers.
        noise: Scale of each sensor's noise; needed for the sensors of a `noise` fault that are no texts.
        seed: The evaluation's seed.

    Raises:
        ConfigError: The fault names a sensor that is not there.
    """

    def __init__(
        self, fault: Fault, sensors: Mapping[str, SensorSpec], noise: Mapping[str, NoiseScale], seed: int
    ) -> None:
        for name in fault.sensors - sensors.keys():
            raise unknown_name("sensor", name, sensors)
        self.fault = fault
        self.seed = seed
        self.specs = {name: spec for name, spec in sensors.items() if name in fault.sensors}
        self._noise = noise

    def remember(self, observation: Mapping[str, Any]) -> None:
        """Begin: these readings stand for the episodes before the first ones.

        Args:
            observation: As from `MultiModalVectorEnv`, of episodes that are not played.
        """
        count = len(next(iter(observation["present"].values())))
        self.onset = np.zeros(count, np.int64)
        self.active = np.zeros(count, np.bool_)
        """(N,) worlds whose sensors are broken in the latest observation."""
        self.before = np.zeros(count, np.bool_)
        """(N,) worlds whose sensors have not broken yet."""
        self.changed = np.zeros(count, np.bool_)
        """(N,) worlds where a constant reading may differ from the observation before."""
        self._true: dict[str, Readings] = {name: observation[name] for name in self.specs}
        self._delivered = dict(self._true)
        self._text = {name: self._true[name] for name, spec in self.specs.items() if _is_text(spec)}
        self._former_text = dict(self._text)
        self._random: dict[tuple[int, str], np.random.Generator] = {}

    def __call__(
        self,
        observation: Mapping[str, Any],
        steps: NDArray[np.int64],
        starts: NDArray[np.bool_],
        episode_seeds: NDArray[np.uint64],
    ) -> dict[str, Any]:
        """What the policy gets; `observation` itself is not changed.

        Args:
            observation: As from `MultiModalVectorEnv`.
            steps: (N,) steps since each world's episode began.
            starts: (N,) worlds whose episode begins with this observation.
            episode_seeds: (N,) seed of each world's episode.
        """
        for world in np.flatnonzero(starts):
            self.onset[world] = self.fault.onset_of(self.seed, int(episode_seeds[world]))
            for name in self.specs:
                self._random.pop((int(world), name), None)
        was_active = self.active & ~starts
        self.before = steps < self.onset
        over = (
            np.zeros_like(self.before)
            if self.fault.duration is None
            else (steps >= self.onset + self.fault.duration)
        )
        self.active = ~self.before & ~over
        self.changed = starts | (self.active != was_active)
        result = dict(observation) | {"present": dict(observation["present"])}
        for name, spec in self.specs.items():
            if self.fault.kind is FaultKind.ABSENT:
                present = result["present"][name]
                result["present"][name] = np.where(self.active, np.zeros_like(present), present)
            elif self.fault.kind is FaultKind.FROZEN:
                result[name] = self._frozen(name, observation[name], starts)
            else:
                began = self.active & ~was_active
                result[name] = self._noisy(spec, observation[name], starts, began, episode_seeds)
        return result

    def _frozen(self, name: str, reading: Readings, starts: NDArray[np.bool_]) -> Readings:
        held = _pick(starts, self._true[name], self._delivered[name])
        self._delivered[name] = _pick(self.active, held, reading)
        self._true[name] = reading
        return self._delivered[name]

    def _noisy(
        self,
        spec: SensorSpec,
        reading: Readings,
        starts: NDArray[np.bool_],
        began: NDArray[np.bool_],
        episode_seeds: NDArray[np.uint64],
    ) -> Readings:
        name = spec.name
        if _is_text(spec):
            self._former_text[name] = _pick(starts, self._text[name], self._former_text[name])
            said = np.array([text != "" for text in reading])
            self._text[name] = _pick(said, reading, self._text[name])
        constant = spec.per_episode or _is_text(spec)
        drawn = began if constant else self.active
        kept = _pick(self.active & ~drawn, self._delivered[name], reading)
        delivered = list(kept) if _is_text(spec) else np.array(kept)
        for world in np.flatnonzero(drawn):
            random = self._generator(int(world), name, int(episode_seeds[world]))
            if _is_text(spec):
                delivered[world] = garbled(str(self._former_text[name][int(world)]), random)
            else:
                delivered[world] = self._noise[name].draw(random)
        self._delivered[name] = tuple(delivered) if isinstance(delivered, list) else delivered
        return self._delivered[name]

    def _generator(self, world: int, name: str, episode_seed: int) -> np.random.Generator:
        if (world, name) not in self._random:
            seed = derive_seed(self.seed, "noise", name, episode_seed)
            self._random[world, name] = np.random.default_rng(seed)
        return self._random[world, name]


def _is_text(spec: SensorSpec) -> bool:
    return spec.modality is Modality.TEXT


def _pick(mask: NDArray[np.bool_], chosen: Readings, other: Readings) -> Readings:
    """Per world: `chosen` where `mask` is True, else `other`."""
    if isinstance(chosen, np.ndarray):
        return np.where(mask.reshape(-1, *[1] * (chosen.ndim - 1)), chosen, other)
    return tuple(a if m else b for m, a, b in zip(mask, chosen, other, strict=True))
