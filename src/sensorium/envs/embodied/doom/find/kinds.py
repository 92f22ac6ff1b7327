"""The objects that may stand in the room, and the sentences that name one."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How a kind of object is drawn, out of the pictures of the game's own data."""

    sprite: str
    """First four letters of its pictures."""
    frames: str = "A"
    """Pictures that follow each other every four tics."""
    scale: float = 1.0
    """How much larger than in the game, so that it is recognised across the room."""
    translation: str = ""
    """Palette colours that take the place of others, in the engine's notation."""
    glows: bool = False
    """Drawn at full brightness whatever the light."""


def _torch(sprite: str) -> Kind:
    return Kind(sprite=sprite, frames="ABCD", scale=1.7, glows=True)


def _pillar(translation: str = "") -> Kind:
    return Kind(sprite="COL1", scale=1.4, translation=translation)


KINDS: dict[str, Kind] = {
    "red torch": _torch("SMRT"),
    "green torch": _torch("SMGT"),
    "blue torch": _torch("SMBT"),
    "red pillar": _pillar("112:127=176:191"),
    "green pillar": _pillar(),
    "blue pillar": _pillar("112:127=193:207"),
    "yellow pillar": _pillar("112:127=[255,255,70]:[70,60,0]"),
    "purple pillar": _pillar("112:127=[255,120,255]:[50,0,50]"),
    "grey pillar": _pillar("112:127=80:111"),
    "red skull": Kind(sprite="RSKU", scale=3.5),
    "blue skull": Kind(sprite="BSKU", scale=3.5),
    "yellow skull": Kind(sprite="YSKU", scale=3.5),
    "green armour": Kind(sprite="ARM1", scale=2.5),
    "red armour": Kind(sprite="ARM2", scale=2.5),
    "barrel": Kind(sprite="BAR1", scale=2.0),
    "medikit": Kind(sprite="MEDI", scale=2.0),
    "lamp": Kind(sprite="COLU", scale=2.0, glows=True),
    "tree": Kind(sprite="SMIT", scale=1.2),
}
"""Name of every kind, as the instruction says it, and how it looks."""

WORDINGS = ("go to the {kind}", "find the {kind}", "please go to the {kind}", "touch the {kind}")
"""Ways to name the target."""


def sentences(kinds: Sequence[str]) -> tuple[str, ...]:
    """Every sentence about some kinds, by index: wording * len(kinds) + kind."""
    return tuple(wording.format(kind=kind) for wording in WORDINGS for kind in kinds)
