"""The tasks of the `gym` backend: every id that Gymnasium can make."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from sensorium.core import ConfigError, MissingDependencyError, parse_config
from sensorium.envs.embodied.base import Backend
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.gymnasium_env.config import GymnasiumOptions
from sensorium.envs.embodied.gymnasium_env.looking import offer_of
from sensorium.envs.embodied.gymnasium_env.making import PREFIX, env_id_of
from sensorium.envs.embodied.registry import TaskSpec

_LOG = logging.getLogger(__name__)


def task_spec(name: str, options: Mapping[str, Any]) -> TaskSpec:
    """What an environment is about and what it can offer, made with some options.

    Args:
        name: ``gym/ID`` with an id of Gymnasium, which may begin with the module that registers it:
            ``gym/minigrid:MiniGrid-Empty-5x5-v0``.
        options: Settings of `GymnasiumOptions`.

    Raises:
        ConfigError: There is no such environment, an option is unknown, or a policy cannot perceive it or act
            in it.
        MissingDependencyError: A package that it needs is not installed.
    """
    env_id = env_id_of(name)
    if not env_id or not name.startswith(PREFIX):
        raise ConfigError(f"A task of this backend is written gym/ID, e.g. gym/CartPole-v1; found {name!r}.")
    offer = offer_of(env_id, parse_config(GymnasiumOptions, options))
    senses = offer.senses
    return TaskSpec(
        name=name,
        summary=f"Get as much reward as you can in {env_id}; solved when {offer.success.words}.",
        visual_obs=senses.visual_obs,
        text_obs=tuple(senses.texts),
        proprio=bool(senses.numbers),
        action_spaces=(offer.actions.spec.kind,),
        # Missions of grid worlds name objects by their colour.
        color_is_label=bool(senses.texts) and ("MiniGrid-" in env_id or "BabyAI-" in env_id),
        default_max_steps=offer.max_steps,
    )


class _AnyTask(Mapping[str, TaskSpec]):
    """Task name -> what it offers, for every id that can be made; iterates over none: they are countless."""

    def __getitem__(self, name: str) -> TaskSpec:
        return task_spec(name, {})

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(task_spec(name, {}))
        except (ConfigError, MissingDependencyError):
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


TASKS: Mapping[str, TaskSpec] = _AnyTask()
"""Task name -> what it is about and what it offers. Looking one up makes an environment, once."""


def build(config: EmbodiedEnvConfig, num_envs: int) -> Backend:
    """Make `num_envs` environments.

    Args:
        config: The task, the senses and the way to act; `backend_options` are those of `GymnasiumOptions`.
        num_envs: How many worlds.

    Raises:
        ConfigError: A backend option is unknown or does not fit, or an environment cannot be made.
        MissingDependencyError: A package that it needs is not installed.
    """
    options = parse_config(GymnasiumOptions, config.backend_options)
    from sensorium.envs.embodied.gymnasium_env.backend import GymnasiumBackend

    offer = offer_of(env_id_of(config.task), options)
    threshold = offer.success.threshold
    if threshold is not None and threshold > 0 and config.max_episode_steps < offer.max_steps:
        _LOG.warning(
            "an episode of %s is solved when %s, and it is made for %d steps; max_episode_steps is %d",
            config.task, offer.success.words, offer.max_steps, config.max_episode_steps,
        )  # fmt: skip
    return GymnasiumBackend(config, options, offer, num_envs)
