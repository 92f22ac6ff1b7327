"""Worlds as arrays for policy networks, beside the words and pictures that language models get."""

from collections.abc import Mapping
from typing import Any

from gymnasium.vector import AutoresetMode, SyncVectorEnv

from sensorium.core import ConfigError, parse_config, unknown_name
from sensorium.envs.embodied.config import CLIENT_SETTINGS, EmbodiedEnvConfig
from sensorium.envs.hosted import HostedEnvs
from sensorium.envs.playable.config import PlayableConfig
from sensorium.envs.playable.definition import is_embodied
from sensorium.envs.playable.embodied_world import embodied_config
from sensorium.envs.playable.gym_world import known_gym, make_gym
from sensorium.envs.remote.hosted_vector import HostedVector


def hosted_envs(config: PlayableConfig, num_envs: int, asked: Mapping[str, Any], kind: str) -> HostedEnvs:
    """The worlds of a config for a client; see `EnvDefinition.hosted`.

    Args:
        config: Names the task.
        num_envs: How many.
        asked: What the client wants otherwise, of `CLIENT_SETTINGS`; of an embodied task alone.
        kind: ``vector``: a vector environment with next-step autoreset. ``worlds``: the bare worlds of an
            embodied task.

    Raises:
        ConfigError: There is no such task, or it cannot give what is asked for.
    """
    if config.outages:
        raise ConfigError(
            "outages are for episodes of language models; networks are tested with `sensorium eval`."
        )
    if is_embodied(config.task):
        return _embodied(_asked_config(config, asked), num_envs, kind)
    if asked or kind != "vector":
        found = ", ".join(asked) or kind
        raise ConfigError(f"{config.task} has no settings that a client may choose; found {found}.")
    known_gym(config.task)
    makers = [lambda: make_gym(config.task, None, config)] * num_envs
    return HostedVector(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.NEXT_STEP))


def _embodied(settings: EmbodiedEnvConfig, num_envs: int, kind: str) -> HostedEnvs:
    from sensorium.envs.embodied.registry import build_backend
    from sensorium.envs.embodied.vector import MultiModalVectorEnv
    from sensorium.envs.remote.worlds import HostedWorlds

    if kind == "vector":
        return HostedVector(MultiModalVectorEnv(settings, num_envs))
    return HostedWorlds(build_backend(settings, num_envs), settings.backend_options)


def _asked_config(config: PlayableConfig, asked: Mapping[str, Any]) -> EmbodiedEnvConfig:
    """The settings of an embodied task, with what a client wants otherwise."""
    for name in asked:
        if name not in CLIENT_SETTINGS:
            raise unknown_name("setting", name, CLIENT_SETTINGS)
    own = embodied_config(config).model_dump()
    return parse_config(EmbodiedEnvConfig, own | dict(asked))
