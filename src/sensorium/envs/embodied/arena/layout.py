"""A new episode in one world: walls, agent, objects and what is said; everything drawn from its seed."""

import math

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.draws import integer, shuffle, uniform
from sensorium.envs.embodied.arena.geometry import disc_is_free, is_visible
from sensorium.envs.embodied.arena.paths import fill_field, walking_distance
from sensorium.envs.embodied.arena.state import (
    AGENT_RADIUS_M,
    OBJECT_RADIUS_M,
    SOUND_IF_TOLD,
    SOUND_OF_ALL,
    SOUND_OF_TARGET,
    Rules,
    State,
)
from sensorium.envs.embodied.compiled import compiled

_ATTEMPTS = 400
_TRIES_PER_PLACE = 60
_AGENT_GAP_M = 1.5
_OBJECT_GAP_M = 1.6
_CLOSEST_SHARE = 0.5  # gaps shrink to this share of themselves when rooms are crowded
_WALL_GAP_M = 0.3
_SOUND_CHANNEL = 2  # index of "env_sound" in CHANNELS
_PHASES = 120


@compiled
def reset_worlds(state: State, rules: Rules, seeds: NDArray[np.uint64], mask: NDArray[np.bool_]) -> int:
    """Start a new episode in each world where `mask` is True; returns how many had no room for it."""
    unfurnished = 0
    rng = np.zeros(1, np.uint64)
    for world in range(seeds.size):
        if mask[world]:
            rng[0] = seeds[world]
            _draw_meaning(state, rules, rng, world)
            for attempt in range(_ATTEMPTS):
                share = 1.0 - (1.0 - _CLOSEST_SHARE) * attempt / _ATTEMPTS
                if _draw_places(state, rules, rng, world, share):
                    break
            else:
                unfurnished += 1
            state.last_pose[world] = state.pose[world]
            state.body[world] = 0.0
            state.clock[world] = 0
            state.distance[world] = walking_distance(state, rules, world)
    return unfurnished


@compiled
def _draw_meaning(state: State, rules: Rules, rng: NDArray[np.uint64], world: int) -> None:
    """Colours, shapes, the target, who sounds, and how the instruction reaches the agent."""
    colors, shapes = rules.colors.copy(), rules.shapes.copy()
    shuffle(rng, colors)
    shuffle(rng, shapes)
    state.target[world] = integer(rng, rules.num_objects)
    state.wording[world] = integer(rng, rules.num_sentences)
    state.voice[world] = integer(rng, rules.num_voices)
    state.channel[world] = -1
    if rules.channels.size > 0:
        state.channel[world] = rules.channels[integer(rng, rules.channels.size)]
    told_by_sound = rules.sounding == SOUND_IF_TOLD and state.channel[world] == _SOUND_CHANNEL
    for item in range(rules.num_objects):
        state.color[world, item] = colors[0 if rules.look_alike else item]
        kind = 0
        if rules.shape_choice == 2 and not rules.look_alike:
            kind = item
        elif rules.shape_choice == 1 and not rules.look_alike:
            kind = integer(rng, shapes.size)
        state.shape[world, item] = shapes[kind]
        state.phase[world, item] = integer(rng, _PHASES)
        is_target = item == state.target[world]
        only_target = rules.sounding == SOUND_OF_TARGET or told_by_sound
        state.sounding[world, item] = rules.sounding == SOUND_OF_ALL or (only_target and is_target)


@compiled
def _draw_places(state: State, rules: Rules, rng: NDArray[np.uint64], world: int, share: float) -> bool:
    """Place walls, agent and objects; False when they do not fit or the target cannot be reached."""
    walls = state.walls[world]
    walls[1:-1, 1:-1] = 0
    for _ in range(rules.num_walls):
        walls[1 + integer(rng, rules.num_cells), 1 + integer(rng, rules.num_cells)] = 1
    state.objects[world] = np.nan
    if not _draw_point(state, rules, rng, world, (-1, share)):
        return False
    state.pose[world, 2] = uniform(rng, -math.pi, math.pi)
    target = state.target[world]
    if not _draw_point(state, rules, rng, world, (target, share)):
        return False
    if rules.hidden and _is_seen(state, rules, world):
        return False
    for item in range(rules.num_objects):
        if item != target and not _draw_point(state, rules, rng, world, (item, share)):
            return False
    if rules.num_walls > 0:
        fill_field(state, rules, world)
        return bool(walking_distance(state, rules, world) < np.inf)
    return True


@compiled
def _is_seen(state: State, rules: Rules, world: int) -> bool:
    """Whether a line from the agent to the target's middle or to either of its edges meets no wall."""
    x, y = state.pose[world, 0], state.pose[world, 1]
    goal = state.objects[world, state.target[world]]
    dx, dy = goal[0] - x, goal[1] - y
    scale = OBJECT_RADIUS_M / math.hypot(dx, dy)
    for side in range(-1, 2):
        edge = (goal[0] - side * scale * dy, goal[1] + side * scale * dx)
        if is_visible(state.walls[world], rules.cell_m, x, y, edge):
            return True
    return False


@compiled
def _draw_point(
    state: State, rules: Rules, rng: NDArray[np.uint64], world: int, which: tuple[int, float]
) -> bool:
    """Find a free place for the agent (item -1) or an object, away from what already stands there."""
    item, share = which
    radius = AGENT_RADIUS_M if item < 0 else OBJECT_RADIUS_M
    margin = radius + _WALL_GAP_M * share
    for _ in range(_TRIES_PER_PLACE):
        x = uniform(rng, margin, rules.size_m - margin)
        y = uniform(rng, margin, rules.size_m - margin)
        if not disc_is_free(state.walls[world], rules.cell_m, x, y, margin - 1e-9):
            continue
        if item < 0:
            state.pose[world, 0], state.pose[world, 1] = x, y
            return True
        fits = math.hypot(x - state.pose[world, 0], y - state.pose[world, 1]) >= _AGENT_GAP_M * share
        for other in range(rules.num_objects):
            if other == item or np.isnan(state.objects[world, other, 0]):  # stands nowhere yet
                continue
            gap = math.hypot(x - state.objects[world, other, 0], y - state.objects[world, other, 1])
            fits = fits and gap >= _OBJECT_GAP_M * share
        if fits:
            state.objects[world, item, 0], state.objects[world, item, 1] = x, y
            return True
    return False
