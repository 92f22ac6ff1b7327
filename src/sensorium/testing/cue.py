"""A tiny backend whose best answer is known: do what the cue says.

Every episode has a cue in 0 .. num_cues - 1, which each sensor shows in its own way. The action that
matches it earns 1 per step, so the best return of an episode is its length, and guessing earns 1 / num_cues
of it. Use it to test policies, trainers and evaluations in seconds:

    from sensorium.testing.cue import use_cue_backend
    use_cue_backend()
    env = MultiModalGym("cue/match", visual_obs=["rgb"], num_envs=64)
"""

import string
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pydantic import Field

from sensorium.core import ActionKind, Config, Modality, parse_config
from sensorium.envs.embodied.base import ActionSpec, BackendStep, Reading, SensorSpec
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.registry import BACKENDS, TaskSpec

_LETTERS = string.ascii_lowercase + " "
CUE_NAMES = ("red", "green", "blue", "yellow", "purple", "grey")


class CueOptions(Config):
    """Settings of the cue backend."""

    num_cues: int = Field(default=3, ge=2, le=len(CUE_NAMES))
    """Number of cues and of discrete options."""
    length: int = Field(default=4, ge=1)
    """Steps of an episode."""
    first_step_only: bool = False
    """Show the cue at the first step only, and reward the last one only: needs memory."""
    break_at: int = Field(default=-1)
    """World 0 reports a failure at this step of each episode; -1: never."""


TASKS = {
    "cue/match": TaskSpec(
        name="cue/match",
        summary="Choose the action that the cue names; every sensor shows it.",
        visual_obs=("rgb", "depth"),
        audio_obs=("speech", "env_sound"),
        text_obs=("instruction",),
        default_max_steps=100,
    )
}


def use_cue_backend() -> None:
    """Make ``cue/match`` known to `MultiModalGym`; harmless when repeated."""
    BACKENDS["cue"] = __name__


def build(config: EmbodiedEnvConfig, num_envs: int) -> "CueBackend":
    """Build the backend."""
    return CueBackend(config, num_envs)


class CueBackend:
    """N worlds that show a cue and reward the matching action.

    A continuous action matches when its only parameter is within 0.25 of -1, ..., 1 (evenly spaced cues);
    a hybrid one needs the option and the parameter, except that option 0 uses no parameter.
    """

    control_hz = 10.0

    def __init__(self, config: EmbodiedEnvConfig, num_envs: int) -> None:
        self.num_envs = num_envs
        self.options = parse_config(CueOptions, config.backend_options)
        size = config.image_size
        every: dict[str, SensorSpec] = {
            spec.name: spec
            for spec in (
                _spec("rgb", Modality.IMAGE, spaces.Box(0, 255, (size, size, 3), np.uint8)),
                _spec("depth", Modality.DEPTH, _floats((size, size, 1)), normalise=True),
                _spec("speech", Modality.AUDIO, _floats((12, 8)), per_episode=True, normalise=True),
                _spec("env_sound", Modality.AUDIO, _floats((2, 4, 8)), normalise=True),
                _spec("instruction", Modality.TEXT, spaces.Text(32, charset=_LETTERS), per_episode=True),
                _spec("proprio", Modality.PROPRIO, _floats((2,)), normalise=True),
            )
        }
        self.sensors = {name: every[name] for name in config.sensor_names}
        kind = config.action_space
        mask = np.ones((self.options.num_cues, 1), np.bool_)
        mask[0] = False
        self.action = ActionSpec(
            kind=kind,
            option_names=() if kind is ActionKind.CONTINUOUS else CUE_NAMES[: self.options.num_cues],
            continuous_names=() if kind is ActionKind.DISCRETE else ("level",),
            parameter_mask=mask if kind is ActionKind.HYBRID else None,
        )
        self.cue = np.zeros(num_envs, np.int64)
        self.step_count = np.zeros(num_envs, np.int64)
        self._flawless = np.ones(num_envs, np.bool_)
        self._noise = np.zeros(num_envs)

    def reset(self, seeds: NDArray[np.uint64], mask: NDArray[np.bool_]) -> None:
        """Draw a new cue where `mask` is True."""
        for world in np.flatnonzero(mask):
            rng = np.random.default_rng(int(seeds[world]))
            self.cue[world] = rng.integers(self.options.num_cues)
            self._noise[world] = rng.random()
        self.step_count[mask] = 0
        self._flawless[mask] = True

    def step(
        self,
        discrete: NDArray[np.int64] | None,
        continuous: NDArray[np.float32] | None,
        active: NDArray[np.bool_],
    ) -> BackendStep:
        """Compare the action with the cue."""
        correct = np.ones(self.num_envs, np.bool_)
        if discrete is not None:
            correct &= discrete == self.cue
        if continuous is not None:
            level = 2.0 * self.cue / (self.options.num_cues - 1) - 1.0
            near = np.abs(continuous[:, 0] - level) < 0.25
            correct &= near if discrete is None else near | (self.cue == 0)
        self.step_count[active] += 1
        last = self.step_count >= self.options.length
        counted = active & (last if self.options.first_step_only else True)
        self._flawless &= correct | ~counted
        failed = np.zeros(self.num_envs, np.bool_)
        failed[0] = active[0] and self.step_count[0] == self.options.break_at
        reward = (correct & counted & ~failed).astype(np.float32)
        return BackendStep(reward, active & last & ~failed, active & last & self._flawless & ~failed, failed)

    def observe(self) -> Mapping[str, Reading]:
        """Show the cue in every sensor."""
        shown = np.where(self.options.first_step_only & (self.step_count > 0), -1, self.cue)
        readings: dict[str, Reading] = {}
        for name, spec in self.sensors.items():
            if name == "instruction":
                readings[name] = [f"choose {CUE_NAMES[cue]}" for cue in self.cue]
                continue
            shape = spec.space.shape or ()
            cue = self.cue if spec.per_episode else shown
            value = np.zeros((self.num_envs, *shape), np.float32)
            value[..., 0] += self._noise.reshape(-1, *[1] * (len(shape) - 1))
            for k in range(self.options.num_cues):
                value[cue == k, k % shape[0]] += 1.0 + k
            readings[name] = (value * 40).astype(np.uint8) if name == "rgb" else value
        return readings

    def render(self, world: int) -> NDArray[np.uint8]:
        """A square whose brightness is the cue."""
        return np.full((32, 32, 3), 40 * int(self.cue[world]), np.uint8)

    def describe(self, world: int) -> Mapping[str, Any]:
        """The cue."""
        return {"cue": int(self.cue[world])}

    def close(self) -> None:
        """Nothing to free."""


def _floats(shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape, np.float32)


def _spec(
    name: str, modality: Modality, space: Any, *, per_episode: bool = False, normalise: bool = False
) -> SensorSpec:
    return SensorSpec(
        name=name,
        modality=modality,
        space=space,
        rate_hz=10.0,
        per_episode=per_episode,
        normalise=normalise,
    )
