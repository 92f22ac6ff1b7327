"""Observations of any Gymnasium space as raw states."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from sensorium.core import Modality
from sensorium.observations import Source

_LEAST_PICTURE_PX = 16
_MOST_NAMED = 64  # numbers of a vector that get a line each
_DIRECTIONS = ("right", "down", "left", "up")


def has_picture(space: gymnasium.Space[Any]) -> bool:
    """Whether an observation holds a picture."""
    match space:
        case gymnasium.spaces.Dict():
            return any(has_picture(one) for one in space.spaces.values())
        case gymnasium.spaces.Tuple():
            return any(has_picture(one) for one in space.spaces)
        case _:
            return _is_picture(space)


def view(space: gymnasium.Space[Any], value: Any, names: Sequence[str] = ()) -> dict[str, Any]:
    """An observation as named raw states.

    Args:
        space: What it belongs to.
        value: The observation.
        names: Of its numbers, where they are known.
    """
    if isinstance(space, gymnasium.spaces.Dict):
        if "mission" in space.spaces and "image" in space.spaces and "direction" in space.spaces:
            return _minigrid(value)
        state: dict[str, Any] = {}
        for key, one in space.spaces.items():
            state |= _renamed(view(one, value[key]), str(key))
        return state
    if isinstance(space, gymnasium.spaces.Tuple):
        if all(isinstance(one, gymnasium.spaces.Discrete) for one in space.spaces):
            return {"state": _named_numbers([int(v) for v in value], names)}
        state = {}
        for number, one in enumerate(space.spaces):
            state |= _renamed(view(one, value[number]), f"part_{number}")
        return state
    return {"state": _leaf(space, value, names)}


def _renamed(state: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name if key == "state" else f"{name}/{key}": raw for key, raw in state.items()}


def _leaf(space: gymnasium.Space[Any], value: Any, names: Sequence[str]) -> Any:
    if isinstance(space, gymnasium.spaces.Discrete):
        last = int(space.start) + int(space.n) - 1
        name = names[0] if names else "value"
        return f"{name} {int(value)} of {int(space.start)} to {last}"
    if isinstance(space, gymnasium.spaces.Text) or isinstance(value, str):
        return str(value)
    if _is_picture(space):
        return Source(_as_rgb(np.asarray(value)), modality=Modality.IMAGE)
    if isinstance(
        space, gymnasium.spaces.Box | gymnasium.spaces.MultiDiscrete | gymnasium.spaces.MultiBinary
    ):
        array = np.asarray(value)
        if array.ndim <= 1 and array.size <= _MOST_NAMED:
            return _named_numbers(np.atleast_1d(array).tolist(), names)
        return Source(array, modality=Modality.TABLE if array.ndim == 2 else None)
    return repr(value)[:2000]


def _named_numbers(values: Sequence[float], names: Sequence[str]) -> Source:
    """Numbers with names, as a body that is felt."""
    known = names if len(names) == len(values) else [f"value_{i}" for i in range(len(values))]
    rounded = {name: float(f"{value:.6g}") for name, value in zip(known, values, strict=True)}
    return Source(rounded, modality=Modality.PROPRIO)


def _is_picture(space: gymnasium.Space[Any]) -> bool:
    if not isinstance(space, gymnasium.spaces.Box) or space.dtype != np.uint8:
        return False
    shape = space.shape
    is_large = len(shape) in (2, 3) and min(shape[:2]) >= _LEAST_PICTURE_PX
    return is_large and (len(shape) == 2 or shape[2] in (1, 3, 4)) and int(space.high.max()) == 255


def _as_rgb(array: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if array.ndim == 2:
        array = array[..., None]
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def _minigrid(value: Mapping[str, Any]) -> dict[str, Any]:
    """MiniGrid's grid of codes in words: what is in front of the agent, row by row."""
    image = np.asarray(value["image"])
    state: dict[str, Any] = {"mission": Source(str(value["mission"]), importance=3.0)}
    direction = int(value["direction"])
    if image.ndim != 3 or image.shape[0] > _LEAST_PICTURE_PX:
        state["image"] = Source(image, modality=Modality.IMAGE)
        state["direction"] = f"facing {_DIRECTIONS[direction]}"
        return state
    rows = []
    for row in range(image.shape[1]):
        cells = [
            _minigrid_cell(*(int(code) for code in image[column, row])) for column in range(image.shape[0])
        ]
        rows.append(" | ".join(cells))
    seen = "\n".join(rows)
    middle = image.shape[0] // 2 + 1
    state["view"] = (
        f"What the agent sees, facing {_DIRECTIONS[direction]} on the map. It stands in the last row, column "
        f"{middle} of {image.shape[0]} (there: what it carries), and looks towards the first row.\n{seen}"
    )
    return state


def _minigrid_cell(kind: int, color: int, condition: int) -> str:
    kinds = ("?", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent")
    colors = ("red", "green", "blue", "purple", "yellow", "grey")
    name = kinds[kind] if kind < len(kinds) else f"thing {kind}"
    if name == "door":
        opened = ("open", "closed", "locked")[condition] if condition < 3 else ""
        return f"{opened} {colors[color]} door"
    return f"{colors[color]} {name}" if name in ("key", "ball", "box", "goal") and color < 6 else name
