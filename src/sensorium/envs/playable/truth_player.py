"""Walks to the target of the arena with a map of the room: round walls and past other objects."""

import heapq
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.state import AGENT_RADIUS_M, REACH_M

_NODE_M = 0.1
_BERTHS_M = (0.2, 0.12, 0.04)  # kept to other objects, as much as the room allows
_WALL_BERTH_M = 0.04
_DETOUR = 2.0  # what a metre to the map weighs against a metre on it
_TOUCH_M = REACH_M + 0.01
_LOOK_AHEAD_M = 0.6
_STEPS = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx)


class TruthPlayer:
    """Knows where everything is.

    Args:
        truth: What the arena's `describe` says at the beginning.
        turn_deg: Angle of one turn.
        forward_m: Length of one step.
    """

    def __init__(self, truth: Mapping[str, Any], turn_deg: float, forward_m: float) -> None:
        self._turn_rad, self._forward_m = math.radians(turn_deg), forward_m
        self._others = [
            tuple(item["position_m"]) for i, item in enumerate(truth["objects"]) if i != truth["target"]
        ]
        self._target: tuple[float, float] = tuple(truth["objects"][truth["target"]]["position_m"])
        self._maps = [_walking_distance(truth, self._target, berth_m) for berth_m in _BERTHS_M]

    def act(self, truth: Mapping[str, Any]) -> str:
        """Name of the discrete action for what `describe` says now."""
        x, y = truth["agent"]["position_m"]
        goal_x, goal_y = self._goal(x, y)
        bearing = math.atan2(goal_y - y, goal_x - x) - truth["agent"]["heading_rad"]
        bearing = math.atan2(math.sin(bearing), math.cos(bearing))
        turns = self._turns((x, y), truth["agent"]["heading_rad"], bearing)
        return "forward" if turns == 0 else "turn_left" if turns > 0 else "turn_right"

    def _turns(self, place: tuple[float, float], heading: float, bearing: float) -> int:
        """Turns, left ones positive, to the direction nearest to the goal's that touches nothing else."""
        half = round(math.pi / self._turn_rad)
        for turns in sorted(range(-half, half + 1), key=lambda n: abs(n * self._turn_rad - bearing)):
            angle = heading + turns * self._turn_rad
            ahead = (
                place[0] + self._forward_m * math.cos(angle),
                place[1] + self._forward_m * math.sin(angle),
            )
            if all(math.dist(ahead, other) > _TOUCH_M for other in self._others):
                return turns
        return 0

    def _goal(self, x: float, y: float) -> tuple[float, float]:
        """A place on the way, a little ahead; the target itself once it is near."""
        if math.hypot(self._target[0] - x, self._target[1] - y) <= REACH_M + _LOOK_AHEAD_M / 2:
            return self._target
        at = _node(x, y, len(self._maps[0]))
        walk_m = next((one for one in self._maps if math.isfinite(one[at])), self._maps[-1])
        if not math.isfinite(walk_m[at]):  # too near to something: away from it first
            rows, columns = np.nonzero(np.isfinite(walk_m))
            gaps_m = _NODE_M * np.hypot(rows - at[0], columns - at[1])
            best = int(np.argmin(walk_m[rows, columns] + _DETOUR * gaps_m))
            at = int(rows[best]), int(columns[best])
        for _ in range(round(_LOOK_AHEAD_M / _NODE_M)):
            around = [at, *((at[0] + dy, at[1] + dx) for dy, dx in _STEPS)]
            inside = (node for node in around if all(0 <= i < len(walk_m) for i in node))
            at = min(inside, key=lambda node: float(walk_m[node]))
        return (at[1] + 0.5) * _NODE_M, (at[0] + 0.5) * _NODE_M


def _node(x: float, y: float, count: int) -> tuple[int, int]:
    return min(max(int(y / _NODE_M), 0), count - 1), min(max(int(x / _NODE_M), 0), count - 1)


def _walking_distance(
    truth: Mapping[str, Any], target: tuple[float, float], berth_m: float
) -> NDArray[np.float64]:
    """Metres to walk to the target from every node of a grid [y, x]; infinite where one cannot be."""
    free = _free(truth, berth_m)
    walk_m = np.full(free.shape, np.inf)
    start = _node(*target, len(free))
    walk_m[start] = 0.0
    queue = [(0.0, start)]
    while queue:
        so_far, (row, column) = heapq.heappop(queue)
        if so_far > walk_m[row, column]:
            continue
        for dy, dx in _STEPS:
            node = (row + dy, column + dx)
            if not (0 <= node[0] < len(free) and 0 <= node[1] < len(free) and free[node]):
                continue
            length = so_far + _NODE_M * math.hypot(dy, dx)
            if length < walk_m[node]:
                walk_m[node] = length
                heapq.heappush(queue, (length, node))
    return walk_m


def _free(truth: Mapping[str, Any], berth_m: float) -> NDArray[np.bool_]:
    """Where the middle of the agent may be."""
    size_m, cell_m = float(truth["room_size_m"]), float(truth["cell_m"])
    places = (np.arange(round(size_m / _NODE_M)) + 0.5) * _NODE_M
    x, y = np.meshgrid(places, places)
    keep_m = AGENT_RADIUS_M + _WALL_BERTH_M
    free: NDArray[np.bool_] = (np.minimum(x, y) > keep_m) & (np.maximum(x, y) < size_m - keep_m)
    for row, line in enumerate(truth["walls"]):
        for column, is_wall in enumerate(line):
            if is_wall:
                dx = np.maximum(np.abs(x - (column + 0.5) * cell_m) - cell_m / 2, 0.0)
                dy = np.maximum(np.abs(y - (row + 0.5) * cell_m) - cell_m / 2, 0.0)
                free &= np.hypot(dx, dy) > keep_m
    for index, item in enumerate(truth["objects"]):
        if index != truth["target"]:
            other_x, other_y = item["position_m"]
            free &= np.hypot(x - other_x, y - other_y) > REACH_M + berth_m
    target_x, target_y = truth["objects"][truth["target"]]["position_m"]
    free |= np.hypot(x - target_x, y - target_y) < REACH_M / 2
    return free
