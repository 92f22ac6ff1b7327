"""What an episode's seed decides: what stands where, which object is meant, and how it is said."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sensorium.core import EnvError, derive_seed
from sensorium.envs.embodied.doom.find.config import CELL_UNITS, FindOptions
from sensorium.envs.embodied.doom.find.kinds import WORDINGS
from sensorium.envs.embodied.doom.find.wad import OBJECT_HALF_WIDTH, PLAYER_HALF_WIDTH

TOUCH_UNITS = PLAYER_HALF_WIDTH + OBJECT_HALF_WIDTH + 8
"""An object is touched when both |dx| and |dy| are at most this: as near as the engine lets one come, and
some slack, since it stops a walker up to a quarter of a step before what is in the way."""

ATTEMPTS = 1000
"""How often a room is drawn before giving up."""

HEADINGS = 256
"""Directions in which the player may look at the start."""

_TRIES_PER_PLACE = 40
_PLAYER_GAP_UNITS = 128
_OBJECT_GAP_UNITS = 128
_WALL_GAP_UNITS = 20
_SMALLEST_SHARE = 0.5  # gaps shrink to this share of themselves when rooms are crowded


@dataclass(frozen=True, slots=True)
class Meaning:
    """Which objects there are and which one is meant."""

    kinds: tuple[int, ...]
    """Index into `FindOptions.kinds` of each object."""
    target: int
    """Index of the object that is meant."""
    sentence: int
    """Index into `sentences(FindOptions.kinds)`."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where everything is; map units from the room's south-west corner."""

    cells: int
    walls: tuple[tuple[int, int], ...]
    """(column, row) of each interior wall."""
    start: tuple[int, int, int]
    """x, y and heading (in 256ths of a turn, counter-clockwise from east) of the player."""
    places: tuple[tuple[int, int], ...]
    """Of each object."""


def draw_meaning(seed: int, options: FindOptions) -> Meaning:
    """Draw kinds, target and wording of the episode that `seed` decides."""
    rng = np.random.default_rng(derive_seed(seed, "meaning"))
    kinds = rng.permutation(len(options.kinds))[: options.num_objects].tolist()
    target = int(rng.integers(options.num_objects))
    wording = int(rng.integers(len(WORDINGS)))
    return Meaning(tuple(kinds), target, wording * len(options.kinds) + kinds[target])


def draw_room(seed: int, options: FindOptions, attempt: int) -> Room | None:
    """Draw walls and places of the episode that `seed` decides; None where they do not fit.

    Args:
        seed: The episode's seed.
        options: How large the room is and how much stands in it.
        attempt: Which attempt; later ones let things stand closer to each other.
    """
    rng = np.random.default_rng(derive_seed(seed, "places", attempt))
    share = max(_SMALLEST_SHARE, 1.0 - attempt / 200)
    cells = options.room_cells
    chosen = rng.permutation(cells * cells)[: options.num_walls].tolist()
    walls = tuple((cell % cells, cell // cells) for cell in chosen)
    x, y = _draw_place(rng, cells, walls, (), PLAYER_HALF_WIDTH + 8)
    if x < 0:
        return None
    heading = int(rng.integers(HEADINGS))
    taken = [(x, y, _PLAYER_GAP_UNITS * share)]
    places = []
    for _ in range(options.num_objects):
        place = _draw_place(rng, cells, walls, taken, OBJECT_HALF_WIDTH + _WALL_GAP_UNITS * share)
        if place[0] < 0:
            return None
        places.append(place)
        taken.append((*place, _OBJECT_GAP_UNITS * share))
    return Room(cells, walls, (x, y, heading), tuple(places))


def _draw_place(
    rng: np.random.Generator,
    cells: int,
    walls: tuple[tuple[int, int], ...],
    taken: Sequence[tuple[int, int, float]],
    half_width: float,
) -> tuple[int, int]:
    """A place for a square of some half width, off the walls and away from what is there; or (-1, -1)."""
    size = cells * CELL_UNITS
    low = int(np.ceil(half_width))
    for x, y in rng.integers(low, size - low + 1, (_TRIES_PER_PLACE, 2)).tolist():
        if all((x - a) ** 2 + (y - b) ** 2 >= gap * gap for a, b, gap in taken) and not any(
            abs(x - (column + 0.5) * CELL_UNITS) < half_width + CELL_UNITS / 2
            and abs(y - (row + 0.5) * CELL_UNITS) < half_width + CELL_UNITS / 2
            for column, row in walls
        ):
            return x, y
    return -1, -1


def no_room(options: FindOptions) -> EnvError:
    """The error for a room in which nothing fits."""
    return EnvError(
        f"A room of {options.room_cells} by {options.room_cells} cells had no place for "
        f"{options.num_objects} objects and {options.num_walls} walls in {ATTEMPTS} attempts. Raise the "
        f"backend option room_cells, or lower num_objects or num_walls."
    )
