"""The arena's tasks and how its backend is built; light to import."""

from sensorium.core import parse_config, require
from sensorium.envs.embodied.arena.config import ArenaOptions
from sensorium.envs.embodied.base import Backend
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.registry import TaskSpec

_VISUAL = ("rgb", "depth")
_AUDIO = ("speech", "env_sound")
_TEXT = ("instruction",)

TASKS: dict[str, TaskSpec] = {
    task.name: task
    for task in (
        TaskSpec(
            name="arena/find",
            summary="Walk to the object named by colour in the instruction; another one is failure.",
            visual_obs=_VISUAL,
            audio_obs=_AUDIO,
            text_obs=_TEXT,
            needs=(("rgb",), ("instruction", "speech")),
            color_is_label=True,
            default_max_steps=80,
        ),
        TaskSpec(
            name="arena/listen",
            summary="Walk to the object that sounds, out of sight behind walls; a silent one is failure.",
            visual_obs=_VISUAL,
            audio_obs=_AUDIO,
            text_obs=_TEXT,
            needs=(("env_sound",),),
            default_max_steps=120,
        ),
        TaskSpec(
            name="arena/senses",
            summary="Walk to the target, told by text, by speech or by its sound; another one is failure.",
            visual_obs=_VISUAL,
            audio_obs=_AUDIO,
            text_obs=_TEXT,
            needs=(("rgb",), ("instruction",), ("speech",), ("env_sound",)),
            color_is_label=True,
            default_max_steps=100,
        ),
    )
}
"""Task name -> what it offers and needs."""


def build(config: EmbodiedEnvConfig, num_envs: int) -> Backend:
    """Build N worlds of an arena task.

    Args:
        config: Checked against its task.
        num_envs: How many worlds.

    Raises:
        ConfigError: `config.backend_options` holds an unknown setting or a value that does not fit.
        MissingDependencyError: numba, or for `speech` the synthesiser, is not installed.
    """
    options = parse_config(ArenaOptions, config.backend_options)
    require("numba", extra="rl", purpose="the arena backend")
    from sensorium.envs.embodied.arena.backend import ArenaBackend

    return ArenaBackend(config, options, num_envs)
