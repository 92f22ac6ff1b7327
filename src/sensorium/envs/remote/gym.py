"""One environment of a server as an ordinary Gymnasium environment."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from sensorium.core import EnvError
from sensorium.envs.remote.spaces import batch_of_one, first
from sensorium.envs.remote.vector import RemoteVectorEnv


class RemoteGym(gymnasium.Env[Any, Any]):
    """One environment of a server.

    Args:
        url: Of a resources server, ``http://host:port``.
        settings: See `RemoteVectorEnv`.
        api_key: That the server wants; by default ``SENSORIUM_API_KEY`` of the environment.
        timeout_s: Of each answer.

    Raises:
        EnvError: The server cannot be reached, or does not let one in.
        RemoteError: It has no such environment.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        url: str,
        *,
        settings: Mapping[str, Any] | None = None,
        api_key: str | None = None,
        timeout_s: float = 300.0,
    ) -> None:
        self._envs = RemoteVectorEnv(url, 1, settings=settings, api_key=api_key, timeout_s=timeout_s)
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space
        self._running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; without a seed the next one."""
        super().reset(seed=seed)
        observation, info = self._envs.reset(seed=seed, options=options)
        self._running = True
        return first(self.observation_space, observation), _first_info(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act once.

        Raises:
            EnvError: No episode is under way; call `reset`.
            SpaceError: The action does not fit; nothing has happened then.
        """
        if not self._running:
            raise EnvError("step() was called without a running episode. Call reset() first.")
        observation, reward, terminated, truncated, info = self._envs.step(
            batch_of_one(self.action_space, action)
        )
        self._running = not (terminated[0] or truncated[0])
        seen = first(self.observation_space, observation)
        return seen, float(reward[0]), bool(terminated[0]), bool(truncated[0]), _first_info(info)

    def close(self) -> None:
        """Hang up; the server closes the environment."""
        self._running = False
        self._envs.close()


def _first_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """The info of one environment, of that of a vector environment with masks ``_key``."""
    row: dict[str, Any] = {}
    for key, value in info.items():
        mask = info.get(f"_{key}")
        if mask is None:  # a mask itself, or what concerns all of them
            if not (key.startswith("_") and key[1:] in info):
                row[key] = _first_info(value) if isinstance(value, Mapping) else value
        elif mask[0]:
            row[key] = _first_info(value) if isinstance(value, Mapping) else _scalar(value[0])
    return row


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
