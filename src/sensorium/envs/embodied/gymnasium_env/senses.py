"""Which sensors an observation space amounts to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from sensorium.core import ConfigError

CHANNELS = (1, 3, 4)
"""Numbers of channels by which a picture is known: grey, colour, colour with alpha or four grey frames."""

MAX_ONE_HOT = 10_000
"""Options of a Discrete or MultiDiscrete space that are written as a one-hot vector."""

WRAPPER_HINT = (
    "Change it in a gymnasium.ObservationWrapper and name that in --env.backend_options "
    "'{wrappers: [\"MODULE:CLASS\"]}'"
)

_RESERVED = ("proprio", "present", "timestamp_s")
_NUMBERS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)

Key = str | int


@dataclass(frozen=True, slots=True)
class Part:
    """One leaf of an observation."""

    path: tuple[Key, ...]
    """Keys that lead to it; empty where the observation is the leaf."""
    name: str
    """The keys, joined by "_"; ``obs`` for a bare space."""
    space: gymnasium.Space[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Senses:
    """What can be perceived in an environment: sensor name -> where it comes from."""

    pictures: dict[str, Part]
    texts: dict[str, Part]
    numbers: tuple[Part, ...]
    """What becomes the vector `proprio`, in order."""
    rendered: bool
    """`rgb` is drawn by the environment's `render`, because it observes no picture."""

    @property
    def visual_obs(self) -> tuple[str, ...]:
        """Names of visual sensors."""
        return ("rgb",) if self.rendered else tuple(self.pictures)


def senses_of_space(space: gymnasium.Space[Any], task: str, *, can_render: bool) -> Senses:
    """Sort the leaves of an observation space into pictures, texts and numbers.

    A lone picture is also called `rgb`, and a lone text `instruction`.

    Args:
        space: Dict and Tuple spaces may be nested.
        task: Name for messages.
        can_render: The environment can draw itself.

    Raises:
        ConfigError: A part cannot be perceived, or two sensors would have one name; names it.
    """
    pictures: dict[str, Part] = {}
    texts: dict[str, Part] = {}
    numbers: list[Part] = []
    for part in _leaves(space, ()):
        if is_picture(part.space):
            _add(part, "rgb", pictures, texts, task)
        elif is_text(part.space):
            _add(part, "instruction", texts, pictures, task)
        else:
            _check_numbers(part, task)
            numbers.append(part)
    pictures = _with_alias(pictures, "rgb", texts)
    texts = _with_alias(texts, "instruction", pictures)
    rendered = can_render and not pictures and "rgb" not in texts
    return Senses(pictures=pictures, texts=texts, numbers=tuple(numbers), rendered=rendered)


def is_picture(space: gymnasium.Space[Any]) -> bool:
    """Whether a space has pictures: bytes, (H, W, 1|3|4), (1|3|4, H, W), or (H, W) from 16 pixels on."""
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8:
        return False
    if len(space.shape) == 2:
        return min(space.shape) >= 16
    return len(space.shape) == 3 and (space.shape[2] in CHANNELS or space.shape[0] in CHANNELS)


def is_text(space: gymnasium.Space[Any]) -> bool:
    """Whether the samples of a space are strings."""
    if isinstance(space, spaces.Text):
        return True
    if isinstance(space, (*_NUMBERS, spaces.Sequence, spaces.Graph, spaces.OneOf)):
        return False
    try:
        return isinstance(space.sample(), str)
    except Exception:  # a foreign space may not be able to sample: it is no text then
        return False


def _leaves(space: gymnasium.Space[Any], path: tuple[Key, ...]) -> Iterator[Part]:
    if isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for n, inner in enumerate(space.spaces):
            yield from _leaves(inner, (*path, n))
    else:
        yield Part(path, _name(path), space)


def _name(path: tuple[Key, ...]) -> str:
    """Keys as the name of a sensor: names of files and of modules are made of it."""
    joined = re.sub(r"\W", "_", "_".join(map(str, path)), flags=re.ASCII)
    return joined if re.match(r"[A-Za-z]", joined) else f"obs_{joined}" if joined else "obs"


def _add(part: Part, bare: str, own: dict[str, Part], others: dict[str, Part], task: str) -> None:
    """Enter a picture or a text under its name."""
    name = part.name if part.path else bare
    if name in _RESERVED or name in own or name in others:
        why = "is another sensor's name, too" if name not in _RESERVED else "has a meaning of its own here"
        raise ConfigError(
            f"{task} observes {list(part.path)}, which would be the sensor {name!r}: that {why}. Rename it. "
            f"{WRAPPER_HINT}."
        )
    own[name] = part


def _with_alias(own: dict[str, Part], alias: str, others: dict[str, Part]) -> dict[str, Part]:
    """Give a lone sensor its usual name, too."""
    if len(own) != 1 or alias in own or alias in others:
        return own
    return {alias: next(iter(own.values())), **own}


def _check_numbers(part: Part, task: str) -> None:
    space, where = part.space, f"The observation {part.name!r} of {task}"
    if not isinstance(space, _NUMBERS):
        raise ConfigError(
            f"{where} is a {type(space).__name__} space, which has no fixed number of values. A policy reads "
            f"pictures, texts and vectors. {WRAPPER_HINT}."
        )
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and spaces.flatdim(space) > MAX_ONE_HOT:
        raise ConfigError(
            f"{where} is one of {spaces.flatdim(space)} options, more than the {MAX_ONE_HOT} that are "
            f"written as a one-hot vector. {WRAPPER_HINT}."
        )
