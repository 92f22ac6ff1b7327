"""Draws scenes with the arena's own camera and map."""

import functools
import math
import threading
from collections.abc import Set
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sensorium.core import require
from sensorium.envs.visual_qa.scenes.model import Scene, Thing

if TYPE_CHECKING:
    from sensorium.envs.embodied.arena.backend import ArenaBackend

ROOM_SIZE_M = 8.0
_LOCK = threading.Lock()  # an arena is changed while it is drawn
_FAR_M = 1000.0
_MAP_PIXELS = 240


def draw_scene(scene: Scene) -> NDArray[np.uint8]:
    """The picture of a scene.

    Returns:
        (size, size, 3) uint8.

    Raises:
        MissingDependencyError: What the arena needs is not installed.
    """
    with _LOCK:
        arena = _furnished(scene)
        if scene.kind == "room":
            return _look(arena)
        plan = arena.render(0)
        times = max(1, scene.size // _MAP_PIXELS)
        return plan.repeat(times, axis=0).repeat(times, axis=1)


def with_pixels(scene: Scene) -> Scene | None:
    """The scene with the number of pixels of everything in it; None when a thing is hard to see.

    A thing is told by what changes when it is taken away. It must be plain to see, or not to be seen at all.
    """
    with _LOCK:
        everything = set(range(len(scene.things)))
        whole, empty = _look(_furnished(scene)), _look(_furnished(scene, hidden=everything))
        counted = []
        for index, thing in enumerate(scene.things):
            shown = _changed(whole, _look(_furnished(scene, hidden={index})))
            if shown and (shown < _least(scene.size) or abs(scene.across(thing)) > 0.92):
                return None
            if shown and shown < 0.6 * _changed(_look(_furnished(scene, hidden=everything - {index})), empty):
                return None
            counted.append(thing.model_copy(update={"num_pixels": shown}))
    return scene.model_copy(update={"things": tuple(counted)})


def random_room(seed: int, num_things: int, size: int) -> Scene:
    """A room as the arena furnishes it.

    Args:
        seed: The same gives the same room.
        num_things: Objects in it.
        size: Of the picture, pixels.
    """
    from sensorium.envs.embodied.arena.config import COLORS, SHAPES

    with _LOCK:
        arena = _arena(num_things, size)
        arena.reset(np.array([seed], np.uint64), np.ones(1, np.bool_))
        state = arena.state
        things = tuple(
            Thing(
                color=COLORS[state.color[0, item]],
                shape=SHAPES[state.shape[0, item]],
                x=round(float(state.objects[0, item, 0]), 3),
                y=round(float(state.objects[0, item, 1]), 3),
            )
            for item in range(num_things)
        )
        x, y, heading = (round(float(value), 3) for value in state.pose[0])
    return Scene(kind="room", room_size_m=ROOM_SIZE_M, x=x, y=y, heading=heading, things=things, size=size)


def _look(arena: "ArenaBackend") -> NDArray[np.uint8]:
    picture: NDArray[np.uint8] = np.array(arena.observe()["rgb"])[0]
    return picture


def _furnished(scene: Scene, hidden: Set[int] = frozenset()) -> "ArenaBackend":
    """An arena that holds the scene, without some of its things."""
    from sensorium.envs.embodied.arena.config import COLORS, SHAPES

    arena = _arena(len(scene.things), scene.size)
    state = arena.state
    state.pose[0] = scene.x, scene.y, scene.heading
    state.target[0] = -1
    state.sounding[0] = False
    behind = scene.x - _FAR_M * math.cos(scene.heading), scene.y - _FAR_M * math.sin(scene.heading)
    for item, thing in enumerate(scene.things):
        state.objects[0, item] = behind if item in hidden else (thing.x, thing.y)
        state.color[0, item], state.shape[0, item] = COLORS.index(thing.color), SHAPES.index(thing.shape)
    return arena


@functools.cache
def _arena(num_things: int, size: int) -> "ArenaBackend":
    """An arena with one world; made once, for it takes a while."""
    require("numba", extra="rl", purpose="drawing scenes of the arena")
    from sensorium.envs.embodied.arena.backend import ArenaBackend
    from sensorium.envs.embodied.arena.config import ArenaOptions
    from sensorium.envs.embodied.config import EmbodiedEnvConfig

    options = ArenaOptions(
        room_size_m=ROOM_SIZE_M, num_objects=num_things, shape_choice="random", num_threads=1
    )
    arena = ArenaBackend(EmbodiedEnvConfig(task="arena/find", image_size=size), options, 1)
    arena.reset(np.zeros(1, np.uint64), np.ones(1, np.bool_))
    return arena


def _changed(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> int:
    return int((a != b).any(axis=2).sum())


def _least(size: int) -> int:
    """Pixels from which a thing can be told."""
    return max(12, size * size // 700)
