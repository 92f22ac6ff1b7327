"""The worlds of an embodied task on a server, for whoever trains on them: what the server does.

Episodes, their seeds and limits, the rates of sensors and augmentation are the client's, as in its own
process.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ActionKind
from sensorium.envs.embodied.base import ActionSpec, Backend, SensorSpec
from sensorium.envs.hosted import MessageError
from sensorium.envs.remote.spaces import describe

Message = Mapping[str, Any]


class HostedWorlds:
    """A backend; see `HostedEnvs`.

    Args:
        backend: The worlds; closed by `close`.
        options: Settings of the engine, which the client compares with its own.
    """

    def __init__(self, backend: Backend, options: Mapping[str, Any]) -> None:
        self._backend, self._options = backend, dict(options)
        self._begun = np.zeros(backend.num_envs, np.bool_)

    def opened(self) -> dict[str, Any]:
        """Sensors and actions of the worlds."""
        return {
            "num_envs": self._backend.num_envs,
            "control_hz": float(self._backend.control_hz),
            "sensors": [told_sensor(spec) for spec in self._backend.sensors.values()],
            "action": told_action(self._backend.action),
            "backend_options": self._options,
        }

    def answer(self, message: Message) -> dict[str, Any]:
        """Reset, step and read in one, or show a world; see `HostedEnvs.answer`."""
        match message.get("type"):
            case "advance":
                return self._advance(message)
            case "render":
                return {"type": "render", "picture": self._backend.render(self._world(message))}
            case "describe":
                return {"type": "describe", "truth": dict(self._backend.describe(self._world(message)))}
            case other:
                known = "advance, render, describe, close"
                raise MessageError(f"There are no messages of the type {str(other)[:40]!r}: {known}.")

    def close(self) -> None:
        """Close the worlds."""
        self._backend.close()

    def _advance(self, message: Message) -> dict[str, Any]:
        reset, step = message.get("reset"), message.get("step")
        seeds = mask = None
        begun = self._begun
        if reset is not None:
            seeds, mask = self._row(reset, "seeds", np.uint64), self._row(reset, "mask", np.bool_)
            begun = begun | mask
        acted = self._acted(step, begun) if step is not None else None
        if seeds is not None and mask is not None:
            self._backend.reset(seeds, mask)
            self._begun = begun
        outcome = None
        if acted is not None:
            outcome = self._backend.step(*acted)._asdict()
        return {"type": "advance", "outcome": outcome, "readings": dict(self._backend.observe())}

    def _acted(
        self, step: Any, begun: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.float32] | None, NDArray[np.bool_]]:
        action, kind = self._backend.action, self._backend.action.kind
        active = self._row(step, "active", np.bool_)
        if not begun[active].all():
            raise MessageError("A world acts before its first reset.")
        discrete = continuous = None
        if kind is not ActionKind.CONTINUOUS:
            discrete = self._row(step, "discrete", np.int64)
            if ((discrete < 0) | (discrete >= action.num_options)).any():
                raise MessageError(f"A discrete action is out of range: there are {action.num_options}.")
        if kind is not ActionKind.DISCRETE:
            continuous = self._row(step, "continuous", np.float32, (action.continuous_dim,))
            if not (np.abs(continuous) <= 1.0).all():
                raise MessageError("A continuous action is not from -1 to 1.")
        return discrete, continuous, active

    def _row(self, message: Any, name: str, dtype: Any, more: tuple[int, ...] = ()) -> NDArray[Any]:
        """An array with a row for every world.

        Raises:
            MessageError: It is another one.
        """
        value = message.get(name) if isinstance(message, Mapping) else None
        shape, wanted = (self._backend.num_envs, *more), np.dtype(dtype)
        if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != wanted:
            raise MessageError(f"{name} is an array of {wanted.name}, shape {list(shape)}.")
        return value

    def _world(self, message: Message) -> int:
        number = message.get("world")
        if type(number) is not int or not 0 <= number < self._backend.num_envs:
            raise MessageError(f"There is no world {str(number)[:40]}; there are {self._backend.num_envs}.")
        return number


def told_sensor(spec: SensorSpec) -> dict[str, Any]:
    """A sensor as a value that can be sent; `backend.read_sensor` reads it."""
    return {
        "name": spec.name,
        "modality": str(spec.modality),
        "space": describe(spec.space),
        "rate_hz": float(spec.rate_hz),
        "unit": spec.unit,
        "per_episode": spec.per_episode,
        "normalise": spec.normalise,
        "labels": list(spec.labels),
    }


def told_action(spec: ActionSpec) -> dict[str, Any]:
    """What actions are made of, as a value that can be sent."""
    return {
        "kind": str(spec.kind),
        "option_names": list(spec.option_names),
        "continuous_names": list(spec.continuous_names),
        "parameter_mask": spec.parameter_mask,
    }
