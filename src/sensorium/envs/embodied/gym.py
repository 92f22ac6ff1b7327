"""`MultiModalGym`: one world as an ordinary Gymnasium environment."""

from collections.abc import Mapping, Sequence
from typing import Any, overload

import gymnasium
import numpy as np
from numpy.typing import NDArray

from sensorium.core import EnvError, parse_config
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.registry import find_task, list_tasks
from sensorium.envs.embodied.vector import MultiModalVectorEnv
from sensorium.envs.embodied.worlds import Observation, Worlds

DEFAULT_TASK = "arena/find"


class MultiModalGym(gymnasium.Env[Observation, Any]):
    """An embodied task perceived through the senses of your choice.

    Example:
        >>> env = MultiModalGym("arena/find", visual_obs=["rgb"], text_obs=["instruction"])
        >>> observation, info = env.reset(seed=0)
        >>> observation["rgb"].shape, int(observation["present"]["rgb"])
        ((48, 48, 3), 1)
        >>> env.close()

    The observation is a dict: each sensor by name, `present` (1 where a sensor delivers; the value of an
    absent sensor must not be read) and `timestamp_s` (when the reading was taken, seconds since the
    episode began). `info["status"]` tells how the episode stands; see `EpisodeStatus`.

    Args:
        task: ``backend/task``; `sensorium envs` lists them with their sensors.
        visual_obs: `rgb`, `depth`.
        audio_obs: `speech`, `env_sound`.
        text_obs: `instruction`, `notifications`.
        proprio: Whether the agent feels its own body.
        action_space: `discrete`, `continuous` or `hybrid`.
        max_episode_steps: Steps after which an episode is truncated; the task's own limit by default.
        num_envs: When given, a `MultiModalVectorEnv` with that many worlds is returned instead.
        render_mode: `"rgb_array"` or None.
        settings: Other fields of `EmbodiedEnvConfig`: `sensor_rates_hz`, `image_size`, `waveform`,
            `backend_options`.

    Raises:
        ConfigError: The task is unknown or cannot give a sensor or action space; lists those it can.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    @overload
    def __new__(cls, *args: Any, num_envs: None = None, **kwargs: Any) -> "MultiModalGym": ...
    @overload
    def __new__(cls, *args: Any, num_envs: int, **kwargs: Any) -> MultiModalVectorEnv: ...  # type: ignore[misc]
    def __new__(cls, *args: Any, num_envs: int | None = None, **kwargs: Any) -> Any:
        """Return one world, or with `num_envs` the vector environment."""
        if num_envs is None:
            return super().__new__(cls)
        render_mode = kwargs.pop("render_mode", None)
        return MultiModalVectorEnv(_config(*args, **kwargs), num_envs, render_mode=render_mode)

    def __init__(
        self,
        task: str = DEFAULT_TASK,
        *,
        num_envs: None = None,
        render_mode: str | None = None,
        **senses: Any,
    ) -> None:
        self.config = _config(task, **senses)
        self.render_mode = render_mode
        self.worlds = Worlds(self.config, 1)
        self.observation_space = self.worlds.observation_space
        self.action_space = self.worlds.action_space
        self._seeded = False
        self._running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Restarts the sequence of episodes; None continues it.
            options: Unused.
        """
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            base = self.np_random.integers(2**63) if seed is None else seed
            self.worlds.seed(np.array([base], np.uint64))
            self._seeded = True
        one = np.ones(1, np.bool_)
        self.worlds.reset(one)
        self._running = True
        return self._perceive(one), self._info("running")

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Act for one control step.

        Raises:
            EnvError: The episode has ended or none was started; call `reset`.
        """
        if not self._running:
            raise EnvError("step() was called without a running episode. Call reset() first.")
        outcome = self.worlds.step(_batch_of_one(action), np.ones(1, np.bool_))
        terminated, truncated = bool(outcome.terminated[0]), bool(outcome.truncated[0])
        self._running = not (terminated or truncated)
        observation = self._perceive(np.zeros(1, np.bool_))
        info = self._info(str(outcome.status[0])) | {"violated": bool(outcome.violated[0])}
        return observation, float(outcome.reward[0]), terminated, truncated, info

    def _perceive(self, started: NDArray[np.bool_]) -> Observation:
        return _first_row(self.worlds.observe(started))

    def _info(self, status: str) -> dict[str, Any]:
        return {"status": status, "episode_seed": int(self.worlds.episode_seeds[0])}

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """Picture of the world for people, (H, W, 3) RGB."""
        return None if self.render_mode is None else self.worlds.backend.render(0)

    def close(self) -> None:
        """Free the backend; may be called twice."""
        self.worlds.close()


def _config(
    task: str = DEFAULT_TASK, *, visual_obs: Sequence[str] = ("rgb",), **settings: Any
) -> EmbodiedEnvConfig:
    limit = find_task(task, settings.get("backend_options")).default_max_steps
    settings.setdefault("max_episode_steps", limit)
    return parse_config(EmbodiedEnvConfig, {"task": task, "visual_obs": tuple(visual_obs)} | settings)


def _batch_of_one(action: Any) -> Any:
    if isinstance(action, Mapping):
        return {key: _batch_of_one(value) for key, value in action.items()}
    return np.asarray(action)[None]


def _first_row(observation: Observation) -> Observation:
    """World 0's observation. A time is an array of shape (), as its Box demands, not a plain float."""
    row = {name: reading[0] for name, reading in observation.items() if not isinstance(reading, dict)}
    row["present"] = {name: present[0] for name, present in observation["present"].items()}
    row["timestamp_s"] = {name: time_s[0, ...] for name, time_s in observation["timestamp_s"].items()}
    return row


def register_envs() -> None:
    """Register every task as a Gymnasium id, e.g. ``sensorium/arena-find-v0``; harmless when repeated."""
    for task in list_tasks().values():
        name = f"sensorium/{task.name.replace('/', '-')}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="sensorium.envs.embodied.gym:MultiModalGym",
                vector_entry_point="sensorium.envs.embodied.gym:_vector_entry_point",
                kwargs={"task": task.name},
            )


def _vector_entry_point(
    num_envs: int = 1, render_mode: str | None = None, **settings: Any
) -> MultiModalVectorEnv:
    return MultiModalVectorEnv(_config(**settings), num_envs, render_mode=render_mode)
