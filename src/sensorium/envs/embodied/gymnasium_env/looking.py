"""What an environment offers: found by making one, once for each id with its options."""

import json
import operator
from dataclasses import dataclass
from typing import Any

from gymnasium.envs.registration import EnvSpec

from sensorium.core import ConfigError
from sensorium.envs.embodied.gymnasium_env.acting import ActionCodec
from sensorium.envs.embodied.gymnasium_env.config import GymnasiumOptions
from sensorium.envs.embodied.gymnasium_env.foreign import action_names
from sensorium.envs.embodied.gymnasium_env.known import ACTION_NAMES, base_name
from sensorium.envs.embodied.gymnasium_env.making import PREFIX, AnyEnv, close_env, make_env, registered
from sensorium.envs.embodied.gymnasium_env.senses import Senses, senses_of_space
from sensorium.envs.embodied.gymnasium_env.success import SuccessRule, success_rule

DEFAULT_CONTROL_HZ = 10.0
DEFAULT_MAX_STEPS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one environment, made with some options, offers."""

    env_id: str
    senses: Senses
    actions: ActionCodec
    can_render: bool
    """It can be made with ``render_mode="rgb_array"``."""
    control_hz: float
    """Steps per simulated second."""
    max_steps: int
    """Step limit that it was made for."""
    success: SuccessRule


_OFFERS: dict[str, tuple[EnvSpec, Offer]] = {}


def offer_of(env_id: str, options: GymnasiumOptions) -> Offer:
    """Look at an environment; a second look with the same options costs nothing.

    Raises:
        ConfigError: There is no such environment, or it observes or acts in a way that a policy cannot.
        MissingDependencyError: A package that it needs is not installed.
    """
    spec = registered(env_id)
    made_of = {"kwargs", "wrappers", "control_hz", "success_key", "success_return"}
    key = env_id + json.dumps(options.model_dump(include=made_of), sort_keys=True, default=repr)
    if key in _OFFERS and _OFFERS[key][0] is spec:  # a program may register an id anew
        return _OFFERS[key][1]
    env, can_render = _made(env_id, options)
    try:
        offer = _offer(env_id, options, env, can_render)
    finally:
        close_env(env)
    _OFFERS[key] = (spec, offer)
    return offer


def _made(env_id: str, options: GymnasiumOptions) -> tuple[AnyEnv, bool]:
    """An environment, and whether it can be made to be drawn."""
    env = make_env(env_id, options, None)
    if "rgb_array" not in (env.metadata.get("render_modes") or ()):
        return env, False
    try:
        drawn = make_env(env_id, options, "rgb_array")
    except ConfigError:  # its metadata promises more than its constructor takes
        return env, False
    close_env(env)
    return drawn, True


def _offer(env_id: str, options: GymnasiumOptions, env: AnyEnv, can_render: bool) -> Offer:
    task = PREFIX + env_id
    known = ACTION_NAMES.get(base_name(env_id), ())
    spec = registered(env_id)
    return Offer(
        env_id=env_id,
        senses=senses_of_space(env.observation_space, task, can_render=can_render),
        actions=ActionCodec(env.action_space, known or action_names(env), task),
        can_render=can_render,
        control_hz=options.control_hz or _frame_rate(env),
        max_steps=spec.max_episode_steps or _own_limit(env) or DEFAULT_MAX_STEPS,
        success=success_rule(options, spec.reward_threshold),
    )


def _frame_rate(env: AnyEnv) -> float:
    rate: Any = env.metadata.get("render_fps")
    return float(rate) if isinstance(rate, int | float) and rate > 0 else DEFAULT_CONTROL_HZ


def _own_limit(env: AnyEnv) -> int | None:
    """Step limit that an environment keeps itself, where it says so, as MiniGrid does."""
    try:
        limit = operator.index(getattr(env.unwrapped, "max_steps", 0))
    except TypeError:
        return None
    return limit if limit > 0 else None
