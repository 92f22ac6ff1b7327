"""Settings that only the `gym` backend has."""

from collections.abc import Iterator
from typing import Any

from pydantic import Field, field_validator, model_validator

from sensorium.core import Config


class GymnasiumOptions(Config):
    """How a Gymnasium environment is made and judged; given as `backend_options` of the environment's config.

    When an episode counts as solved (read at its end, by `max_episode_steps` too), the first that applies:

    1. `success_key` is set: the entry of that name in the last `info` is true.
    2. `success_return` is set: the episode's return reaches it.
    3. The last `info` holds ``is_success`` or ``success``: that entry is true.
    4. The environment is registered with a `reward_threshold`: the return reaches it.
    5. Otherwise: the environment ended the episode itself (terminated) with a last reward above 0.
    """

    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments for `gymnasium.make`, e.g. ``{continuous: true}`` for LunarLander."""
    wrappers: tuple[str | dict[str, dict[str, Any]], ...] = ()
    """Gymnasium wrappers around the environment, innermost first: ``module:Class``, or a mapping from that to
    its arguments, e.g. ``{"gymnasium.wrappers:RescaleReward": {min_reward: -1, max_reward: 1}}``."""
    control_hz: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Steps per simulated second. None: the environment's `render_fps`, or 10 where it has none."""
    success_key: str | None = Field(default=None, min_length=1)
    """Entry of `info` that tells whether the episode was solved; one that is missing counts as not solved."""
    success_return: float | None = Field(default=None, allow_inf_nan=False)
    """Return of an episode from which it counts as solved."""
    max_failures: int = Field(default=3, ge=1)
    """Exceptions of one world in a row after which the run stops with an EnvError."""

    @field_validator("kwargs")
    @classmethod
    def _free_arguments(cls, kwargs: dict[str, Any]) -> dict[str, Any]:
        taken = {
            "render_mode": "pictures are taken when the sensor rgb or a report needs them",
            "max_episode_steps": "set env.max_episode_steps",
            "disable_env_checker": "gymnasium.utils.env_checker.check_env is a test of its own",
        }
        for name, instead in taken.items():
            if name in kwargs:
                raise ValueError(f"kwargs must not hold {name}: {instead}")
        return kwargs

    @field_validator("wrappers")
    @classmethod
    def _named_wrappers(
        cls, wrappers: tuple[str | dict[str, dict[str, Any]], ...]
    ) -> tuple[str | dict[str, dict[str, Any]], ...]:
        for wrapper in wrappers:
            names = [wrapper] if isinstance(wrapper, str) else list(wrapper)
            if len(names) != 1 or not all(names[0].partition(":")):
                raise ValueError(
                    f"a wrapper is written module:Class or {{module:Class: {{argument: value}}}}, "
                    f"found {wrapper!r}"
                )
        return wrappers

    @model_validator(mode="after")
    def _one_rule(self) -> "GymnasiumOptions":
        if self.success_key is not None and self.success_return is not None:
            raise ValueError("success_key and success_return are two rules of success; set one of them")
        return self

    @property
    def named_wrappers(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """``module:Class`` and arguments of each wrapper, innermost first."""
        pairs: Iterator[dict[str, dict[str, Any]]] = (
            {wrapper: {}} if isinstance(wrapper, str) else wrapper for wrapper in self.wrappers
        )
        return tuple(next(iter(pair.items())) for pair in pairs)
