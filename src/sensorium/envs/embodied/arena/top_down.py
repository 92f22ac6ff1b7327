"""A map of one world for people."""

import math

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.camera import PALETTE
from sensorium.envs.embodied.arena.state import AGENT_RADIUS_M, OBJECT_RADIUS_M, Rules, State

MAP_SIZE = 240
"""Side of the map in pixels."""

_BORDER = 8
_FLOOR, _WALL, _LINE = (238, 233, 224), (112, 104, 96), (30, 30, 30)
_TARGET, _SOUND, _AGENT = (0, 0, 0), (120, 170, 255), (255, 140, 0)
_BALL, _BOX, _CONE, _PILLAR = 0, 1, 2, 3


def draw_map(state: State, rules: Rules, world: int) -> NDArray[np.uint8]:
    """Draw one world from above, x to the right and y upwards.

    The agent is the orange disc with a dark nose, the target wears a black ring, what sounds a blue one.

    Returns:
        (MAP_SIZE, MAP_SIZE, 3) uint8.
    """
    picture = np.empty((MAP_SIZE, MAP_SIZE, 3), np.uint8)
    picture[:] = _WALL
    pixels = np.arange(MAP_SIZE) + 0.5 - _BORDER
    metres = pixels * rules.size_m / (MAP_SIZE - 2 * _BORDER)
    x, y = np.meshgrid(metres, rules.size_m - metres)
    inside = (x >= 0) & (y >= 0) & (x < rules.size_m) & (y < rules.size_m)
    cells = state.walls[world][
        np.clip(np.floor(y / rules.cell_m).astype(int) + 1, 0, rules.num_cells + 1),
        np.clip(np.floor(x / rules.cell_m).astype(int) + 1, 0, rules.num_cells + 1),
    ]
    picture[inside & (cells == 0)] = _FLOOR
    for item in range(rules.num_objects):
        _draw_object(picture, state, world, item, (x, y))
    agent_x, agent_y, heading = state.pose[world]
    forward = (x - agent_x) * math.cos(heading) + (y - agent_y) * math.sin(heading)
    sideways = (y - agent_y) * math.cos(heading) - (x - agent_x) * math.sin(heading)
    picture[np.hypot(forward, sideways) <= AGENT_RADIUS_M] = _AGENT
    picture[(forward >= 0) & (forward <= 2.2 * AGENT_RADIUS_M) & (abs(sideways) <= 0.05)] = _LINE
    return picture


def _draw_object(
    picture: NDArray[np.uint8],
    state: State,
    world: int,
    item: int,
    at: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    dx, dy = at[0] - state.objects[world, item, 0], at[1] - state.objects[world, item, 1]
    gap = np.hypot(dx, dy)
    if state.sounding[world, item]:
        picture[(gap > OBJECT_RADIUS_M + 0.16) & (gap <= OBJECT_RADIUS_M + 0.26)] = _SOUND
    if item == state.target[world]:
        picture[(gap > OBJECT_RADIUS_M + 0.04) & (gap <= OBJECT_RADIUS_M + 0.12)] = _TARGET
    outlines = {
        _BALL: gap <= OBJECT_RADIUS_M,
        _BOX: np.maximum(abs(dx), abs(dy)) <= 0.26,
        _CONE: (dy >= -0.2) & (dy <= 0.3) & (abs(dx) <= (0.3 - dy) * 0.6),
        _PILLAR: gap <= 0.18,
    }
    picture[outlines[int(state.shape[world, item])]] = PALETTE[state.color[world, item]].astype(np.uint8)
