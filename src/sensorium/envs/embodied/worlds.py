"""N worlds with what every backend shares: episode seeds, step limits, sensor rates, presence, status."""

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sensorium.core import ActionKind, ConfigError, EpisodeStatus, derive_seed
from sensorium.envs.embodied.augment.augmenter import Augmenter
from sensorium.envs.embodied.base import Reading, SensorSpec
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.delivery import check_outcome, check_readings
from sensorium.envs.embodied.registry import build_backend, find_task

Observation = dict[str, Any]
"""Sensor readings by name, plus `present` and `timestamp_s`; rows are worlds."""


class WorldsStep(NamedTuple):
    """What one step did, per world."""

    reward: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    status: NDArray[np.str_]
    """(N,) values of `EpisodeStatus`."""
    violated: NDArray[np.bool_]
    """(N,), the step was unsafe, as the task defines it."""


@dataclass(slots=True)
class _SensorClock:
    """Holds the last reading of a sensor that is slower than the control loop."""

    spec: SensorSpec
    period_steps: int
    held: Reading | None = None

    @property
    def always_due(self) -> bool:
        """Every step brings a new reading."""
        return self.period_steps == 1 and not self.spec.per_episode


def observation_space(specs: dict[str, SensorSpec]) -> spaces.Dict:
    """Space of one world's observation: the sensors, `present` and `timestamp_s` per sensor."""
    sensors: dict[str, gymnasium.Space[Any]] = {name: spec.space for name, spec in specs.items()}
    sensors["present"] = spaces.Dict({name: spaces.Discrete(2) for name in specs})
    sensors["timestamp_s"] = spaces.Dict({name: spaces.Box(0.0, np.inf, (), np.float32) for name in specs})
    return spaces.Dict(sensors)


class Worlds:
    """N worlds of one task, reset and stepped together; never resets a world on its own.

    World i's k-th episode is decided by its base seed and k alone, whatever `num_envs` is.

    Args:
        config: The task, the senses and the way to act.
        num_envs: How many worlds.

    Raises:
        ConfigError: The task cannot give what was asked for.
    """

    def __init__(self, config: EmbodiedEnvConfig, num_envs: int) -> None:
        if num_envs < 1:
            raise ConfigError(f"num_envs must be at least 1, found {num_envs}.")
        self.config = config
        self.num_envs = num_envs
        _check_hue(config)
        self.backend = build_backend(config, num_envs)
        self.sensors: dict[str, SensorSpec] = dict(self.backend.sensors)
        self.action = self.backend.action
        self.observation_space = observation_space(self.sensors)
        self.action_space = self.action.space()
        self.step_count = np.zeros(num_envs, np.int64)
        self._base_seeds = np.zeros(num_envs, np.uint64)
        self._episode_count = np.zeros(num_envs, np.int64)
        self.episode_seeds = np.zeros(num_envs, np.uint64)
        self.augmenter = Augmenter(config.augment, self.sensors, num_envs, config.max_episode_steps)
        self._clocks = [self._clock(spec) for spec in self.sensors.values()]
        self._always_due = [m for m, clock in enumerate(self._clocks) if clock.always_due]
        self._timestamps = np.zeros((len(self._clocks), num_envs), np.float32)
        self._running = np.full(num_envs, EpisodeStatus.RUNNING.value, dtype="<U9")
        self._seen = False
        self._stepped = False

    def _clock(self, spec: SensorSpec) -> _SensorClock:
        control_hz = self.backend.control_hz
        rate_hz = self.config.sensor_rates_hz.get(spec.name, control_hz)
        if not 0 < rate_hz <= control_hz:
            raise ConfigError(
                f"sensor_rates_hz[{spec.name!r}] is {rate_hz}; {self.config.task} reads sensors at most at "
                f"{control_hz:g} Hz. Choose a rate above 0 and up to {control_hz:g}."
            )
        return _SensorClock(spec, max(1, round(control_hz / rate_hz)))

    def seed(self, seeds: NDArray[np.uint64]) -> None:
        """Give each world a base seed; its next episode is its first."""
        self._base_seeds = seeds.astype(np.uint64)
        self._episode_count[:] = 0

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Start the next episode in each world where `mask` is True."""
        for world in np.flatnonzero(mask):
            episode = int(self._episode_count[world])
            self.episode_seeds[world] = derive_seed(int(self._base_seeds[world]), "episode", episode)
        self.backend.reset(self.episode_seeds, mask)
        self._episode_count[mask] += 1
        self.step_count[mask] = 0
        if self.augmenter.active:
            self.augmenter.begin(mask, self.episode_seeds)

    def step(
        self, action: Any, active: NDArray[np.bool_], starting: NDArray[np.bool_] | None = None
    ) -> WorldsStep:
        """Advance the active worlds by one control step.

        Args:
            action: A batch of actions of `action_space`, (N, ...) each leaf.
            active: (N,) which worlds advance; the action of the others is ignored.
            starting: (N,) worlds, not active, that begin their next episode. Not a call of its own, because
                some backends take long to begin one and let the others act meanwhile.

        Raises:
            ConfigError: The action is not in `action_space`; nothing has happened then.
            EnvError: What the backend's first step returned is not shaped as `BackendStep` says.
        """
        discrete, continuous = self._split(action)
        if starting is not None and starting.any():
            self.reset(starting)
        outcome = self.backend.step(discrete, continuous, active)
        if not self._stepped:
            check_outcome(outcome, self.config.task, self.num_envs)
            self._stepped = True
        self.step_count[active] += 1
        at_limit = active & (self.step_count >= self.config.max_episode_steps)
        stopped = at_limit if outcome.truncated is None else at_limit | outcome.truncated
        truncated = (stopped & ~outcome.terminated) | outcome.failed
        status = self._running.copy()
        if (outcome.terminated | truncated).any():
            status[truncated] = EpisodeStatus.TRUNCATED.value
            status[outcome.terminated] = EpisodeStatus.FAILURE.value
            status[(outcome.terminated | truncated) & outcome.success] = EpisodeStatus.SUCCESS.value
            status[outcome.failed] = EpisodeStatus.ERROR.value
        violated = np.zeros(self.num_envs, np.bool_) if outcome.violated is None else outcome.violated
        return WorldsStep(outcome.reward, outcome.terminated & ~outcome.failed, truncated, status, violated)

    def observe(self, started: NDArray[np.bool_]) -> Observation:
        """Read the sensors that are due; the others keep their last reading and its timestamp.

        Args:
            started: (N,) worlds whose episode has just begun: every sensor is due there.

        Raises:
            EnvError: The backend's first readings are not what its sensors declare.
        """
        now_s = (self.step_count / self.backend.control_hz).astype(np.float32)
        readings = self.backend.observe()
        if not self._seen:
            check_readings(readings, self.sensors, self.config.task, self.num_envs)
            self._seen = True
        observation: Observation = {}
        self._timestamps[self._always_due] = now_s
        for m, clock in enumerate(self._clocks):
            name = clock.spec.name
            if clock.always_due:
                observation[name] = readings[name]
                continue
            due = started | (self.step_count % clock.period_steps == 0)
            observation[name] = _hold(clock, readings[name], due)
            refresh = started if clock.spec.per_episode else due
            self._timestamps[m, refresh] = now_s[refresh]
        present = np.ones(self._timestamps.shape, np.int64)
        observation["present"] = dict(zip(self.sensors, present, strict=True))
        observation["timestamp_s"] = dict(zip(self.sensors, self._timestamps.copy(), strict=True))
        if self.augmenter.active:
            self.augmenter(observation, self.step_count)
        return observation

    def _split(self, action: Any) -> tuple[NDArray[np.int64] | None, NDArray[np.float32] | None]:
        kind = self.action.kind
        discrete = action["discrete"] if kind is ActionKind.HYBRID else action
        continuous = action["continuous"] if kind is ActionKind.HYBRID else action
        return (
            None if kind is ActionKind.CONTINUOUS else self._options(discrete),
            None if kind is ActionKind.DISCRETE else self._parameters(continuous),
        )

    def _options(self, value: Any) -> NDArray[np.int64]:
        options = np.asarray(value, np.int64).reshape(self.num_envs)
        if options.view(np.uint64).max() >= self.action.num_options:  # a negative one reads as a huge one
            raise ConfigError(
                f"Discrete action out of range: found {options.min()} to {options.max()}; "
                f"{self.config.task} has {self.action.num_options} options: "
                f"{', '.join(self.action.option_names)}."
            )
        return options

    def _parameters(self, value: Any) -> NDArray[np.float32]:
        parameters = np.asarray(value, np.float32).reshape(self.num_envs, self.action.continuous_dim)
        if not np.isfinite(parameters).all():
            worlds = np.flatnonzero(~np.isfinite(parameters).all(axis=1)).tolist()
            raise ConfigError(
                f"Continuous action is not finite in worlds {worlds}; expected values in [-1, 1]. A policy "
                f"acts so where a reading holds NaN, or after training diverged."
            )
        return parameters.clip(-1.0, 1.0)

    def close(self) -> None:
        """Free the backend; may be called twice."""
        self.backend.close()


def _check_hue(config: EmbodiedEnvConfig) -> None:
    jitter = config.augment.color_jitter
    if (
        jitter is not None
        and jitter.hue > 0
        and find_task(config.task, config.backend_options).color_is_label
    ):
        raise ConfigError(
            f"augment.color_jitter.hue is {jitter.hue:g}, but {config.task} names its goal by colour: a "
            f"turned hue would make the instruction wrong. Set hue to 0."
        )


def _hold(clock: _SensorClock, reading: Reading, due: NDArray[np.bool_]) -> Reading:
    """Replace the held reading where `due`; returns what the agent perceives now."""
    if clock.held is None or due.all():
        clock.held = reading
    elif isinstance(reading, list):
        clock.held = [new if d else old for new, old, d in zip(reading, clock.held, due, strict=True)]
    else:
        held = cast(NDArray[Any], clock.held)
        clock.held = np.where(due.reshape(-1, *[1] * (reading.ndim - 1)), reading, held)
    return clock.held
