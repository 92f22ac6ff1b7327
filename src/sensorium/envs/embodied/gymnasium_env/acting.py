"""From the actions of a policy to those of an environment's action space."""

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sensorium.core import ActionKind, ConfigError
from sensorium.envs.embodied.base import ActionSpec

MAX_COMBINATIONS = 1024
"""Combinations of a MultiDiscrete or MultiBinary space that become the options of one choice."""

Key = str | int


class ActionCodec:
    """Turns options and parameters in [-1, 1] into actions of a Gymnasium space.

    - Discrete: its options; MultiDiscrete and MultiBinary: every combination is an option.
    - Box: parameters, scaled to its bounds; whole numbers are rounded.
    - A Tuple or Dict of one such choice and one Box: hybrid.

    Args:
        space: Of the environment's actions.
        names: Of its discrete options; used where their number fits.
        task: Name for messages.

    Raises:
        ConfigError: The space is another one, has too many options, or a Box without bounds.
    """

    def __init__(self, space: gymnasium.Space[Any], names: Sequence[str], task: str) -> None:
        self._kind, self._choice, self._box = _parts(space, task)
        self._space = space
        options = () if self._choice is None else _option_names(space, self._choice[1], names, task)
        parameters = () if self._box is None else _parameter_names(*self._box, task)
        self.spec = ActionSpec(kind=self._kind, option_names=options, continuous_names=parameters)
        """What the actions look like from outside."""
        if self._box is not None:
            box = self._box[1]
            self._low, self._high = box.low.astype(np.float64), box.high.astype(np.float64)

    def __call__(self, option: int, parameters: NDArray[np.float32] | None) -> Any:
        """The environment's action.

        Args:
            option: Index of the discrete option; not looked at for `continuous`.
            parameters: (C,) in [-1, 1]; None for `discrete`.
        """
        chosen = None if self._choice is None else _chosen(self._choice[1], option)
        if self._box is None or parameters is None:
            return chosen
        scaled = self._scaled(self._box[1], parameters)
        if self._choice is None:
            return scaled
        both = {self._choice[0]: chosen, self._box[0]: scaled}
        return both if isinstance(self._space, spaces.Dict) else (both[0], both[1])

    def _scaled(self, box: spaces.Box, parameters: NDArray[np.float32]) -> NDArray[Any]:
        share = (parameters.astype(np.float64).reshape(box.shape) + 1.0) / 2.0
        value = self._low + share * (self._high - self._low)
        if np.issubdtype(box.dtype, np.integer):
            value = np.rint(value)
        # Casting may round beyond a bound.
        clipped: NDArray[Any] = np.clip(value.astype(box.dtype), box.low, box.high)
        return clipped


Choice = tuple[Key, Any]
Axis = tuple[Key, spaces.Box]


def _parts(space: gymnasium.Space[Any], task: str) -> tuple[ActionKind, Choice | None, Axis | None]:
    """Kind of the actions, and the choice and the box in them with their keys."""
    if _is_choice(space):
        return ActionKind.DISCRETE, ("action", space), None
    if isinstance(space, spaces.Box):
        return ActionKind.CONTINUOUS, None, ("action", space)
    inner: dict[Key, Any] = {}
    if isinstance(space, spaces.Dict):
        inner.update(space.spaces)
    elif isinstance(space, spaces.Tuple):
        inner = dict(enumerate(space.spaces))
    choices = [(key, one) for key, one in inner.items() if _is_choice(one)]
    boxes = [(key, one) for key, one in inner.items() if isinstance(one, spaces.Box)]
    if len(inner) == 2 and len(choices) == len(boxes) == 1:
        return ActionKind.HYBRID, choices[0], boxes[0]
    raise ConfigError(
        f"The actions of {task} are {space}, which a policy cannot choose. Discrete, MultiDiscrete, "
        f"MultiBinary, Box, and a Tuple or Dict of one Discrete and one Box can be; put a "
        f"gymnasium.ActionWrapper around it and name that in --env.backend_options "
        f"'{{wrappers: [\"MODULE:CLASS\"]}}'."
    )


def _is_choice(space: Any) -> bool:
    return isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary)


def _sizes(choice: Any) -> tuple[int, ...]:
    """Number of options of each part of a choice."""
    if isinstance(choice, spaces.Discrete):
        return (int(choice.n),)
    if isinstance(choice, spaces.MultiBinary):
        return (2,) * int(np.prod(choice.shape))
    return tuple(int(n) for n in choice.nvec.reshape(-1))


def _chosen(choice: Any, option: int) -> Any:
    """The option of a choice as its space has it."""
    if isinstance(choice, spaces.Discrete):
        return np.int64(int(choice.start) + option)
    indices = np.array(np.unravel_index(option, _sizes(choice)), np.int64).reshape(choice.shape)
    if isinstance(choice, spaces.MultiBinary):
        return indices.astype(choice.dtype)
    return (indices + choice.start).astype(choice.dtype)


def _option_names(
    space: gymnasium.Space[Any], choice: Any, names: Sequence[str], task: str
) -> tuple[str, ...]:
    """Names of the options: the known ones, or their values."""
    sizes = _sizes(choice)
    count = math.prod(sizes)
    if not isinstance(choice, spaces.Discrete) and count > MAX_COMBINATIONS:
        raise ConfigError(
            f"The actions of {task} are {space}, with more than {MAX_COMBINATIONS} combinations, too many to "
            f"be the options of one choice. Put a gymnasium.ActionWrapper with fewer around it and name that "
            f"in --env.backend_options '{{wrappers: [\"MODULE:CLASS\"]}}'."
        )
    if space is choice and len(names) == count:
        return tuple(names)
    values = (np.asarray(_chosen(choice, option)).reshape(-1).tolist() for option in range(count))
    return tuple("action_" + "_".join(map(str, value)) for value in values)


def _parameter_names(key: Key, box: spaces.Box, task: str) -> tuple[str, ...]:
    if not (np.isfinite(box.low).all() and np.isfinite(box.high).all()):
        raise ConfigError(
            f"The actions of {task} have no finite bounds ({box}), so that [-1, 1] cannot be scaled to them. "
            f"Give the action space of the environment finite bounds, in it or in a gymnasium.ActionWrapper "
            f"that --env.backend_options '{{wrappers: [\"MODULE:CLASS\"]}}' names. Where "
            f"gymnasium.wrappers.ClipAction made them infinite, leave it out or put "
            f"gymnasium.wrappers.RescaleAction in its place."
        )
    name = "action" if isinstance(key, int) else key
    return tuple(f"{name}[{i}]" for i in range(int(np.prod(box.shape))))
