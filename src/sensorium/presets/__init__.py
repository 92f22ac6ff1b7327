"""Named, complete configurations; few, each tested.

A preset is a function that returns a config. Derive your own by calling `updated` on one.
"""

from collections.abc import Callable

from sensorium.core import unknown_name
from sensorium.presets.embodied import arena_senses, dapo_base, doom_basic, doom_find, quickstart
from sensorium.presets.language import grpo_dapo, grpo_step_grid, grpo_tools, grpo_toy
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.language.config import LanguageRunConfig

AnyRunConfig = TrainConfig | LanguageRunConfig

EMBODIED: dict[str, Callable[[], TrainConfig]] = {
    "quickstart": quickstart,
    "arena_senses": arena_senses,
    "doom_basic": doom_basic,
    "doom_find": doom_find,
    "dapo_base": dapo_base,
}
"""Name -> preset of a policy network."""
LANGUAGE: dict[str, Callable[[], LanguageRunConfig]] = {
    "grpo_toy": grpo_toy,
    "grpo_tools": grpo_tools,
    "grpo_dapo": grpo_dapo,
    "grpo_step_grid": grpo_step_grid,
}
"""Name -> preset of a language model's agent."""
PRESETS: dict[str, Callable[[], AnyRunConfig]] = {**EMBODIED, **LANGUAGE}
"""Preset name -> function that builds its config."""


def find_preset(name: str) -> AnyRunConfig:
    """Build the config of a preset.

    Raises:
        ConfigError: No preset has this name; names the nearest known ones.
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]()


__all__ = [
    "EMBODIED",
    "LANGUAGE",
    "PRESETS",
    "AnyRunConfig",
    "arena_senses",
    "dapo_base",
    "doom_basic",
    "doom_find",
    "find_preset",
    "grpo_dapo",
    "grpo_step_grid",
    "grpo_tools",
    "grpo_toy",
    "quickstart",
]
