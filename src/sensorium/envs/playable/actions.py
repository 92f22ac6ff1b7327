"""An action space as arguments of a tool."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import gymnasium
import numpy as np
from pydantic import Field, create_model
from pydantic.config import ConfigDict

from sensorium.core import ActionKind, ConfigError
from sensorium.envs.embodied.base import ActionSpec

_MOST_FIELDS = 32
_MOST_NUMBERS = 8  # of a box with a field for each; more are given as a list
_HINTS = {"forward": "Forward; negative is backward.", "turn": "Turn; left is positive."}

_Finite = Annotated[float, Field(allow_inf_nan=False)]
Decode = Callable[[Mapping[str, Any]], Any]


class _Part(NamedTuple):
    """Arguments of one part of an action, and how they become it."""

    fields: dict[str, tuple[Any, Any]]
    decode: Decode


class ActionTool:
    """The arguments with which a tool acts, and what they mean to the world.

    Args:
        fields: Argument -> type and `Field`.
        decode: Makes the world's action of the arguments.
        about: One sentence about the action.
        max_repeat: How often one call may repeat it; 1 leaves the argument out.
    """

    def __init__(
        self, fields: dict[str, tuple[Any, Any]], decode: Decode, about: str, max_repeat: int
    ) -> None:
        self.about = about
        self._decode = decode
        known: dict[str, Any] = dict(fields)
        if max_repeat > 1:
            said = (
                "How often to do it; it stops early when the episode ends or something happens that matters."
            )
            known["repeat"] = (Annotated[int, Field(ge=1, le=max_repeat, description=said)], 1)
        settings = ConfigDict(extra="forbid", protected_namespaces=())
        self.model = create_model("act", __config__=settings, **known)

    def decode(self, arguments: Mapping[str, Any]) -> Any:
        """The world's action."""
        return self._decode(arguments)


def tool_of_spec(spec: ActionSpec, max_repeat: int) -> ActionTool:
    """The tool of an embodied task, whichever kind of action it takes."""
    if spec.kind is ActionKind.DISCRETE:
        part = _named(spec.option_names, "action", "What to do.")
        return ActionTool(part.fields, part.decode, "Do something.", max_repeat)
    if spec.kind is ActionKind.CONTINUOUS:
        fields = {name: _number(-1.0, 1.0, ..., _hint(name)) for name in spec.continuous_names}

        def move(values: Mapping[str, Any]) -> Any:
            return np.array([values[name] for name in spec.continuous_names], np.float32)

        return ActionTool(fields, move, "Move. Every number is a share of full power.", max_repeat)
    part = _named(spec.option_names, "action", "What to do.")
    uses = _uses(spec)
    fields = part.fields | {
        name: _number(-1.0, 1.0, 0.0, f"{_hint(name)} Used by {', '.join(uses[name])}.")
        for name in spec.continuous_names
    }

    def act(values: Mapping[str, Any]) -> Any:
        numbers = np.array([values[name] for name in spec.continuous_names], np.float32)
        return {"continuous": numbers, "discrete": part.decode(values)}

    return ActionTool(fields, act, "Do something; numbers are shares of full power.", max_repeat)


def tool_of_space(space: gymnasium.Space[Any], names: Sequence[str], max_repeat: int) -> ActionTool:
    """The tool of a Gymnasium environment.

    Args:
        space: Its action space.
        names: Of the values of a `Discrete` space; numbers when there are none.
        max_repeat: How often one call may repeat an action.

    Raises:
        ConfigError: The space cannot be told in words, or the names do not fit it.
    """
    if isinstance(space, gymnasium.spaces.Discrete):
        if names and len(names) != space.n:
            raise ConfigError(f"action_names has {len(names)} names; the environment has {space.n} actions.")
        part = _discrete(space, names, "action")
    else:
        part = _part(space, "")
    if len(part.fields) > _MOST_FIELDS:
        raise ConfigError(f"The action has {len(part.fields)} parts; a tool takes {_MOST_FIELDS} at most.")
    return ActionTool(part.fields, part.decode, "Act once, or several times in the same way.", max_repeat)


def _hint(name: str) -> str:
    return _HINTS.get(name, "From -1 to 1.")


def _uses(spec: ActionSpec) -> dict[str, list[str]]:
    """Parameter -> options that use it."""
    mask = spec.parameter_mask
    return {
        name: [option for row, option in enumerate(spec.option_names) if mask is None or mask[row, column]]
        for column, name in enumerate(spec.continuous_names)
    }


def _named(names: Sequence[str], argument: str, about: str, start: int = 0) -> _Part:
    kind: Any = Literal.__getitem__(tuple(names))
    numbers = {name: start + number for number, name in enumerate(names)}
    return _Part(
        {argument: (Annotated[kind, Field(description=about)], ...)}, lambda values: numbers[values[argument]]
    )


def _number(low: float, high: float, default: Any, about: str) -> tuple[Any, Any]:
    """An argument that is a number; bounds that are not finite are left out."""
    limits: dict[str, Any] = {"description": about, "allow_inf_nan": False}
    if math.isfinite(low):
        limits["ge"] = low
    if math.isfinite(high):
        limits["le"] = high
    return Annotated[float, Field(**limits)], default


def _part(space: gymnasium.Space[Any], name: str) -> _Part:
    """Arguments of a space of any kind; `name` begins their names."""
    match space:
        case gymnasium.spaces.Discrete():
            return _discrete(space, (), name or "action")
        case gymnasium.spaces.Box():
            return _box(space, name or "value")
        case gymnasium.spaces.MultiDiscrete():
            return _multi_discrete(space, name or "value")
        case gymnasium.spaces.MultiBinary():
            return _multi_binary(space, name or "on")
        case gymnasium.spaces.Text():
            return _text(space, name or "text")
        case gymnasium.spaces.Dict():
            return _several(list(space.spaces.items()), name, is_tuple=False)
        case gymnasium.spaces.Tuple():
            return _several([(str(i), one) for i, one in enumerate(space.spaces)], name, is_tuple=True)
        case _:
            raise ConfigError(
                f"Actions of the space {type(space).__name__} cannot be told in words. Expected "
                "Discrete, Box, MultiDiscrete, MultiBinary, Text, Dict or Tuple; wrap the environment."
            )


def _discrete(space: "gymnasium.spaces.Discrete[Any]", names: Sequence[str], argument: str) -> _Part:
    start = int(space.start)
    if names:
        return _named(names, argument, "What to do.", start)
    bounds = Field(ge=start, le=start + int(space.n) - 1, description="Number of the action.")
    return _Part({argument: (Annotated[int, bounds], ...)}, lambda values: values[argument])


def _box(space: gymnasium.spaces.Box, argument: str) -> _Part:
    size, whole = int(np.prod(space.shape)), np.issubdtype(space.dtype, np.integer)
    low, high = space.low.ravel().tolist(), space.high.ravel().tolist()
    if 0 < size <= _MOST_NUMBERS:
        names = [argument if size == 1 else f"{argument}_{i}" for i in range(size)]
        fields: dict[str, tuple[Any, Any]] = {}
        for i, one in enumerate(names):
            if whole:
                fields[one] = (Annotated[int, Field(ge=int(low[i]), le=int(high[i]))], ...)
            else:
                fields[one] = _number(low[i], high[i], ..., f"Number {i} of the action.")
        return _Part(
            fields,
            lambda values: np.array([values[one] for one in names], space.dtype).reshape(space.shape),
        )
    limits = Field(
        min_length=size, max_length=size, description=f"{size} numbers, an array of shape {space.shape}."
    )
    kind: Any = Annotated[list[int], limits] if whole else Annotated[list[_Finite], limits]

    def decode(values: Mapping[str, Any]) -> Any:
        array = np.array(values[argument], np.float64).reshape(space.shape)
        return np.clip(array, space.low, space.high).astype(space.dtype)

    return _Part({argument: (kind, ...)}, decode)


def _multi_discrete(space: gymnasium.spaces.MultiDiscrete, argument: str) -> _Part:
    sizes, starts = space.nvec.ravel().tolist(), np.broadcast_to(space.start, space.shape).ravel().tolist()
    names = [f"{argument}_{i}" for i in range(len(sizes))]
    fields: dict[str, tuple[Any, Any]] = {
        name: (Annotated[int, Field(ge=start, le=start + size - 1)], ...)
        for name, start, size in zip(names, starts, sizes, strict=True)
    }
    return _Part(
        fields, lambda values: np.array([values[name] for name in names], space.dtype).reshape(space.shape)
    )


def _multi_binary(space: gymnasium.spaces.MultiBinary, argument: str) -> _Part:
    size = int(np.prod(space.shape))
    names = [f"{argument}_{i}" for i in range(size)]
    return _Part(
        dict.fromkeys(names, (bool, False)),
        lambda values: np.array([values[name] for name in names], space.dtype).reshape(space.shape),
    )


def _text(space: gymnasium.spaces.Text, argument: str) -> _Part:
    limits = Field(min_length=space.min_length, max_length=space.max_length)
    allowed = frozenset(space.character_set)

    def decode(values: Mapping[str, Any]) -> str:
        return "".join(character for character in values[argument] if character in allowed)

    return _Part({argument: (Annotated[str, limits], ...)}, decode)


def _several(parts: Sequence[tuple[str, gymnasium.Space[Any]]], name: str, *, is_tuple: bool) -> _Part:
    made = {key: _part(space, f"{name}_{key}" if name else str(key)) for key, space in parts}
    fields = {argument: field for part in made.values() for argument, field in part.fields.items()}

    def decode(values: Mapping[str, Any]) -> Any:
        whole = {key: part.decode(values) for key, part in made.items()}
        return tuple(whole.values()) if is_tuple else whole

    return _Part(fields, decode)
