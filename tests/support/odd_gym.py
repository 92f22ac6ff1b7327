"""A Gymnasium environment with any spaces, that ends, breaks and rewards as its tests ask."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

ID = "sensorium-tests/Odd-v0"

BLACK = spaces.Box(0, 255, (20, 30, 3), np.uint8)


class Odd(gymnasium.Env[Any, Any]):
    """Observes samples of its space, drawn from the episode's seed, or what `observed` returns.

    Args:
        observation_space: Of observations.
        action_space: Of actions; those that came are kept in `actions`.
        observed: Step -> observation.
        ends: Step -> (reward, terminated, truncated, info).
        breaks: Called with ``"reset"`` or the step before anything happens; may raise.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any] | None = None,
        action_space: spaces.Space[Any] | None = None,
        observed: Callable[[int], Any] | None = None,
        ends: Callable[[int], tuple[Any, bool, bool, dict[str, Any]]] = lambda n: (1.0, False, False, {}),
        breaks: Callable[[Any], None] = lambda when: None,
    ) -> None:
        self.observation_space = observation_space or spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = action_space or spaces.Discrete(2)
        self.actions: list[Any] = []
        self.num_steps = 0
        self._observed = observed or (lambda n: self.observation_space.sample())
        self._ends = ends
        self._breaks = breaks

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        self._breaks("reset")
        self.observation_space.seed(seed)
        self.num_steps = 0
        return self._observed(0), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.num_steps += 1
        self._breaks(self.num_steps)
        self.actions.append(action)
        return self._observed(self.num_steps), *self._ends(self.num_steps)


class DrawnOdd(Odd):
    """The same, drawn as a left half that is red and a right one that is blue."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.render_mode = render_mode

    def render(self) -> Any:
        picture = np.zeros((40, 60, 3), np.uint8)
        picture[:, :30, 0], picture[:, 30:, 2] = 255, 255
        return picture


class Doubled(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Vectors twice as large."""

    def __init__(self, env: gymnasium.Env[Any, Any], factor: float = 2.0) -> None:
        super().__init__(env)
        self._factor = factor

    def observation(self, observation: Any) -> Any:
        return (self._factor * observation).astype(np.float32)


def register_odd() -> None:
    """Register both, where they are not yet."""
    for name, entry in ((ID, Odd), (ID.replace("Odd", "DrawnOdd"), DrawnOdd)):
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=entry)
