"""What the agent sees of a grid world: in words, as a map of characters, or as a picture.

The agent looks ahead from the middle of the last row of its field of view, as MiniGrid has it. Cells that
walls hide are unknown.
"""

import string
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_TILE_PX = 16
_SYMBOLS = {"wall": "#", "goal": "G", "lava": "~", "floor": "."}
_EMPTY, _UNSEEN, _AGENT = ".", "?", "^"
_LETTERS = string.ascii_lowercase + string.ascii_uppercase.replace("G", "")


class Cell(NamedTuple):
    """One cell of the field of view."""

    ahead: int
    """Rows in front of the agent."""
    right: int
    """Columns to its right; negative: to its left."""
    is_seen: bool
    thing: Any
    """MiniGrid's object; None: nothing."""


def in_words(grid_env: Any) -> str:
    """How far one can walk, then every thing that is seen, the nearest first, then what is carried.

    Example:
        >>> print(in_words(env))  # doctest: +SKIP
        free: 0 left, 2 ahead, 3 right
        green goal: 1 left, 2 ahead
    """
    field = _field(grid_env)
    last, middle = len(field) - 1, len(field) // 2
    ways = {
        "left": field[last][middle - 1 :: -1],
        "ahead": [row[middle] for row in field[-2::-1]],
        "right": field[last][middle + 1 :],
    }
    lines = ["free: " + ", ".join(f"{_free(way)} {name}" for name, way in ways.items())]
    lines += [f"{_name(cell.thing)}: {_place(cell)}" for cell in _things(field)]
    if grid_env.carrying is not None:
        lines.append(f"carrying: {_name(grid_env.carrying)}")
    return "\n".join(lines)


def in_symbols(grid_env: Any) -> str:
    """A map of the field of view, and below it what its letters stand for.

    ``^`` is the agent, ``.`` nothing, ``#`` wall, ``~`` lava, ``G`` the goal, ``?`` what is not seen; other
    things have letters.
    """
    field = _field(grid_env)
    letters: dict[str, str] = {}
    for cell in _things(field):
        if cell.thing.type not in _SYMBOLS:
            letters.setdefault(_name(cell.thing), _LETTERS[len(letters)])
    lines = ["".join(_symbol(cell, letters) for cell in row) for row in field]
    lines += [f"{letter}: {name}" for name, letter in letters.items()]
    if grid_env.carrying is not None:
        lines.append(f"carrying: {_name(grid_env.carrying)}")
    return "\n".join(lines)


def as_picture(grid_env: Any) -> NDArray[np.uint8]:
    """The field of view as MiniGrid draws it, rgb, 16 pixels a cell: (height, width, 3)."""
    drawn = grid_env.get_frame(highlight=False, tile_size=_TILE_PX, agent_pov=True)
    return np.ascontiguousarray(drawn, dtype=np.uint8)


def _field(grid_env: Any) -> list[list[Cell]]:
    """Rows of the field of view, the farthest first; in the last one the agent is in the middle."""
    grid, is_seen = grid_env.gen_obs_grid()
    size = grid.height
    return [
        [
            Cell(size - 1 - row, column - size // 2, bool(is_seen[column, row]), grid.get(column, row))
            for column in range(size)
        ]
        for row in range(size)
    ]


def _things(field: Sequence[Sequence[Cell]]) -> Iterator[Cell]:
    """Everything that is seen but walls and floors, the nearest first."""
    seen = [cell for row in field for cell in row if cell.is_seen and (cell.ahead, cell.right) != (0, 0)]
    ordered = sorted(seen, key=lambda cell: (cell.ahead + abs(cell.right), abs(cell.right), cell.right))
    return (cell for cell in ordered if cell.thing is not None and cell.thing.type not in ("wall", "floor"))


def _free(way: Sequence[Cell]) -> int:
    """Over how many cells one can walk."""
    blocked = (number for number, cell in enumerate(way) if not _is_free(cell))
    return next(blocked, len(way))


def _is_free(cell: Cell) -> bool:
    if cell.thing is None:
        return cell.is_seen
    return cell.is_seen and cell.thing.type != "lava" and bool(cell.thing.can_overlap())


def _name(thing: Any) -> str:
    if thing.type == "lava":
        return "lava"
    name = f"{thing.color} {thing.type}"
    if thing.type != "door":
        return name
    return f"{'open' if thing.is_open else 'locked' if thing.is_locked else 'closed'} {name}"


def _place(cell: Cell) -> str:
    """Sideways first: ``2 left, 1 ahead``."""
    sideways = f"{abs(cell.right)} {'left' if cell.right < 0 else 'right'}" if cell.right else ""
    return ", ".join(filter(None, (sideways, f"{cell.ahead} ahead" if cell.ahead else "")))


def _symbol(cell: Cell, letters: dict[str, str]) -> str:
    if (cell.ahead, cell.right) == (0, 0):
        return _AGENT
    if not cell.is_seen:
        return _UNSEEN
    if cell.thing is None:
        return _EMPTY
    return _SYMBOLS.get(cell.thing.type) or letters[_name(cell.thing)]
