"""One control step: movement, collisions, what was touched, and the reward."""

import math

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.geometry import disc_is_free, push_out_of_walls
from sensorium.envs.embodied.arena.paths import walking_distance
from sensorium.envs.embodied.arena.state import (
    AGENT_RADIUS_M,
    CONTROL_HZ,
    INTERACT_M,
    OBJECT_RADIUS_M,
    REACH_M,
    Rules,
    State,
)
from sensorium.envs.embodied.compiled import compiled


@compiled
def step_worlds(
    state: State,
    rules: Rules,
    commands: NDArray[np.float64],
    active: NDArray[np.bool_],
    reward: NDArray[np.float32],
    ended: NDArray[np.bool_],
) -> None:
    """Advance the active worlds by one control step.

    Args:
        state: The worlds; changed in place.
        rules: What they share.
        commands: (N, 3) forward and turn in [-1, 1] (turn > 0 is to the left), and interact > 0.5.
        active: (N,) which worlds advance.
        reward: (N,) filled in.
        ended: (N, 2) filled in: terminated, success.
    """
    for world in range(active.size):
        reward[world] = 0.0
        ended[world, 0] = False
        ended[world, 1] = False
        if not active[world]:
            continue
        interact = commands[world, 2] > 0.5
        _move(state, rules, world, commands[world, 0] * rules.forward_m, commands[world, 1] * rules.turn_rad)
        state.body[world, 3] = 1.0 if interact else 0.0
        state.clock[world] += 1
        before = state.distance[world]
        after = walking_distance(state, rules, world)
        if after < np.inf:
            state.distance[world] = after
        gained = rules.shaping * (before - state.distance[world]) - rules.step_cost
        chosen = _chosen_object(state, rules, world, interact)
        if chosen >= 0:
            ended[world, 0] = True
            ended[world, 1] = chosen == state.target[world]
            gained += rules.success_reward if ended[world, 1] else -rules.wrong_penalty
        reward[world] = gained


@compiled
def _move(state: State, rules: Rules, world: int, forward: float, turn: float) -> None:
    """Turn, then walk; walls and objects push the agent aside."""
    pose = state.pose[world]
    state.last_pose[world] = pose
    heading = pose[2] + turn
    heading = (heading + math.pi) % (2.0 * math.pi) - math.pi
    start_x, start_y = pose[0], pose[1]
    x, y = start_x + forward * math.cos(heading), start_y + forward * math.sin(heading)
    bumped = False
    apart = AGENT_RADIUS_M + OBJECT_RADIUS_M
    for item in range(rules.num_objects):
        dx, dy = x - state.objects[world, item, 0], y - state.objects[world, item, 1]
        gap = math.hypot(dx, dy)
        if 0.0 < gap < apart:
            x, y = x + dx / gap * (apart - gap), y + dy / gap * (apart - gap)
            bumped = True
    for _ in range(2):
        x, y, hit = push_out_of_walls(state.walls[world], rules.cell_m, x, y, AGENT_RADIUS_M)
        bumped = bumped or hit
    if not disc_is_free(state.walls[world], rules.cell_m, x, y, AGENT_RADIUS_M):
        x, y, bumped = start_x, start_y, True  # wedged between walls: stay
    pose[0], pose[1], pose[2] = x, y, heading
    progress = (x - start_x) * math.cos(heading) + (y - start_y) * math.sin(heading)
    state.body[world, 0] = progress * CONTROL_HZ
    state.body[world, 1] = turn * CONTROL_HZ
    state.body[world, 2] = 1.0 if bumped else 0.0


@compiled
def _chosen_object(state: State, rules: Rules, world: int, interact: bool) -> int:
    """Index of the object that this step chose, or -1."""
    if rules.require_interact and not interact:
        return -1
    nearest, limit = -1, INTERACT_M if rules.require_interact else REACH_M
    for item in range(rules.num_objects):
        dx = state.objects[world, item, 0] - state.pose[world, 0]
        dy = state.objects[world, item, 1] - state.pose[world, 1]
        gap = math.hypot(dx, dy)
        ahead = dx * math.cos(state.pose[world, 2]) + dy * math.sin(state.pose[world, 2]) > 0.0
        if gap <= limit and (ahead or not rules.require_interact):
            nearest, limit = item, gap
    return nearest
