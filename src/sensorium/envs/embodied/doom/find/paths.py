"""How far it is to walk to an object, round walls and the other objects."""

import math

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.paths import spread
from sensorium.envs.embodied.doom.find.config import CELL_UNITS
from sensorium.envs.embodied.doom.find.room import TOUCH_UNITS, Room
from sensorium.envs.embodied.doom.find.wad import PLAYER_HALF_WIDTH

NODE_UNITS = 16
"""Distance between neighbouring nodes; a passage one cell wide has two rows of free ones."""

_CLEARANCE_UNITS = 4
_NARROW_COST = 5.0


class WalkingDistance:
    """Distances to one object of a room.

    Args:
        room: The room.
        goal: Index of the object; to touch another one counts as no way.
        berth_units: How far from touching another one a way should keep; nearer it counts several times.
    """

    def __init__(self, room: Room, goal: int, *, berth_units: int = 0) -> None:
        count = room.cells * CELL_UNITS // NODE_UNITS
        centres = (np.arange(count) + 0.5) * NODE_UNITS
        self._x, self._y = np.meshgrid(centres, centres)
        free, narrow = _free_of_walls(room, self._x, self._y), np.zeros_like(self._x, np.bool_)
        for index, (x, y) in enumerate(room.places):
            if index != goal:
                gap = np.maximum(np.abs(self._x - x), np.abs(self._y - y))
                free &= gap > TOUCH_UNITS + _CLEARANCE_UNITS
                narrow |= gap < TOUCH_UNITS + berth_units
        goal_x, goal_y = room.places[goal]
        near = np.maximum(np.abs(self._x - goal_x), np.abs(self._y - goal_y)) <= TOUCH_UNITS
        field = np.where(free & near, np.hypot(self._x - goal_x, self._y - goal_y), np.inf)
        self.field: NDArray[np.float32] = field.astype(np.float32)
        """(nodes, nodes) map units to walk from each node, indexed [y, x]; infinite where no way leads."""
        cost = np.where(free, np.where(narrow, _NARROW_COST, 1.0), np.inf)
        spread(self.field, cost.astype(np.float32), float(NODE_UNITS))

    def units(self, x: float, y: float) -> float:
        """Map units to walk from a place; infinite where no way leads from there."""
        column, row = int(x / NODE_UNITS), int(y / NODE_UNITS)
        for reach in (1, 2, 3):  # walls may have made the nearest nodes unusable
            window = (
                slice(max(row - reach, 0), row + reach + 1),
                slice(max(column - reach, 0), column + reach + 1),
            )
            ways = self.field[window] + np.hypot(self._x[window] - x, self._y[window] - y)
            if ways.size and np.isfinite(ways).any():
                return float(ways.min())
        return math.inf

    def next_place(self, x: float, y: float, steps: int) -> tuple[float, float]:
        """The node that lies some nodes further along the shortest way from a place."""
        ways = self.field + np.hypot(self._x - x, self._y - y)
        ways[np.hypot(self._x - x, self._y - y) > 2 * NODE_UNITS] = np.inf
        row, column = divmod(int(ways.argmin()), ways.shape[1])
        for _ in range(steps):
            rows = slice(max(row - 1, 0), row + 2)
            columns = slice(max(column - 1, 0), column + 2)
            window = self.field[rows, columns]
            best = divmod(int(window.argmin()), window.shape[1])
            row, column = rows.start + best[0], columns.start + best[1]
        return float(self._x[row, column]), float(self._y[row, column])


def _free_of_walls(room: Room, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where the player, a square, can stand."""
    half, size = PLAYER_HALF_WIDTH + _CLEARANCE_UNITS, room.cells * CELL_UNITS
    free: NDArray[np.bool_] = (x >= half) & (x <= size - half) & (y >= half) & (y <= size - half)
    for column, row in room.walls:
        gap_x = np.abs(x - (column + 0.5) * CELL_UNITS) - CELL_UNITS / 2
        gap_y = np.abs(y - (row + 0.5) * CELL_UNITS) - CELL_UNITS / 2
        free &= np.maximum(gap_x, gap_y) >= half
    return free
