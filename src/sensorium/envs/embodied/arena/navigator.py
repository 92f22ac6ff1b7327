"""Walking to a remembered place: dead reckoning, a map of obstacles drawn from depth, and a way round them.

The map lives in a frame of its own: the agent starts at its middle and looks along x.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.camera import CAMERA_HEIGHT_M
from sensorium.envs.embodied.arena.paths import spread
from sensorium.envs.embodied.arena.state import CONTROL_HZ
from sensorium.envs.embodied.compiled import compiled

FORWARD, TURN_LEFT, TURN_RIGHT = 0, 1, 2

_NODE_M = 0.2
_NODES = 65
_CLEARANCE_M = 0.36
_GOAL_RADIUS_M = 0.8
_FARTHEST_M = 4.0
_LOOK_AHEAD_M = 0.4
_TURN_COST_M = 0.03
_REVERSAL_COST_M = 0.3  # turning back right after a turn: without it two equal ways are never chosen from
_BLOCKED_COST = 12.0  # dear but finite: an agent that stands too close to something must get away


class Memory(NamedTuple):
    """What N agents remember."""

    pose: NDArray[np.float64]
    """(N, 3) x, y, heading in the map's frame."""
    blocked: NDArray[np.bool_]
    """(N, nodes, nodes) where something was seen to stand, grown by the agent's radius."""
    seen: NDArray[np.float64]
    """(N, points, 2) obstacles in view now, in the map's frame; NaN for none."""
    turned: NDArray[np.int64]
    """(N,) 1 where the last action was a turn to the left, -1 to the right, 0 elsewhere."""


def empty_memory(num_worlds: int, picture_size: int) -> Memory:
    """Memory of agents that have just opened their eyes."""
    return Memory(
        np.zeros((num_worlds, 3)),
        np.zeros((num_worlds, _NODES, _NODES), np.bool_),
        np.full((num_worlds, picture_size, 2), np.nan),
        np.zeros(num_worlds, np.int64),
    )


def advance(memory: Memory, proprio: NDArray[np.float32]) -> None:
    """Follow the agents' own movement: `proprio` is (N, 4), speed and turn rate first."""
    memory.pose[:, 2] += proprio[:, 1] / CONTROL_HZ
    memory.pose[:, 0] += proprio[:, 0] / CONTROL_HZ * np.cos(memory.pose[:, 2])
    memory.pose[:, 1] += proprio[:, 0] / CONTROL_HZ * np.sin(memory.pose[:, 2])


def to_map(memory: Memory, place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn places (N, ..., 2) ahead and to the left of each agent into the map's frame."""
    extra = (1,) * (place.ndim - 2)
    x, y, heading = (memory.pose[:, axis].reshape(-1, *extra) for axis in range(3))
    ahead, left = place[..., 0], place[..., 1]
    mapped = [
        x + ahead * np.cos(heading) - left * np.sin(heading),
        y + ahead * np.sin(heading) + left * np.cos(heading),
    ]
    return np.stack(mapped, axis=-1)


def look(memory: Memory, depth: NDArray[np.float32]) -> None:
    """Map what stands on the floor: per column the nearest pixel that the floor does not explain.

    Args:
        memory: Changed in place.
        depth: (N, H, W, 1) metres along the viewing axis.
    """
    size = depth.shape[1]
    focal = size / 2
    rows = np.arange(size // 2, size)
    floor = CAMERA_HEIGHT_M / ((rows + 0.5 - focal) / focal)
    below = depth[:, size // 2 :, :, 0]
    nearest = np.where(below < 0.97 * floor[None, :, None], below, np.inf).min(axis=1).astype(np.float64)
    nearest[(nearest > _FARTHEST_M) | (nearest <= 0.0)] = np.nan
    leftwards = -((np.arange(size) + 0.5 - focal) / focal)
    memory.seen[:] = to_map(memory, np.stack([nearest, nearest * leftwards], axis=-1))
    _mark(memory)


@compiled
def _mark(memory: Memory) -> None:
    reach = int(_CLEARANCE_M / _NODE_M) + 1
    for world in range(memory.pose.shape[0]):
        for point in range(memory.seen.shape[1]):
            x, y = memory.seen[world, point, 0], memory.seen[world, point, 1]
            if np.isnan(x):
                continue
            column, row = round(x / _NODE_M) + _NODES // 2, round(y / _NODE_M) + _NODES // 2
            for near_row in range(max(row - reach, 0), min(row + reach + 1, _NODES)):
                for near_column in range(max(column - reach, 0), min(column + reach + 1, _NODES)):
                    dx = (near_column - _NODES // 2) * _NODE_M - x
                    dy = (near_row - _NODES // 2) * _NODE_M - y
                    if dx * dx + dy * dy < _CLEARANCE_M * _CLEARANCE_M:
                        memory.blocked[world, near_row, near_column] = True


@compiled
def walk_to(memory: Memory, goal: NDArray[np.float64], turn_rad: float) -> NDArray[np.int64]:
    """Choose the next discrete action on the way to each world's goal.

    Args:
        memory: What the agents remember.
        goal: (N, 2) in the map's frame; NaN where there is none: the agent turns to look around.
        turn_rad: Angle of one turn.

    Returns:
        (N,) FORWARD, TURN_LEFT or TURN_RIGHT.
    """
    actions = np.full(goal.shape[0], TURN_LEFT, np.int64)
    field = np.empty((_NODES, _NODES), np.float32)
    half_turns = round(math.pi / turn_rad)
    for world in range(goal.shape[0]):
        if np.isnan(goal[world, 0]):
            continue
        _fill(memory.blocked[world], goal[world], field)
        x, y, heading = memory.pose[world]
        best, best_cost = half_turns, np.inf
        for turns in range(-half_turns, half_turns + 1):
            angle = heading + turns * turn_rad
            there = (x + _LOOK_AHEAD_M * math.cos(angle), y + _LOOK_AHEAD_M * math.sin(angle))
            cost = _field_at(field, there) + _TURN_COST_M * abs(turns)
            if turns * memory.turned[world] < 0:
                cost += _REVERSAL_COST_M
            if cost < best_cost:
                best, best_cost = turns, cost
        if best == 0 and best_cost < np.inf:
            actions[world] = FORWARD
        elif best < 0:
            actions[world] = TURN_RIGHT
        memory.turned[world] = 1 if best > 0 else -1 if best < 0 else 0
    return actions


@compiled
def _fill(blocked: NDArray[np.bool_], goal: NDArray[np.float64], field: NDArray[np.float32]) -> None:
    """Cost of the way to the goal; its surroundings count as free, since it stands there itself."""
    cost = np.ones((_NODES, _NODES), np.float32)
    for row in range(_NODES):
        for column in range(_NODES):
            dx, dy = (column - _NODES // 2) * _NODE_M - goal[0], (row - _NODES // 2) * _NODE_M - goal[1]
            gap = math.hypot(dx, dy)
            if blocked[row, column] and gap > _GOAL_RADIUS_M:
                cost[row, column] = _BLOCKED_COST
            field[row, column] = gap if gap < _NODE_M else np.inf
    spread(field, cost, _NODE_M)


@compiled
def _field_at(field: NDArray[np.float32], place: tuple[float, float]) -> float:
    """Bilinear reading of the field; infinite outside the map."""
    column, row = place[0] / _NODE_M + _NODES // 2, place[1] / _NODE_M + _NODES // 2
    left, low = math.floor(column), math.floor(row)
    if left < 0 or low < 0 or left >= _NODES - 1 or low >= _NODES - 1:
        return np.inf
    right_share, high_share = column - left, row - low
    bottom = field[low, left] * (1 - right_share) + field[low, left + 1] * right_share
    top = field[low + 1, left] * (1 - right_share) + field[low + 1, left + 1] * right_share
    return float(bottom * (1 - high_share) + top * high_share)
