"""Many worlds as one Gymnasium vector environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from sensorium.core import ConfigError
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.worlds import Observation, Worlds


class MultiModalVectorEnv(gymnasium.vector.VectorEnv[Observation, Any, Any]):
    """N worlds that are stepped in one call, with Gymnasium's next-step autoreset.

    The observation that comes with `terminated` or `truncated` is the last one of its episode. The next
    `step` ignores that world's action, starts its next episode and returns reward 0.

    `info` holds, for every world: `status` (values of `EpisodeStatus`), `episode_seed`,
    `episode_return`, `episode_length` and `episode_violations` (so far), `violated` (whether the step was
    unsafe, as the task defines it) and `stage` (of a curriculum; 0 without one).

    Args:
        config: The task, the senses and the way to act.
        num_envs: How many worlds.
        render_mode: `"rgb_array"` or None.

    Raises:
        ConfigError: The task cannot give what was asked for.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, config: EmbodiedEnvConfig, num_envs: int, *, render_mode: str | None = None) -> None:
        self.config = config
        self.closed = True  # there is nothing to free when the next line raises
        self.worlds = Worlds(config, num_envs)
        self.closed = False
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = self.worlds.observation_space
        self.single_action_space = self.worlds.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seeded = False
        self._ended = np.zeros(num_envs, np.bool_)
        self._returns = np.zeros(num_envs, np.float64)
        self._violated = np.zeros(num_envs, np.bool_)
        self._violations = np.zeros(num_envs, np.int64)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a new episode in every world.

        Args:
            seed: World i gets seed + i, or the i-th of a list. None continues with the next episodes.
            options: Unused.
        """
        if seed is not None or not self._seeded:
            self.worlds.seed(self._base_seeds(seed))
            self._seeded = True
        everyone = np.ones(self.num_envs, np.bool_)
        self.worlds.reset(everyone)
        self._ended[:] = False
        self._returns[:] = 0.0
        self._violated = np.zeros(self.num_envs, np.bool_)
        self._violations[:] = 0
        return self._perceive(everyone), self._info(np.full(self.num_envs, "running", "<U9"))

    def _base_seeds(self, seed: int | list[int | None] | None) -> NDArray[np.uint64]:
        fresh = np.random.SeedSequence().generate_state(self.num_envs, np.uint64) >> np.uint64(1)
        if seed is None:
            return fresh
        if isinstance(seed, int | np.integer):
            return np.arange(self.num_envs, dtype=np.uint64) + np.uint64(seed)
        if len(seed) != self.num_envs:
            raise ConfigError(f"reset(seed=[...]) got {len(seed)} seeds for {self.num_envs} worlds.")
        given = [fresh[i] if s is None else np.uint64(s) for i, s in enumerate(seed)]
        return np.array(given, np.uint64)

    def step(
        self, actions: Any
    ) -> tuple[Observation, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Advance every world by one control step; worlds that had ended start their next episode."""
        starting = self._ended
        outcome = self.worlds.step(actions, ~starting, starting)
        self._returns[starting] = 0.0
        self._returns += outcome.reward
        self._violated = outcome.violated
        self._violations[starting] = 0
        self._violations += outcome.violated
        self._ended = outcome.terminated | outcome.truncated
        observation = self._perceive(starting)
        return observation, outcome.reward, outcome.terminated, outcome.truncated, self._info(outcome.status)

    def _perceive(self, started: NDArray[np.bool_]) -> Observation:
        observation = self.worlds.observe(started)
        for name, reading in observation.items():
            if isinstance(reading, list):  # Gymnasium batches texts as a tuple
                observation[name] = tuple(reading)
        return observation

    def _info(self, status: NDArray[Any]) -> dict[str, Any]:
        info: dict[str, Any] = {
            "status": status,
            "episode_seed": self.worlds.episode_seeds.copy(),
            "episode_return": self._returns.copy(),
            "episode_length": self.worlds.step_count.copy(),
            "stage": self.worlds.augmenter.stage.copy(),
            "violated": self._violated.copy(),
            "episode_violations": self._violations.copy(),
        }
        return info | {f"_{key}": np.ones(self.num_envs, np.bool_) for key in info}

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:  # type: ignore[override]
        """Picture of every world for people, (H, W, 3) RGB each."""
        if self.render_mode is None:
            return None
        return tuple(self.worlds.backend.render(world) for world in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Free the backend."""
        self.worlds.close()
