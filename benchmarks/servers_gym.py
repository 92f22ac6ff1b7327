"""The environment of `servers` for policies that read arrays: OpenEnv's on our side.

``servers_gym:Pictures-v0`` is its id with Gymnasium.
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from servers_work import picture

Picture = NDArray[np.uint8]


class Pictures(gymnasium.Env[Picture, Any]):
    """Answers every step with the next picture.

    Args:
        size: Pixels of each side.
    """

    def __init__(self, size: int = 64, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0, 255, (size, size, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(2**31)
        self._size, self._steps = size, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Picture, dict[str, Any]]:
        """Begin with the first picture."""
        super().reset(seed=seed)
        self._steps = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Picture, float, bool, bool, dict[str, Any]]:
        """Go on to the next picture."""
        self._steps += 1
        return self._seen(), 0.0, False, False, {}

    def _seen(self) -> Picture:
        pixels = np.frombuffer(picture(self._steps % 256, self._size), np.uint8)
        return pixels.reshape(self._size, self._size, 3)


gymnasium.register("Pictures-v0", entry_point=Pictures, disable_env_checker=True)
