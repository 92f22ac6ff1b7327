"""Settings that only the arena has, given as `backend_options`."""

from typing import Literal

from pydantic import Field, model_validator

from sensorium.core import Config

COLORS = ("red", "green", "blue", "yellow", "purple", "grey")
"""Colours of objects; an object's colour is the index into this tuple."""

SHAPES = ("ball", "box", "cone", "pillar")
"""Shapes of objects; an object's shape is the index into this tuple and decides how it sounds."""

CHANNELS = ("instruction", "speech", "env_sound")
"""Senses through which `arena/senses` may tell which object is the target."""

VOICES = ("en-us", "en-gb", "en-us+f3", "en-gb+m7")
"""Voices that speak unless others are chosen; see `sensorium.features.speech.VOICES`."""


class ArenaOptions(Config):
    """The room, what stands in it, how the agent moves, and what is rewarded."""

    room_size_m: float = Field(default=6.0, ge=4.0, le=12.0)
    """Side of the square room, in metres."""
    num_objects: int = Field(default=3, ge=1, le=6)
    """Objects in the room; one of them is the target."""
    num_walls: int | None = Field(default=None, ge=0, le=24)
    """Blocks of interior wall, one cell (about 1 m) wide. None: 0, but 6 in `arena/listen`."""
    colors: tuple[str, ...] = COLORS
    """Colours that occur. No two objects of a room share one (but in `arena/listen` all look alike)."""
    shapes: tuple[str, ...] = SHAPES
    """Shapes that occur."""
    shape_choice: Literal["same", "random", "distinct"] = "same"
    """Whether the objects of a room share one shape (so that depth cannot tell them apart), or not."""
    require_interact: bool = False
    """False: touching an object chooses it. True: the action `interact` within 0.6 m of its surface does."""
    forward_m: float = Field(default=0.3, gt=0.0, le=0.4)
    """Distance of one full step forward; ten steps make a second."""
    turn_deg: float = Field(default=15.0, gt=0.0, le=45.0)
    """Angle of one full turn action."""
    success_reward: float = 1.0
    """Reward for choosing the target."""
    wrong_penalty: float = Field(default=0.5, ge=0.0)
    """Subtracted for choosing another object, which ends the episode as a failure."""
    step_cost: float = Field(default=0.01, ge=0.0)
    """Subtracted at every step."""
    shaping: float = Field(default=0.2, ge=0.0)
    """Reward per metre by which the walk to the target became shorter: Phi(s') - Phi(s) with the potential
    Phi = -shaping * distance. Distances lead round walls. Over an
    episode the terms add up to shaping * (first - last distance)."""
    channels: tuple[str, ...] = CHANNELS
    """`arena/senses` only: the senses among which each episode draws the one that tells."""
    voices: tuple[str, ...] = VOICES
    """Voices of `speech`; each episode draws one."""
    rate_wpm: int = Field(default=170, ge=120, le=300)
    """Words per minute of `speech`."""
    num_threads: int = Field(default=0, ge=0)
    """Threads that share the worlds of one call; 0 takes the available cores, but 32 worlds each at least.
    Results do not depend on it."""

    @model_validator(mode="after")
    def _names_exist(self) -> "ArenaOptions":
        _check_names("colors", self.colors, COLORS)
        _check_names("shapes", self.shapes, SHAPES)
        _check_names("channels", self.channels, CHANNELS)
        if len(self.colors) < self.num_objects:
            raise ValueError(f"{self.num_objects} objects need as many colors, found {len(self.colors)}")
        if self.shape_choice == "distinct" and len(self.shapes) < self.num_objects:
            raise ValueError(
                f"{self.num_objects} objects of distinct shapes need as many, found {len(self.shapes)}"
            )
        if not self.voices:
            raise ValueError("voices must name at least one voice")
        return self


def _check_names(setting: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown or not names or len(set(names)) != len(names):
        raise ValueError(
            f"{setting} must name some of {', '.join(known)}, each at most once; found {list(names)}"
        )
