"""Any Gymnasium environment as a world that is played."""

import inspect
import re
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from sensorium.core import ConfigError, EnvError, Modality
from sensorium.envs.embodied.gymnasium_env.foreign import (
    PYGAME,
    action_names,
    draw_without_screen,
    load_package_of,
    pygame_kept,
)
from sensorium.envs.embodied.gymnasium_env.known import ACTION_NAMES, VALUE_NAMES, base_name
from sensorium.envs.embodied.gymnasium_env.success import SUCCESS_KEYS
from sensorium.envs.playable.actions import tool_of_space
from sensorium.envs.playable.config import PlayableConfig
from sensorium.envs.playable.gym_view import has_picture, view
from sensorium.envs.playable.world import Moment
from sensorium.observations import Source

_SUMMARY_CHARS = 700


class GymWorld:
    """One Gymnasium environment; see `World`.

    Args:
        config: Names the environment, and how it is shown.

    Raises:
        ConfigError: It cannot be made, or its actions cannot be told in words.
    """

    def __init__(self, config: PlayableConfig) -> None:
        self._id = config.task
        self._config = config
        with PYGAME:
            self._env, self._mode = self._make()
        name = base_name(self._id)
        names = config.action_names or ACTION_NAMES.get(name) or action_names(self._env)
        try:
            self.actions = tool_of_space(self._env.action_space, names, config.max_repeat)
        except ConfigError:
            self.close()
            raise
        self._values = VALUE_NAMES.get(name, ())
        spec = self._env.spec
        self.max_steps: int | None = spec.max_episode_steps if spec is not None else None
        self._threshold = spec.reward_threshold if spec is not None else None
        self._observation: Any = None
        self._return = 0.0
        self._last_reward: float | None = None

    def reset(self, seed: int) -> Moment:
        """Begin an episode."""
        self._observation, _ = self._env.reset(seed=seed % 2**31)
        self._env.action_space.seed(seed % 2**31)
        self._return, self._last_reward = 0.0, None
        return Moment()

    def step(self, action: Any) -> Moment:
        """Act once.

        Raises:
            EnvError: The environment gave a reward that is no finite number.
        """
        before = self._observation
        self._observation, reward, terminated, truncated, info = self._env.step(action)
        given = float(reward)
        if not np.isfinite(given):
            raise EnvError(f"{self._id} gave the reward {given}; rewards must be finite.")
        self._return += given
        event = self._event(given, before)
        self._last_reward = given
        done = bool(terminated or truncated)
        success = self._success(info) if done else None
        return Moment(given, bool(terminated), bool(truncated), success, event)

    def look(self) -> Mapping[str, Any]:
        """What is observed, and what is drawn for people."""
        state = view(self._env.observation_space, self._observation, self._values)
        if self._mode is not None:
            with PYGAME:
                drawn: Any = self._env.render()
            if isinstance(drawn, str):
                state["drawing"] = _without_colours(drawn)
            elif isinstance(drawn, np.ndarray):
                state["picture"] = Source(drawn, modality=Modality.IMAGE)
        return state

    def close(self) -> None:
        """Close the environment."""
        with pygame_kept():
            self._env.close()

    def _event(self, reward: float, before: Any) -> str:
        """Why a repetition should stop: another reward than before, or nothing that happened at all."""
        if self._last_reward is not None and reward != self._last_reward and reward == round(reward, 3):
            return f"the reward of this step is {reward:g}"
        return "nothing changed" if _same(before, self._observation) else ""

    def _success(self, info: Mapping[str, Any]) -> float:
        """What the environment says itself, or whether the return is what is asked for, or positive."""
        for key in SUCCESS_KEYS:
            if key in info:
                return float(bool(info[key]))
        if self._threshold is not None:
            return float(self._return >= self._threshold)
        return float(self._return > 0.0)

    def _make(self) -> tuple[gymnasium.Env[Any, Any], str | None]:
        """The environment, with the way of drawing that was asked for and that works."""
        env, render = make_gym(self._id, None, self._config), self._config.render
        if render == "none" or (render == "auto" and has_picture(env.observation_space)):
            return env, None
        offered = tuple(env.metadata.get("render_modes") or ())
        wanted = {"picture": ["rgb_array"], "text": ["ansi"], "auto": ["rgb_array", "ansi"]}[render]
        for mode in (mode for mode in wanted if mode in offered):
            drawn = make_gym(self._id, mode, self._config)
            if _can_draw(drawn):
                env.close()
                return drawn, mode
            with pygame_kept():
                drawn.close()
        if render != "auto":
            env.close()
            raise ConfigError(
                f"{self._id} cannot be drawn as {render}: it offers {', '.join(offered) or 'nothing'}, and "
                "what draws it may not be installed. Set render to auto or none."
            )
        return env, None


def known_gym(env_id: str) -> str:
    """Check that an id is registered; packages whose ids are known by their beginning are loaded for it.

    Raises:
        ConfigError: It is not; says what comes close.
    """
    try:
        load_package_of(env_id)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gymnasium.spec(env_id) if ":" not in env_id else gymnasium.make(env_id).close()
    except (gymnasium.error.Error, ImportError) as error:
        raise ConfigError(
            f"There is no task {env_id!r}: it is neither a task of `sensorium envs` nor registered with "
            f"Gymnasium ({error})."
        ) from error
    return env_id


def summary_of(env_id: str) -> str:
    """What an environment is about, by its own documentation; empty when it has none."""
    spec = gymnasium.spec(env_id) if ":" not in env_id else None
    entry: Any = spec.entry_point if spec is not None else None
    if isinstance(entry, str):
        entry = gymnasium.envs.registration.load_env_creator(entry)
    text = inspect.getdoc(entry) if inspect.isclass(entry) else None
    if not text:
        return ""
    before, *after = re.split(r"^\s*#+ *Description\s*$", text, maxsplit=1, flags=re.MULTILINE)
    body = re.split(r"^\s*#+ ", "".join(after).strip(), maxsplit=1, flags=re.MULTILINE)[0]
    if not after:
        before = re.split(r"^\s*#+ ", before.strip(), maxsplit=1, flags=re.MULTILINE)[0]
    body = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", _link_text, " ".join(f"{before} {body}".split()))
    if len(body) <= _SUMMARY_CHARS:
        return body
    cut = body[:_SUMMARY_CHARS]
    return cut[: cut.rfind(". ") + 1] or cut


def _link_text(match: re.Match[str]) -> str:
    return "" if match[0].startswith("!") else match[1]


def make_gym(env_id: str, mode: str | None, config: PlayableConfig) -> gymnasium.Env[Any, Any]:
    """Make an environment as a config wants it.

    Args:
        env_id: Of Gymnasium.
        mode: How it is drawn; None: not at all.
        config: Has its options.

    Raises:
        ConfigError: It cannot be made.
    """
    options = {"disable_env_checker": True} | config.env_options
    if config.max_env_steps is not None:
        options["max_episode_steps"] = config.max_env_steps
    if mode is not None:  # a picture needs neither a screen nor a loudspeaker
        draw_without_screen()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return gymnasium.make(env_id, render_mode=mode, **options)
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, AssertionError) as error:
        raise ConfigError(
            f"The Gymnasium environment {env_id!r} cannot be made with {config.env_options}: {error}"
        ) from error


def _can_draw(env: gymnasium.Env[Any, Any]) -> bool:
    try:
        env.reset(seed=0)
        return env.render() is not None
    except Exception:  # whatever a foreign renderer raises: it cannot be used here
        return False


def _same(a: Any, b: Any) -> bool:
    """Whether two observations are equal."""
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(_same, a, b))
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool(a == b)


def _without_colours(text: str) -> str:
    """A text for terminals: what is marked by colour (where the agent is) stands in brackets."""
    marked = re.sub(r"\x1b\[\d+(?:;\d+)*m(.*?)\x1b\[0m", r"[\1]", text, flags=re.DOTALL)
    return re.sub(r"\x1b\[[0-9;]*m", "", marked)
