"""Walking distance to the target round walls and other objects: a field of one room."""

import math

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.geometry import disc_is_free
from sensorium.envs.embodied.arena.state import AGENT_RADIUS_M, NODES_PER_CELL, REACH_M, Rules, State
from sensorium.envs.embodied.compiled import compiled

_CLEARANCE_M = 0.05


@compiled
def fill_field(state: State, rules: Rules, world: int) -> None:
    """Fill `state.field[world]`; other objects count as obstacles, since touching one ends the episode."""
    field = state.field[world]
    count = field.shape[0]
    spacing = rules.cell_m / NODES_PER_CELL
    target = state.target[world]
    cost = np.ones((count, count), np.float32)
    for row in range(count):
        for column in range(count):
            x, y = (column + 0.5) * spacing, (row + 0.5) * spacing
            open_here = disc_is_free(state.walls[world], rules.cell_m, x, y, AGENT_RADIUS_M + _CLEARANCE_M)
            for other in range(rules.num_objects):
                gap = math.hypot(x - state.objects[world, other, 0], y - state.objects[world, other, 1])
                if other != target and gap < REACH_M + _CLEARANCE_M:
                    open_here = False
            cost[row, column] = 1.0 if open_here else np.inf
            gap = math.hypot(x - state.objects[world, target, 0], y - state.objects[world, target, 1])
            field[row, column] = gap if open_here and gap < REACH_M else np.inf
    spread(field, cost, spacing)


@compiled
def spread(field: NDArray[np.float32], cost: NDArray[np.float32], spacing: float) -> None:
    """Carry distances from the nodes that have one to their eight neighbours until none shrinks.

    Args:
        field: (nodes, nodes) distances so far, infinite where unknown; changed in place.
        cost: (nodes, nodes) factor on the way into each node; infinite where none leads.
        spacing: Metres between neighbours.
    """
    count = field.shape[0]
    queue = np.empty(count * count, np.int64)  # a ring: no node is in it twice
    waiting = np.zeros(count * count, np.bool_)
    head, length = 0, 0
    for place in range(count * count):
        if field[place // count, place % count] < np.inf:
            queue[length] = place
            waiting[place] = True
            length += 1
    while length > 0:
        place = queue[head]
        head = (head + 1) % queue.size
        length -= 1
        waiting[place] = False
        row, column = place // count, place % count
        for near_row in range(max(row - 1, 0), min(row + 2, count)):
            for near_column in range(max(column - 1, 0), min(column + 2, count)):
                diagonal = near_row != row and near_column != column
                way = np.float32(spacing * (1.4142135623730951 if diagonal else 1.0))
                reached = field[row, column] + way * cost[near_row, near_column]
                if reached >= field[near_row, near_column]:
                    continue
                field[near_row, near_column] = reached
                near = near_row * count + near_column
                if not waiting[near]:
                    waiting[near] = True
                    front = queue[head] if length > 0 else near
                    if reached < field[front // count, front % count]:  # small distances first: less to redo
                        head = (head - 1) % queue.size
                        queue[head] = near
                    else:
                        queue[(head + length) % queue.size] = near
                    length += 1


@compiled
def walking_distance(state: State, rules: Rules, world: int) -> float:
    """Metres from the agent to the target's centre: straight in an open room, along the field among walls.

    Infinite where the target cannot be reached.
    """
    x, y = state.pose[world, 0], state.pose[world, 1]
    target = state.target[world]
    if rules.num_walls == 0:
        return math.hypot(x - state.objects[world, target, 0], y - state.objects[world, target, 1])
    field = state.field[world]
    spacing = rules.cell_m / NODES_PER_CELL
    column, row = int(x / spacing), int(y / spacing)
    best = np.inf
    for reach in range(1, 4):  # walls may have made the nearest nodes unusable
        for near_row in range(max(row - reach, 0), min(row + reach + 1, field.shape[0])):
            for near_column in range(max(column - reach, 0), min(column + reach + 1, field.shape[0])):
                gap = math.hypot(x - (near_column + 0.5) * spacing, y - (near_row + 0.5) * spacing)
                best = min(best, field[near_row, near_column] + gap)
        if best < np.inf:
            break
    return best
