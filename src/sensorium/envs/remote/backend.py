"""A backend whose worlds are on a server: training there and here sees the same episodes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ActionKind, ConfigError, EnvError, Modality
from sensorium.envs.embodied.base import ActionSpec, BackendStep, Reading, SensorSpec
from sensorium.envs.embodied.config import CLIENT_SETTINGS, EmbodiedEnvConfig
from sensorium.envs.remote.connection import Connection
from sensorium.envs.remote.spaces import build


class RemoteBackend:
    """See `Backend`; a reset, a step and all readings are one message.

    Args:
        config: Its `server` has the worlds.
        num_envs: How many.

    Raises:
        ConfigError: The server has another task, or simulates it with other `backend_options`.
        EnvError: It cannot be reached, or does not let one in.
    """

    def __init__(self, config: EmbodiedEnvConfig, num_envs: int) -> None:
        assert config.server is not None, "chosen by it"
        self.num_envs = num_envs
        self._connection = Connection(config.server)
        try:
            settings = config.model_dump(mode="json", include=set(CLIENT_SETTINGS))
            opened = self._connection.ask(
                {"type": "open", "as": "worlds", "num_envs": num_envs, "settings": settings}
            )
            _check(config, opened)
            self.control_hz = float(opened["control_hz"])
            specs = [_read_sensor(told) for told in opened["sensors"]]
            self.sensors: Mapping[str, SensorSpec] = {spec.name: spec for spec in specs}
            self.action = _read_action(opened["action"])
        except (KeyError, TypeError, ValueError) as error:
            self._connection.close()
            if isinstance(error, ConfigError):
                raise
            raise EnvError(
                f"{config.server} answered what is no task: {error!r}. Is it of another version?"
            ) from error
        except BaseException:
            self._connection.close()
            raise
        self._reset: dict[str, Any] | None = None
        self._readings: dict[str, Reading] | None = None

    def reset(self, seeds: NDArray[np.uint64], mask: NDArray[np.bool_]) -> None:
        """Start episodes; sent with the next step or reading."""
        self._flush()
        self._reset = {"seeds": seeds.astype(np.uint64), "mask": mask.copy()}
        self._readings = None

    def step(
        self,
        discrete: NDArray[np.int64] | None,
        continuous: NDArray[np.float32] | None,
        active: NDArray[np.bool_],
    ) -> BackendStep:
        """Advance the active worlds by one control step."""
        told = {"discrete": discrete, "continuous": continuous, "active": active}
        outcome = self._advance(told)
        assert outcome is not None, "there was a step"
        return BackendStep(**outcome)

    def observe(self) -> Mapping[str, Reading]:
        """Readings of all sensors; those of the last step came with it."""
        if self._readings is None:
            self._advance(None)
        readings, self._readings = self._readings, None
        assert readings is not None, "they came"
        return readings

    def render(self, world: int) -> NDArray[np.uint8]:
        """Picture of one world for people, (H, W, 3) RGB."""
        self._flush()
        picture: NDArray[np.uint8] = self._connection.ask({"type": "render", "world": world})["picture"]
        return picture

    def describe(self, world: int) -> Mapping[str, Any]:
        """Ground truth of one world."""
        self._flush()
        truth: Mapping[str, Any] = self._connection.ask({"type": "describe", "world": world})["truth"]
        return truth

    def close(self) -> None:
        """Hang up; the server closes the worlds."""
        self._connection.close()

    def _flush(self) -> None:
        if self._reset is not None:
            self._advance(None)

    def _advance(self, step: dict[str, Any] | None) -> dict[str, Any] | None:
        reply = self._connection.ask({"type": "advance", "reset": self._reset, "step": step})
        self._reset = None
        self._readings = reply["readings"]
        outcome: dict[str, Any] | None = reply["outcome"]
        return outcome


def _check(config: EmbodiedEnvConfig, opened: Mapping[str, Any]) -> None:
    if opened["environment"] != config.task:
        raise ConfigError(f"{config.server} serves {opened['environment']}; the task here is {config.task}.")
    theirs, ours = dict(opened["backend_options"]), config.model_dump(mode="json")["backend_options"]
    if theirs != ours:
        raise ConfigError(
            f"{config.server} simulates {config.task} with backend_options {theirs}; here they are {ours}. "
            "Give both the same: they are of the server's file, under config."
        )


def _read_sensor(told: Mapping[str, Any]) -> SensorSpec:
    named = {"modality": Modality(told["modality"]), "space": build(told["space"])}
    return SensorSpec(**{**told, **named, "labels": tuple(told["labels"])})


def _read_action(told: Mapping[str, Any]) -> ActionSpec:
    return ActionSpec(
        kind=ActionKind(told["kind"]),
        option_names=tuple(told["option_names"]),
        continuous_names=tuple(told["continuous_names"]),
        parameter_mask=told["parameter_mask"],
    )
