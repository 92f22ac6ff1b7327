"""Applies the augmentations of a run to the observations of N worlds."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sensorium.core import ConfigError, Modality, derive_seed, unknown_name
from sensorium.envs.embodied.augment.color_jitter import draw_jitter, jitter, no_jitter
from sensorium.envs.embodied.augment.config import AugmentConfig
from sensorium.envs.embodied.augment.time_warp import TimeWarp
from sensorium.envs.embodied.base import SensorSpec

_FOREVER = np.iinfo(np.int64).max


def _has_colours(spec: SensorSpec) -> bool:
    """Whether this is a picture in red, green and blue; one of labels or of other numbers has no colours."""
    space = spec.space
    if spec.modality is not Modality.IMAGE or not isinstance(space, spaces.Box) or space.shape[-1:] != (3,):
        return False
    whole = np.issubdtype(space.dtype, np.integer)
    return bool(whole and space.low.min() == 0 and space.high.max() == np.iinfo(np.uint8).max)


class Augmenter:
    """Decides per episode which sensors are absent, lag or change colour, and does it to each observation.

    Everything is drawn from the episode's seed, so that a world's perception does not depend on `num_envs`.
    What comes out is what the policy acts on and what a rollout stores: an update sees the same again.

    Args:
        config: Which augmentations, how strong.
        sensors: The sensors of the task, canonical order.
        num_envs: How many worlds.
        max_episode_steps: Length of the longest episode.

    Raises:
        ConfigError: An augmentation names a sensor that is not there, or needs one.
    """

    def __init__(
        self,
        config: AugmentConfig,
        sensors: Mapping[str, SensorSpec],
        num_envs: int,
        max_episode_steps: int,
    ) -> None:
        self.config = config
        self.names = tuple(sensors)
        self._configured = config != AugmentConfig()
        self._droppable = self._may_drop(config)
        self._jittered = tuple(name for name, spec in sensors.items() if _has_colours(spec))
        if config.color_jitter is not None and not self._jittered:
            raise ConfigError(
                "augment.color_jitter needs the sensor rgb, or another picture of shape (height, width, 3) "
                "with whole numbers from 0 to 255; add it to visual_obs."
            )
        warped = tuple(
            name
            for name, spec in sensors.items()
            if not spec.per_episode and spec.modality is not Modality.TEXT
        )
        self._warp = (
            None
            if config.time_warp is None
            else TimeWarp(config.time_warp, warped, num_envs, max_episode_steps)
        )
        self._absent = np.zeros((len(self.names), num_envs), np.bool_)
        self._outage_start = np.full((len(self.names), num_envs), _FOREVER)
        self._outage_end = np.full((len(self.names), num_envs), _FOREVER)
        self._jitter = no_jitter(num_envs)
        self.allowed = self._combinations(config)
        """(stages, sensors) sensors of each stage of a curriculum, or of each combination."""
        self._stage_weights = np.full(len(self.allowed), 1.0 / len(self.allowed))
        self.stage = np.zeros(num_envs, np.int64)
        """(N,) stage, or combination, of each world's running episode."""

    def _may_drop(self, config: AugmentConfig) -> NDArray[np.bool_]:
        only = () if config.modal_dropout is None else config.modal_dropout.only
        for name in only:
            if name not in self.names:
                raise unknown_name("sensor in augment.modal_dropout.only", name, self.names)
        return np.array([not only or name in only for name in self.names])

    def _combinations(self, config: AugmentConfig) -> NDArray[np.bool_]:
        for number, sensors in enumerate(config.combinations):
            if not sensors:
                raise ConfigError(f"augment.combinations[{number}] is empty; name at least one sensor.")
            for name in sensors:
                if name not in self.names:
                    raise unknown_name(f"sensor in augment.combinations[{number}]", name, self.names)
        sets = config.combinations or (self.names,)
        return np.array([[name in sensors for name in self.names] for sensors in sets])

    def set_stages(self, allowed: NDArray[np.bool_], weights: NDArray[np.float64]) -> None:
        """Choose what the episodes that begin from now on may perceive.

        Args:
            allowed: (stages, sensors) which sensors each stage has; at least one each.
            weights: (stages,) share of the episodes in each stage; sums to 1.
        """
        self.allowed = allowed
        self._stage_weights = weights

    @property
    def active(self) -> bool:
        """Whether anything can change at all."""
        return self._configured or not self.allowed.all()

    def begin(self, mask: NDArray[np.bool_], episode_seeds: NDArray[np.uint64]) -> None:
        """Draw what happens in the new episodes of the worlds in `mask`."""
        for world in np.flatnonzero(mask).tolist():
            rng = np.random.default_rng(derive_seed(int(episode_seeds[world]), "augment"))
            # One draw per purpose, in a fixed order: switching one augmentation on leaves the others alone.
            stage, dropout, outage, warp, colour = rng.spawn(5)
            self.stage[world] = stage.choice(len(self._stage_weights), p=self._stage_weights)
            allowed = self.allowed[self.stage[world]]
            self._absent[:, world] = ~allowed | self._draw_absent(dropout, allowed)
            self._draw_outages(world, outage)
            if self._warp is not None:
                self._warp.begin(world, warp)
            if self.config.color_jitter is not None:
                factors, order = draw_jitter(self.config.color_jitter, colour)
                self._jitter.factors[world], self._jitter.order[world] = factors, order

    def _draw_absent(self, rng: np.random.Generator, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        config = self.config.modal_dropout
        if config is None or config.p == 0.0:
            return np.zeros(len(self.names), np.bool_)
        while True:
            absent: NDArray[np.bool_] = (rng.random(len(self.names)) < config.p) & self._droppable
            if (allowed & ~absent).any():
                return absent

    def _draw_outages(self, world: int, rng: np.random.Generator) -> None:
        self._outage_start[:, world] = self._outage_end[:, world] = _FOREVER
        config = self.config.outage
        if config is None:
            return
        count = len(self.names)
        failing = (rng.random(count) < config.p) & ~self._absent[:, world]
        onset = rng.integers(0, config.latest_onset_steps + 1, count)
        longest = config.min_steps if config.max_steps is None else config.max_steps
        duration = rng.integers(config.min_steps, longest + 1, count)
        survivors = ~failing & ~self._absent[:, world]
        if failing.any() and not survivors.any():
            failing[rng.choice(np.flatnonzero(failing))] = False  # one sense is always left
        self._outage_start[failing, world] = onset[failing]
        if config.max_steps is not None:
            self._outage_end[failing, world] = (onset + duration)[failing]

    def __call__(self, observation: dict[str, Any], step_count: NDArray[np.int64]) -> None:
        """Change an observation: replaces entries of the dict and never writes to the readings themselves.

        Args:
            observation: Readings of all worlds, `present` and `timestamp_s`.
            step_count: (N,) steps since each world's episode began.
        """
        if self._warp is not None:
            self._warp(observation, step_count)
        if self.config.color_jitter is not None:
            for name in self._jittered:
                observation[name] = jitter(observation[name], self._jitter)
        failed = (step_count >= self._outage_start) & (step_count < self._outage_end)
        for m, name in enumerate(self.names):
            observation["present"][name] = (~self._absent[m] & ~failed[m]).astype(np.int64)
