"""One MiniGrid environment: made by its id, reset quietly, stepped without its own observations."""

import contextlib
import io
import os
import warnings
from typing import Any, NamedTuple

from sensorium.core import ConfigError, EnvError, boundary, require
from sensorium.envs.grid.config import GridConfig

_PREFIXES = ("MiniGrid-", "BabyAI-")
ACTION_NUMBERS = {"left": 0, "right": 1, "forward": 2, "pickup": 3, "drop": 4, "toggle": 5, "done": 6}
"""Name of an action -> MiniGrid's number."""


class Outcome(NamedTuple):
    """What came of an action."""

    is_solved: bool
    is_over: bool
    """Solved, or lost for good."""
    is_cut: bool
    """The limit of steps was reached."""


class GridWorld:
    """A world of MiniGrid.

    Args:
        config: Names it.

    Raises:
        ConfigError: There is no such environment, or it cannot be made with these options.
        MissingDependencyError: minigrid is not installed.
    """

    def __init__(self, config: GridConfig) -> None:
        self._task = config.task
        self.grid_env: Any = _made(config)
        """MiniGrid's own object, without wrappers."""
        self.grid_env.agent_view_size = config.view_size
        if config.max_steps is not None:
            self.grid_env.max_steps = config.max_steps

    @property
    def mission(self) -> str:
        """What is to be done, by MiniGrid's words; known after `reset`."""
        return str(self.grid_env.mission)

    def reset(self, seed: int) -> None:
        """Begin an episode; the seed decides everything.

        Raises:
            EnvError: MiniGrid cannot build the world.
        """
        with (
            boundary(EnvError, f"{self._task} cannot be built"),
            contextlib.redirect_stdout(io.StringIO()),  # BabyAI prints which drafts of a world it rejects
        ):
            self.grid_env.reset(seed=seed)

    def step(self, action: str) -> Outcome:
        """Act once.

        Args:
            action: A name of `ACTION_NUMBERS`.
        """
        _, reward, terminated, truncated, _ = self.grid_env.step(ACTION_NUMBERS[action])
        is_solved = bool(terminated) and float(reward) > 0.0
        return Outcome(is_solved, bool(terminated), bool(truncated) and not terminated)

    def close(self) -> None:
        """Give everything back."""
        self.grid_env.close()


def _made(config: GridConfig) -> Any:
    if not config.task.startswith(_PREFIXES):
        raise ConfigError(
            f"grid has no task {config.task!r}. Expected the id of an environment of MiniGrid or BabyAI, "
            "e.g. MiniGrid-DoorKey-8x8-v0; the environment `embodied` plays any Gymnasium environment."
        )
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    require("minigrid", extra="grid", purpose="the environment grid")
    import gymnasium

    options = config.env_options
    with (
        boundary(ConfigError, f"Cannot make the grid world {config.task!r} with {options}"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # of versions that are out of date
        return gymnasium.make(config.task, disable_env_checker=True, **options).unwrapped
