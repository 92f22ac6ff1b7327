"""What N worlds are made of: arrays whose rows are worlds, and the rules that all of them share."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.config import CHANNELS, COLORS, SHAPES, ArenaOptions

CONTROL_HZ = 10.0
"""Steps per simulated second."""

AGENT_RADIUS_M = 0.2
OBJECT_RADIUS_M = 0.3
REACH_M = AGENT_RADIUS_M + OBJECT_RADIUS_M + 0.1
"""Distance between centres at which an object is touched."""
INTERACT_M = AGENT_RADIUS_M + OBJECT_RADIUS_M + 0.6
"""Distance between centres from which `interact` chooses an object."""

NODES_PER_CELL = 4
"""Resolution of the walking-distance field."""

SHAPE_CHOICES = ("same", "random", "distinct")
SOUND_OF_ALL, SOUND_OF_TARGET, SOUND_IF_TOLD = 0, 1, 2
"""Which objects sound: all, the target, or the target in episodes whose channel is `env_sound`."""


class Rules(NamedTuple):
    """Numbers that all worlds share, in a form that compiled loops take."""

    size_m: float
    cell_m: float
    num_cells: int
    """Cells along one side, without the border."""
    num_objects: int
    num_walls: int
    hidden: bool
    """Whether the target must be out of sight at the start, behind a wall."""
    look_alike: bool
    """Whether all objects share colour and shape."""
    shape_choice: int
    sounding: int
    require_interact: bool
    forward_m: float
    turn_rad: float
    success_reward: float
    wrong_penalty: float
    step_cost: float
    shaping: float
    num_sentences: int
    """Ways to say one thing."""
    num_voices: int
    colors: NDArray[np.int64]
    shapes: NDArray[np.int64]
    channels: NDArray[np.int64]
    """Channels to draw from; empty where the instruction is always given."""


class State(NamedTuple):
    """N worlds. Positions are metres from the room's lower left corner, angles radians counter-clockwise."""

    pose: NDArray[np.float64]
    """(N, 3) x, y, heading."""
    last_pose: NDArray[np.float64]
    """(N, 3) the pose one step earlier."""
    body: NDArray[np.float32]
    """(N, 4) forward speed in m/s, turn rate in rad/s, bumped, interacted."""
    clock: NDArray[np.int64]
    """(N,) steps since the episode began."""
    distance: NDArray[np.float64]
    """(N,) metres to walk to the target."""
    walls: NDArray[np.uint8]
    """(N, cells + 2, cells + 2) indexed [y, x], 1 for wall; the border is the outer wall."""
    field: NDArray[np.float32]
    """(N, nodes, nodes) metres to walk from each node to the target; infinite where unreachable."""
    objects: NDArray[np.float64]
    """(N, objects, 2) positions."""
    color: NDArray[np.int64]
    shape: NDArray[np.int64]
    phase: NDArray[np.int64]
    """(N, objects) where in its on/off pattern an object's sound begins, in frames."""
    sounding: NDArray[np.bool_]
    """(N, objects)."""
    target: NDArray[np.int64]
    """(N,) index of the target."""
    wording: NDArray[np.int64]
    """(N,) which of the ways to say the instruction."""
    voice: NDArray[np.int64]
    """(N,) which voice."""
    channel: NDArray[np.int64]
    """(N,) index into CHANNELS of the sense that tells; -1 where instruction and speech both do."""


class Traits(NamedTuple):
    """In what the tasks differ."""

    num_walls: int
    hidden: bool
    look_alike: bool
    sounding: int
    one_channel: bool


TRAITS = {
    "arena/find": Traits(0, False, False, SOUND_OF_ALL, False),
    "arena/listen": Traits(6, True, True, SOUND_OF_TARGET, False),
    "arena/senses": Traits(0, False, False, SOUND_IF_TOLD, True),
}


def make_rules(task: str, options: ArenaOptions, num_sentences: int) -> Rules:
    """Turn options into the numbers that loops use.

    Args:
        task: A key of TRAITS.
        options: Validated options.
        num_sentences: Ways to say one thing.
    """
    traits = TRAITS[task]
    num_cells = round(options.room_size_m)
    num_walls = traits.num_walls if options.num_walls is None else options.num_walls
    channels = [CHANNELS.index(name) for name in options.channels] if traits.one_channel else []
    return Rules(
        size_m=options.room_size_m,
        cell_m=options.room_size_m / num_cells,
        num_cells=num_cells,
        num_objects=options.num_objects,
        num_walls=num_walls,
        hidden=traits.hidden and num_walls > 0,
        look_alike=traits.look_alike,
        shape_choice=SHAPE_CHOICES.index(options.shape_choice),
        sounding=traits.sounding,
        require_interact=options.require_interact,
        forward_m=options.forward_m,
        turn_rad=math.radians(options.turn_deg),
        success_reward=options.success_reward,
        wrong_penalty=options.wrong_penalty,
        step_cost=options.step_cost,
        shaping=options.shaping,
        num_sentences=num_sentences,
        num_voices=len(options.voices),
        colors=np.array([COLORS.index(name) for name in options.colors], np.int64),
        shapes=np.array([SHAPES.index(name) for name in options.shapes], np.int64),
        channels=np.array(channels, np.int64),
    )


def empty_state(num_envs: int, rules: Rules) -> State:
    """Allocate N worlds that have yet to be reset."""
    objects, cells = rules.num_objects, rules.num_cells
    nodes = cells * NODES_PER_CELL if rules.num_walls > 0 else 1
    return State(
        pose=np.zeros((num_envs, 3)),
        last_pose=np.zeros((num_envs, 3)),
        body=np.zeros((num_envs, 4), np.float32),
        clock=np.zeros(num_envs, np.int64),
        distance=np.zeros(num_envs),
        walls=np.ones((num_envs, cells + 2, cells + 2), np.uint8),
        field=np.zeros((num_envs, nodes, nodes), np.float32),
        objects=np.zeros((num_envs, objects, 2)),
        color=np.zeros((num_envs, objects), np.int64),
        shape=np.zeros((num_envs, objects), np.int64),
        phase=np.zeros((num_envs, objects), np.int64),
        sounding=np.zeros((num_envs, objects), np.bool_),
        target=np.zeros(num_envs, np.int64),
        wording=np.zeros(num_envs, np.int64),
        voice=np.zeros(num_envs, np.int64),
        channel=np.full(num_envs, -1, np.int64),
    )
