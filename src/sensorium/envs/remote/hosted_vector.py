"""What a server does with messages about a vector environment."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from sensorium.envs.hosted import MessageError
from sensorium.envs.remote.spaces import describe, read_batch


class HostedVector:
    """A vector environment with next-step autoreset.

    Args:
        envs: The environments; closed by `close`.
    """

    def __init__(self, envs: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        self._envs = envs
        self._begun = False

    def opened(self) -> dict[str, Any]:
        """Number and spaces of the environments."""
        return {
            "num_envs": self._envs.num_envs,
            "observation_space": describe(self._envs.single_observation_space),
            "action_space": describe(self._envs.single_action_space),
            "autoreset_mode": "NextStep",
        }

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Reset or step; see `HostedEnvs.answer`."""
        match message.get("type"):
            case "reset":
                return self._reset(message)
            case "step":
                return self._step(message)
            case other:
                raise MessageError(
                    f"There are no messages of the type {str(other)[:40]!r}: reset, step, close."
                )

    def close(self) -> None:
        """Close the environments."""
        self._envs.close()

    def _reset(self, message: Mapping[str, Any]) -> dict[str, Any]:
        options = message.get("options")
        if options is not None and not isinstance(options, Mapping):
            raise MessageError("The options of a reset are a dict.")
        seed: Any = read_seeds(message.get("seed"), self._envs.num_envs)
        observation, info = self._envs.reset(seed=seed, options=None if options is None else dict(options))
        self._begun = True
        return {"type": "reset", "observation": observation, "info": sendable(info)}

    def _step(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if not self._begun:
            raise MessageError("No episode was begun; a reset comes before the first step.")
        actions = read_batch(self._envs.single_action_space, message.get("action"), self._envs.num_envs)
        observation, reward, terminated, truncated, info = self._envs.step(actions)
        return {
            "type": "step",
            "observation": observation,
            "reward": np.asarray(reward),
            "terminated": np.asarray(terminated),
            "truncated": np.asarray(truncated),
            "info": sendable(info),
        }


def read_seeds(value: Any, num_envs: int) -> int | list[int | None] | None:
    """Seeds of a reset.

    Raises:
        MessageError: They are none.
    """
    given = value if isinstance(value, list) else [value]
    if not all(one is None or (type(one) is int and 0 <= one < 2**63) for one in given):
        raise MessageError("A seed is a whole number from 0 to 2**63 - 1, or none.")
    if isinstance(value, list) and len(value) != num_envs:
        raise MessageError(f"There are {len(value)} seeds for {num_envs} environments.")
    seeds: int | list[int | None] | None = value
    return seeds


def sendable(value: Any) -> Any:
    """What of an ``info`` can be sent: arrays, numbers, texts, lists and dicts; other entries stay behind."""
    if isinstance(value, Mapping):
        kept = {str(key): sendable(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one is not None or value.get(key) is None}
    if isinstance(value, np.ndarray):
        return [sendable(one) for one in value.tolist()] if value.dtype.kind == "O" else _array(value)
    if isinstance(value, list | tuple):
        return [sendable(one) for one in value]
    return value if isinstance(value, str | int | float | bool | np.number | np.bool_) else None


def _array(array: NDArray[Any]) -> NDArray[Any] | None:
    return array if array.dtype.kind in "biufU" and array.dtype.itemsize * 8 != 128 else None
