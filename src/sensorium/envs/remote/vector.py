"""Environments of a server as Gymnasium's vector environment, for policies that read arrays."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from sensorium.core import EnvError
from sensorium.envs.remote.connection import Connection
from sensorium.envs.remote.spaces import build, read_batch, restore

Seeds = int | list[int | None] | None


class RemoteVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """N environments of a server, stepped by one message.

    What comes is what the environments give: arrays as they are, texts, ``info``. Autoreset is Gymnasium's
    `NEXT_STEP`: the observation with `terminated` or `truncated` is the last of its episode, and the next
    step ignores that environment's action, begins its next episode and rewards with 0.

    The environments live as long as this object's connection; the server closes them when it breaks, or when
    nothing is heard for its ``sessions.idle_timeout_s``.

    Args:
        url: Of a resources server (`sensorium serve`), ``http://host:port``.
        num_envs: How many.
        settings: Of an embodied task: fields of `EmbodiedEnvConfig` other than the task, laid over what the
            server is configured for: `visual_obs`, `audio_obs`, `text_obs`, `proprio`, `action_space`,
            `image_size`, `waveform`, `sensor_rates_hz`, `max_episode_steps`. Other environments take none.
        api_key: That the server wants; by default ``SENSORIUM_API_KEY`` of the environment.
        timeout_s: Of each answer.

    Raises:
        EnvError: The server cannot be reached, or does not let one in.
        RemoteError: It has no such environments, or not so many.

    Example:
        >>> envs = RemoteVectorEnv("http://127.0.0.1:8001", num_envs=16)  # doctest: +SKIP
        >>> observation, info = envs.reset(seed=0)  # doctest: +SKIP
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        url: str,
        num_envs: int = 1,
        *,
        settings: Mapping[str, Any] | None = None,
        api_key: str | None = None,
        timeout_s: float = 300.0,
    ) -> None:
        self.closed = True  # there is nothing to close when the next line raises
        self.num_envs = num_envs
        self.render_mode = None
        self._connection = Connection(url, api_key=api_key, timeout_s=timeout_s)
        try:
            opened = self._connection.ask(
                {"type": "open", "as": "vector", "num_envs": num_envs, "settings": dict(settings or {})}
            )
            self.session_id = str(opened["session_id"])
            """Under which the server knows it."""
            self.environment = str(opened["environment"])
            """What is played, e.g. ``arena/find``."""
            self.single_observation_space = build(opened["observation_space"])
            self.single_action_space = build(opened["action_space"])
        except KeyError as error:
            self._connection.close()
            raise EnvError(f"{url} answered no {error.args[0]}; is it of another version?") from error
        except BaseException:
            self._connection.close()
            raise
        self.closed = False
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: Seeds = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new episode in every environment.

        Args:
            seed: Environment i gets seed + i, or the i-th of a list. None goes on with the next episodes.
            options: Passed on to the environments; what JSON and arrays can hold.
        """
        seeds = [None if one is None else int(one) for one in seed] if isinstance(seed, list) else seed
        seeds = int(seeds) if isinstance(seeds, np.integer) else seeds
        reply = self._connection.ask({"type": "reset", "seed": seeds, "options": options})
        return self._observed(reply), reply["info"]

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.floating[Any]], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Act once in every environment.

        Args:
            actions: A batch of `action_space`.

        Raises:
            SpaceError: The actions do not fit; nothing has happened then.
            RemoteError: The environments broke.
        """
        batch = read_batch(self.single_action_space, actions, self.num_envs)
        reply = self._connection.ask({"type": "step", "action": batch})
        return (
            self._observed(reply),
            reply["reward"],
            reply["terminated"],
            reply["truncated"],
            reply["info"],
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Hang up; the server closes the environments."""
        self._connection.close()

    def _observed(self, reply: Mapping[str, Any]) -> Any:
        return restore(self.single_observation_space, reply["observation"])
