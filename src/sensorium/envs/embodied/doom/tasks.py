"""The tasks of the `doom` backend. Importing this module does not need ViZDoom."""

from sensorium.core import parse_config
from sensorium.envs.embodied.base import Backend
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.doom.config import DoomOptions
from sensorium.envs.embodied.doom.find.config import FindOptions
from sensorium.envs.embodied.doom.scenarios import SCENARIOS
from sensorium.envs.embodied.registry import TaskSpec

STANDARD_FRAME_SKIP = 4
"""Tics per step that `default_max_steps` is reckoned with."""

TASKS: dict[str, TaskSpec] = {
    f"doom/{scenario.name}": TaskSpec(
        name=f"doom/{scenario.name}",
        summary=scenario.summary,
        visual_obs=("rgb", "depth"),
        audio_obs=("speech", "env_sound"),
        text_obs=("instruction", "notifications"),
        proprio=True,
        needs=scenario.needs,
        color_is_label=scenario.color_is_label,
        default_max_steps=scenario.time_limit_tics // STANDARD_FRAME_SKIP,
    )
    for scenario in SCENARIOS.values()
}
"""Task name -> what it is about and what it offers."""


def build(config: EmbodiedEnvConfig, num_envs: int) -> Backend:
    """Start the engine for `num_envs` worlds.

    Args:
        config: The task, the senses and the way to act; `backend_options` are those of `DoomOptions`
            (in `doom/find` of `FindOptions`).
        num_envs: How many worlds.

    Raises:
        ConfigError: A backend option is unknown or does not fit.
        MissingDependencyError: ViZDoom is not installed, or sound was asked for and OpenAL is missing.
        EnvError: The engine did not start.
    """
    kind = FindOptions if config.task == "doom/find" else DoomOptions
    options = parse_config(kind, config.backend_options)
    from sensorium.envs.embodied.doom.backend import DoomBackend

    return DoomBackend(config, options, num_envs)
