"""Settings that only `doom/find` has, besides those of every doom task."""

from typing import Literal

from pydantic import Field, model_validator

from sensorium.envs.embodied.doom.config import DoomOptions
from sensorium.envs.embodied.doom.find.kinds import KINDS

CELL_UNITS = 64
"""Side of a cell in map units; 32 units are about a metre."""

UNITS_PER_M = 32.0
"""Map units to the metre."""


class FindOptions(DoomOptions):
    """The room, what stands in it, what sounds, and what is rewarded."""

    room_cells: int = Field(default=7, ge=5, le=12)
    """Side of the square room in cells of 2 m (64 map units). A step of four tics walks about 1 m."""
    num_objects: int = Field(default=3, ge=1, le=6)
    """Objects in the room; one of them is the target."""
    num_walls: int = Field(default=4, ge=0, le=12)
    """Blocks of interior wall, one cell each, that hide what is behind them."""
    kinds: tuple[str, ...] = tuple(KINDS)
    """Kinds of objects that occur; no two objects of a room share one."""
    sounding: Literal["hidden", "target", "all", "none"] = "hidden"
    """What sounds, each kind with a tone of its own: `hidden` the target while a wall hides it, `target` the
    target all the time (which tells where to go without any instruction), `all` every object, or `none`."""
    success_reward: float = 1.0
    """Reward for touching the target."""
    wrong_penalty: float = Field(default=0.5, ge=0.0)
    """Subtracted for touching another object, which ends the episode as a failure."""
    step_cost: float = Field(default=0.01, ge=0.0)
    """Subtracted at every step."""
    shaping: float = Field(default=0.1, ge=0.0)
    """Reward per metre by which the walk to the target became shorter: Phi(s') - Phi(s) with the potential
    Phi = -shaping * distance. Distances lead round walls and other objects. Over an episode the terms add up
    to shaping * (first - last distance)."""

    @model_validator(mode="after")
    def _settings_fit_together(self) -> "FindOptions":
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or len(set(self.kinds)) != len(self.kinds):
            raise ValueError(
                f"kinds must name some of {', '.join(KINDS)}, each at most once; found {list(self.kinds)}"
            )
        if len(self.kinds) < self.num_objects:
            raise ValueError(
                f"{self.num_objects} objects need as many kinds, found {len(self.kinds)}: "
                f"{', '.join(self.kinds) or 'none'}. There are {', '.join(KINDS)}"
            )
        if self.num_walls + 2 * self.num_objects > self.room_cells**2 * 3 // 4:
            raise ValueError(
                f"{self.num_walls} walls and {self.num_objects} objects do not fit into a room of "
                f"{self.room_cells} by {self.room_cells} cells: num_walls + 2 * num_objects may be at most "
                f"{self.room_cells**2 * 3 // 4}. Raise room_cells, or lower num_walls or num_objects"
            )
        return self
