"""Named, complete configurations; few, each tested.

A preset is a function that returns a config. Derive your own by calling `updated` on one.
"""

from collections.abc import Callable

from sensorium.core import unknown_name
from sensorium.presets.embodied import arena_senses, dapo_base, doom_basic, doom_find, quickstart
from sensorium.trainers.config import TrainConfig

PRESETS: dict[str, Callable[[], TrainConfig]] = {
    "quickstart": quickstart,
    "arena_senses": arena_senses,
    "doom_basic": doom_basic,
    "doom_find": doom_find,
    "dapo_base": dapo_base,
}
"""Preset name -> function that builds its config."""


def find_preset(name: str) -> TrainConfig:
    """Build the config of a preset.

    Raises:
        ConfigError: No preset has this name; names the nearest known ones.
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]()


__all__ = ["PRESETS", "arena_senses", "dapo_base", "doom_basic", "doom_find", "find_preset", "quickstart"]
