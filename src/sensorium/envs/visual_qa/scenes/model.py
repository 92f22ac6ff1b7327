"""What a scene shows: enough to draw it again, and to answer questions about it."""

import math
from typing import Literal

from sensorium.envs.base import Record

SHAPE_SYNONYMS: dict[str, tuple[str, ...]] = {
    "ball": ("sphere", "balls"),
    "box": ("cube", "block", "boxes", "square"),
    "cone": ("cones", "pyramid", "triangle"),
    "pillar": ("column", "cylinder", "pillars", "post", "pole"),
}
"""Other words for shapes."""


class Thing(Record):
    """An object in a room."""

    color: str
    shape: str
    x: float
    """Metres from the room's left wall."""
    y: float
    """Metres from the room's lower wall."""
    num_pixels: int = 0
    """How many show it, in a view from within."""

    @property
    def name(self) -> str:
        """e.g. ``red ball``."""
        return f"{self.color} {self.shape}".strip()


class Scene(Record):
    """A room, and who looks at it from where."""

    family: Literal["scene"] = "scene"
    kind: Literal["room", "floor_plan"]
    room_size_m: float
    x: float
    y: float
    heading: float
    """Radians, counter-clockwise from the x axis."""
    things: tuple[Thing, ...]
    size: int
    """Height and width of the picture, pixels."""

    def gap(self, thing: Thing) -> float:
        """Metres between the viewer and a thing."""
        return math.hypot(thing.x - self.x, thing.y - self.y)

    def bearing(self, thing: Thing) -> float:
        """Angle to a thing, radians in (-pi, pi], positive to the viewer's left."""
        angle = math.atan2(thing.y - self.y, thing.x - self.x) - self.heading
        return math.atan2(math.sin(angle), math.cos(angle))

    def across(self, thing: Thing) -> float:
        """Where a thing is in a view from within: -1 at the left edge, 1 at the right one."""
        return -math.tan(self.bearing(thing))

    @property
    def seen(self) -> tuple[Thing, ...]:
        """Things that can be seen in a view from within."""
        return tuple(thing for thing in self.things if thing.num_pixels > 0)
