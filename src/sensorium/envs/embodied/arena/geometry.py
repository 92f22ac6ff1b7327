"""Discs, walls and lines in one room; everything compiled."""

import math

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.compiled import compiled

Walls = NDArray[np.uint8]
"""(cells + 2, cells + 2) indexed [y, x], 1 where there is wall; see `State.walls`."""


@compiled
def disc_is_free(walls: Walls, cell_m: float, x: float, y: float, radius: float) -> bool:
    """Whether a disc lies inside the room and touches no wall."""
    low_x, high_x = math.floor((x - radius) / cell_m) + 1, math.floor((x + radius) / cell_m) + 1
    low_y, high_y = math.floor((y - radius) / cell_m) + 1, math.floor((y + radius) / cell_m) + 1
    last = walls.shape[0] - 1
    if low_x < 1 or low_y < 1 or high_x >= last or high_y >= last:
        return False
    for row in range(low_y, high_y + 1):
        for column in range(low_x, high_x + 1):
            if walls[row, column] != 0:
                dx = x - min(max(x, (column - 1) * cell_m), column * cell_m)
                dy = y - min(max(y, (row - 1) * cell_m), row * cell_m)
                if dx * dx + dy * dy < radius * radius:
                    return False
    return True


@compiled
def push_out_of_walls(
    walls: Walls, cell_m: float, x: float, y: float, radius: float
) -> tuple[float, float, bool]:
    """Slide a disc out of the walls it has run into; returns x, y and whether it had."""
    size_m = (walls.shape[0] - 2) * cell_m
    margin = radius + 1e-6  # rounding must not leave the disc a hair inside the wall
    inside_x, inside_y = min(max(x, margin), size_m - margin), min(max(y, margin), size_m - margin)
    hit = inside_x != x or inside_y != y
    x, y = inside_x, inside_y
    centre_column, centre_row = int(x / cell_m) + 1, int(y / cell_m) + 1
    for row in range(centre_row - 1, centre_row + 2):
        for column in range(centre_column - 1, centre_column + 2):
            outer = row < 1 or column < 1 or row >= walls.shape[0] - 1 or column >= walls.shape[0] - 1
            if outer or walls[row, column] == 0:
                continue
            dx = x - min(max(x, (column - 1) * cell_m), column * cell_m)
            dy = y - min(max(y, (row - 1) * cell_m), row * cell_m)
            gap = math.sqrt(dx * dx + dy * dy)
            if 0.0 < gap < radius:
                x += dx / gap * (margin - gap)
                y += dy / gap * (margin - gap)
                hit = True
    return x, y, hit


@compiled
def wall_distance(
    walls: Walls, cell_m: float, x: float, y: float, step: tuple[float, float]
) -> tuple[float, int]:
    """Follow a ray through the cells until it meets a wall (digital differential analysis).

    Args:
        walls: The wall grid.
        cell_m: Side of a cell.
        x: Start.
        y: Start.
        step: Direction (dx, dy) of any length.

    Returns:
        How many times `step` leads to the wall, and which side was met: 0 across x, 1 across y.
    """
    dx, dy = step
    column, row = int(x / cell_m) + 1, int(y / cell_m) + 1
    ahead_x, ahead_y = (1 if dx > 0.0 else -1), (1 if dy > 0.0 else -1)
    per_cell_x = cell_m / abs(dx) if dx != 0.0 else np.inf
    per_cell_y = cell_m / abs(dy) if dy != 0.0 else np.inf
    next_x = ((column if dx > 0.0 else column - 1) * cell_m - x) / dx if dx != 0.0 else np.inf
    next_y = ((row if dy > 0.0 else row - 1) * cell_m - y) / dy if dy != 0.0 else np.inf
    while True:
        if next_x < next_y:
            column += ahead_x
            if walls[row, column] != 0:
                return next_x, 0
            next_x += per_cell_x
        else:
            row += ahead_y
            if walls[row, column] != 0:
                return next_y, 1
            next_y += per_cell_y


@compiled
def is_visible(walls: Walls, cell_m: float, x: float, y: float, to: tuple[float, float]) -> bool:
    """Whether the straight line between two points meets no wall."""
    dx, dy = to[0] - x, to[1] - y
    if dx == 0.0 and dy == 0.0:
        return True
    share, _ = wall_distance(walls, cell_m, x, y, (dx, dy))
    return share >= 1.0
