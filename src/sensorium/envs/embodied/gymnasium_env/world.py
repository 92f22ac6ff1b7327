"""One environment that may break: its episodes, and what happens when it raises."""

import logging
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ConfigError, EnvError
from sensorium.envs.embodied.gymnasium_env.config import GymnasiumOptions
from sensorium.envs.embodied.gymnasium_env.foreign import PYGAME
from sensorium.envs.embodied.gymnasium_env.looking import Offer
from sensorium.envs.embodied.gymnasium_env.making import PREFIX, AnyEnv, close_env, make_env
from sensorium.envs.embodied.gymnasium_env.readings import frame_of
from sensorium.envs.embodied.gymnasium_env.success import Course

_LOG = logging.getLogger(__name__)

_SEED_LIMIT = 2**31
"""Engines behind environments take 32 bits with a sign."""


class Outcome(NamedTuple):
    """What one step of one world did."""

    reward: float
    terminated: bool
    truncated: bool
    success: bool


class World:
    """One environment; made anew after it raised an exception.

    Args:
        number: Of the world, for messages.
        offer: What the environment is and offers.
        options: How it is made, and how many exceptions in a row are forgiven, less one.
        draws: Whether every observation comes with a picture of `render`.

    Raises:
        ConfigError: It cannot be made.
    """

    def __init__(self, number: int, offer: Offer, options: GymnasiumOptions, *, draws: bool) -> None:
        self._number = number
        self._offer = offer
        self._options = options
        self._draws = draws
        self._failures = 0
        self._env: AnyEnv | None = self._make()
        self._total = 0.0
        self.task = PREFIX + offer.env_id
        self.seed = 0
        """Seed that the episode was reset with."""
        self.observation: Any = None
        """The last one."""
        self.frame: NDArray[np.uint8] | None = None
        """What `render` drew with it, (height, width, 3); None without `draws`."""

    def _make(self) -> AnyEnv:
        return make_env(self._offer.env_id, self._options, "rgb_array" if self._offer.can_render else None)

    def begin(self, seed: int) -> None:
        """Begin an episode; an environment that raises meanwhile is made anew and asked again.

        Raises:
            EnvError: It raised `max_failures` times in a row.
        """
        self.seed, self._total = seed % _SEED_LIMIT, 0.0
        while True:
            try:
                if self._env is None:
                    self._env = self._make()
                observation, _ = self._env.reset(seed=self.seed)
                drawn = self._draw(self._env) if self._draws else None
            except Exception as error:  # whatever a foreign environment raises
                self._fail(error, "reset")
            else:
                self._perceived(observation, drawn)
                return

    def act(self, action: Any) -> Outcome | None:
        """Advance by one step; None when the environment raised an exception.

        Raises:
            EnvError: It raised `max_failures` times in a row, or gave a reward that is no finite number.
        """
        if self._env is None:
            return None
        try:
            observation, reward, terminated, truncated, info = self._env.step(action)
            drawn = self._draw(self._env) if self._draws else None
            given, ended, stopped = float(reward), bool(terminated), bool(truncated)
        except Exception as error:  # whatever a foreign environment raises
            self._fail(error, "step")
            return None
        if not np.isfinite(given):
            raise EnvError(
                f"World {self._number} of {self.task} (seed {self.seed}) gave the reward {given}; rewards "
                f"must be finite. Mend it in the environment or in a gymnasium.RewardWrapper."
            )
        self._failures = 0
        self._perceived(observation, drawn)
        self._total += given
        success = self._offer.success.holds(Course(self._total, given, ended, info))
        return Outcome(given, ended, stopped and not ended, success)

    def check_drawing(self) -> None:
        """Draw once, so that what keeps it from being drawn is told before anything begins.

        Raises:
            ConfigError: It cannot be drawn.
        """
        try:
            assert self._env is not None, "it was made"
            self._env.reset(seed=0)
            frame_of(self._draw(self._env), self.task)
        except Exception as error:  # whatever a foreign environment raises
            raise ConfigError(
                f"rgb of {self.task} is what the environment renders, and that failed: "
                f"{type(error).__name__}: {error} Mend that, or perceive its state: --env.visual_obs [] "
                f"--env.proprio true"
            ) from error

    def picture(self) -> NDArray[np.uint8] | None:
        """What `render` draws now, (height, width, 3); None when it cannot."""
        if self._env is None or not self._offer.can_render:
            return None
        try:
            return frame_of(self._draw(self._env), self.task)
        except Exception as error:  # a picture for people is not worth an end
            _LOG.warning("%s cannot be drawn: %s: %s", self.task, type(error).__name__, error)
            return None

    def close(self) -> None:
        """Close the environment; may be called twice."""
        env, self._env = self._env, None
        if env is not None:
            close_env(env)

    def _perceived(self, observation: Any, drawn: Any) -> None:
        self.observation = observation
        self.frame = frame_of(drawn, self.task) if self._draws else None

    def _draw(self, env: AnyEnv) -> Any:
        with PYGAME:
            return env.render()

    def _fail(self, error: Exception, doing: str) -> None:
        """Give the environment up; `begin` makes a new one."""
        self.close()
        self._failures += 1
        what = f"{type(error).__name__}: {error}"
        if self._failures >= self._options.max_failures:
            raise EnvError(
                f"World {self._number} of {self.task} (seed {self.seed}) raised an exception "
                f"{self._failures} times in a row (max_failures); the last time in {doing}(): {what}"
            ) from error
        _LOG.warning(
            "world %d of %s (seed %d) raised in %s() and is made anew: %s",
            self._number, self.task, self.seed, doing, what,
        )  # fmt: skip
