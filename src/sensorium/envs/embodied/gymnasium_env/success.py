"""When an episode of an environment that has no notion of success counts as solved."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sensorium.envs.embodied.gymnasium_env.config import GymnasiumOptions

SUCCESS_KEYS = ("is_success", "success")
"""Entries of `info` by which environments tell it, in the order they are looked for."""


class Course(NamedTuple):
    """How an episode stands after a step."""

    total: float
    """Return so far."""
    reward: float
    """Of this step."""
    terminated: bool
    info: Mapping[str, Any]


class SuccessRule(NamedTuple):
    """Whether an episode that ends now is solved; see `GymnasiumOptions`."""

    holds: Callable[[Course], bool]
    words: str
    """What must be the case, for people."""
    threshold: float | None = None
    """Return that must be reached, where that is the rule."""


def success_rule(options: GymnasiumOptions, reward_threshold: float | None) -> SuccessRule:
    """The rule that options and registration give.

    Args:
        options: May name an entry of `info` or a return.
        reward_threshold: Of the registration; None: it has none.
    """
    if options.success_key is not None:
        key = options.success_key
        return SuccessRule(lambda course: bool(course.info.get(key, False)), f"info[{key!r}] is true")
    if options.success_return is not None:
        return _return_rule(options.success_return)
    if reward_threshold is not None:
        rule = _return_rule(float(reward_threshold))
    else:
        rule = SuccessRule(
            lambda course: course.terminated and course.reward > 0.0, "it ends with a reward above 0"
        )
    return rule._replace(holds=lambda course: _told(course.info, rule.holds(course)))


def _return_rule(threshold: float) -> SuccessRule:
    return SuccessRule(
        lambda course: course.total >= threshold, f"the return reaches {threshold:g}", threshold
    )


def _told(info: Mapping[str, Any], otherwise: bool) -> bool:
    """What `info` tells of success."""
    return next((bool(info[key]) for key in SUCCESS_KEYS if key in info), otherwise)
