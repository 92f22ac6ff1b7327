"""The `gym` backend: N environments of Gymnasium, stepped one after the other behind one call."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sensorium.core import Modality
from sensorium.envs.embodied.base import BackendStep, Reading, SensorSpec
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.gymnasium_env.config import GymnasiumOptions
from sensorium.envs.embodied.gymnasium_env.looking import Offer
from sensorium.envs.embodied.gymnasium_env.making import PREFIX
from sensorium.envs.embodied.gymnasium_env.readings import (
    NumbersReader,
    PictureReader,
    TextReader,
    fitted,
    square,
)
from sensorium.envs.embodied.gymnasium_env.world import World

_LARGEST_PICTURE = 240
"""Longest side, in pixels, to which pictures for people are shrunk: a film holds hundreds of them."""

Read = Callable[[Any], Any]


class GymnasiumBackend:
    """N worlds of one Gymnasium environment; implements `Backend`.

    The environment's own step limit is off: the config's counts. One that truncates an episode by itself is
    believed. A world that raises an exception is `failed` until it is reset, and is then made anew.

    Args:
        config: The task, the senses and the way to act, checked against the offer.
        options: How environments are made and judged.
        offer: What the environment offers.
        num_envs: How many worlds.

    Raises:
        ConfigError: An environment cannot be made, or cannot draw the `rgb` that was asked for.
    """

    def __init__(
        self, config: EmbodiedEnvConfig, options: GymnasiumOptions, offer: Offer, num_envs: int
    ) -> None:
        self.num_envs = num_envs
        self.control_hz = offer.control_hz
        self.action = offer.actions.spec
        self._offer = offer
        draws = offer.senses.rendered and "rgb" in config.sensor_names
        self._worlds: list[World] = []
        try:
            for number in range(num_envs):
                self._worlds.append(World(number, offer, options, draws=draws))
            if draws:
                self._worlds[0].check_drawing()
        except BaseException:
            self.close()
            raise
        self._image_size = config.image_size
        self._readers: dict[str, Read | None] = {}
        sensors: dict[str, SensorSpec] = {}
        for name in config.sensor_names:
            sensors[name], self._readers[name] = _sensor(name, offer, config.image_size)
        self.sensors: Mapping[str, SensorSpec] = sensors
        self._rows: dict[str, Any] = {
            name: [""] * num_envs
            if spec.modality is Modality.TEXT
            else np.zeros((num_envs, *(spec.space.shape or ())), spec.space.dtype)
            for name, spec in sensors.items()
        }

    def reset(self, seeds: NDArray[np.uint64], mask: NDArray[np.bool_]) -> None:
        """Start a new episode in each world where `mask` is True; `seeds[i]` alone decides world i.

        Raises:
            EnvError: A world raised `max_failures` times in a row, or observed what its space does not have.
        """
        for number in np.flatnonzero(mask).tolist():
            self._worlds[number].begin(int(seeds[number]))
            self._read(number)

    def step(
        self,
        discrete: NDArray[np.int64] | None,
        continuous: NDArray[np.float32] | None,
        active: NDArray[np.bool_],
    ) -> BackendStep:
        """Advance the active worlds by one control step; see `Backend.step`.

        Raises:
            EnvError: A world raised `max_failures` times in a row, observed what its space does not have, or
                gave a reward that is not finite.
        """
        reward = np.zeros(self.num_envs, np.float32)
        terminated, truncated, success, failed = np.zeros((4, self.num_envs), np.bool_)
        for number in np.flatnonzero(active).tolist():
            option = 0 if discrete is None else int(discrete[number])
            parameters = None if continuous is None else continuous[number]
            outcome = self._worlds[number].act(self._offer.actions(option, parameters))
            if outcome is None:
                failed[number] = True
                continue
            self._read(number)
            reward[number], terminated[number], truncated[number], success[number] = outcome
        return BackendStep(reward, terminated, success, failed, truncated=truncated)

    def _read(self, number: int) -> None:
        world = self._worlds[number]
        for name, read in self._readers.items():
            if read is not None:
                self._rows[name][number] = read(world.observation)
            elif world.frame is not None:
                self._rows[name][number] = square(world.frame, self._image_size)

    def observe(self) -> Mapping[str, Reading]:
        """Read every sensor in every world; fresh arrays. A failed world keeps its last reading."""
        return {name: rows.copy() for name, rows in self._rows.items()}

    def render(self, world: int) -> NDArray[np.uint8]:
        """What the environment draws, (height, width, 3), shrunk to 240 pixels where it is larger.

        One that cannot draw shows the picture that it observes; one without any is a grey square.
        """
        picture = self._worlds[world].picture()
        if picture is None:
            picture = self._observed_picture(world)
        return fitted(picture, _LARGEST_PICTURE)

    def _observed_picture(self, world: int) -> NDArray[np.uint8]:
        for name, spec in self.sensors.items():
            if spec.modality is Modality.IMAGE:
                row: NDArray[np.uint8] = self._rows[name][world]
                return np.repeat(row[..., :1], 3, axis=2) if row.shape[2] == 1 else row[..., :3]
        return np.full((64, 64, 3), 128, np.uint8)

    def describe(self, world: int) -> Mapping[str, Any]:
        """Task, Gymnasium's id, the seed that `reset` was given, success, a lone text as `instruction`."""
        one = self._worlds[world]
        told: dict[str, Any] = {
            "task": one.task,
            "id": self._offer.env_id,
            "seed": one.seed,
            "solved_when": self._offer.success.words,
        }
        part = self._offer.senses.texts.get("instruction")
        if part is not None and one.observation is not None:
            told["instruction"] = TextReader(part, one.task)(one.observation)
        return told

    def close(self) -> None:
        """Close all environments; may be called twice."""
        for world in self._worlds:
            world.close()


def _sensor(name: str, offer: Offer, size: int) -> tuple[SensorSpec, Read | None]:
    """One sensor that was asked for, and how it is read from an observation; None: it is drawn."""
    senses, task = offer.senses, PREFIX + offer.env_id
    labels: tuple[str, ...] = ()
    space: spaces.Space[Any] = spaces.Box(0, 255, (size, size, 3), np.uint8)
    read: Read | None = None
    modality = Modality.IMAGE
    if name == "proprio":
        numbers = NumbersReader(senses.numbers, task)
        modality, space, labels, read = Modality.PROPRIO, numbers.space, numbers.labels, numbers
    elif name in senses.texts:
        text = TextReader(senses.texts[name], task)
        modality, space, read = Modality.TEXT, text.space, text
    elif name in senses.pictures:
        picture = PictureReader(senses.pictures[name], task, size)
        space, read = picture.space, picture
    spec = SensorSpec(
        name=name,
        modality=modality,
        space=space,
        rate_hz=offer.control_hz,
        normalise=modality is Modality.PROPRIO,
        labels=labels,
    )
    return spec, read
