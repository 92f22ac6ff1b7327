"""The room as a WAD file: map, actors, tones and script, made from text and numbers.

One map serves all episodes: a grid of cells, any of which a script raises to the ceiling, and actors that it
spawns where it is told. The bytes depend on the size of the room alone.
"""

import functools
import struct

import numpy as np

from sensorium.envs.embodied.doom.find.bytecode import furnishing_script
from sensorium.envs.embodied.doom.find.config import CELL_UNITS
from sensorium.envs.embodied.doom.find.kinds import KINDS

OBJECT_HALF_WIDTH = 20
"""Objects and the player collide as squares; half the side of an object's, in map units."""
PLAYER_HALF_WIDTH = 16

MAP_NAME = "MAP01"

_CEILING = 128
_WALL, _FLOOR, _CEILING_FLAT = "STONE2", "FLOOR4_8", "FLAT1"
_LIGHT = 224
_CLOSET = ((-192, 0), (-192, 64), (-128, 64), (-128, 0))  # where the player is until the script places it
_TONE_RATE_HZ = 11025
_TONE_SAMPLES = 11025  # a second holds whole periods of every integer frequency: no click when it repeats
_LOWEST_TONE_HZ = 140.0
_TONES_PER_OCTAVE = 4.0

Point = tuple[int, int]


def cell_tag(column: int, row: int, cells: int) -> int:
    """Tag by which the script knows a cell."""
    return 1 + row * cells + column


def actor_class(kind: str) -> str:
    """Name of the actor that stands in the room."""
    return "Sns" + kind.title().replace(" ", "")


def speaker_classes() -> list[str]:
    """Names of the invisible actors that sound all the time, then of those that sound while hidden."""
    return [actor_class(kind) + when for when in ("Loud", "Hidden") for kind in KINDS]


@functools.lru_cache(maxsize=4)
def build_wad(cells: int) -> bytes:
    """Make the WAD of a room of `cells` by `cells`."""
    sounds = [f"sns/tone{i} SNSTON{i:02d}\n$rolloff sns/tone{i} 48 700\n" for i in range(len(KINDS))]
    lumps = [("DECORATE", _actors().encode("ascii")), ("SNDINFO", "".join(sounds).encode("ascii"))]
    lumps += [(f"SNSTON{i:02d}", _tone(i)) for i in range(len(KINDS))]
    lumps += [
        (MAP_NAME, b""),
        ("TEXTMAP", _text_map(cells).encode("ascii")),
        ("BEHAVIOR", furnishing_script([actor_class(kind) for kind in KINDS], speaker_classes())),
        ("ENDMAP", b""),
    ]
    body, directory = b"", b""
    for name, data in lumps:
        directory += struct.pack("<II8s", 12 + len(body), len(data), name.encode("ascii"))
        body += data
    return struct.pack("<4sII", b"PWAD", len(lumps), 12 + len(body)) + body + directory


def _actors() -> str:
    """The actors in the engine's DECORATE language."""
    actors = []
    for index, (name, kind) in enumerate(KINDS.items()):
        translation = f'Translation "{kind.translation}"' if kind.translation else ""
        bright = "BRIGHT" if kind.glows else ""
        play = f'A_PlaySound("sns/tone{index}", CHAN_BODY, 1.0, 1, ATTN_NORM)'
        actors.append(
            f"""actor {actor_class(name)} {{
  Radius {OBJECT_HALF_WIDTH} Height 56 Scale {kind.scale} +SOLID {translation}
  States {{ Spawn: {kind.sprite} {kind.frames} 4 {bright}
    Loop }}
}}
actor {actor_class(name)}Loud {{
  Radius 1 Height 56 +NOBLOCKMAP
  States {{ Spawn: TNT1 A 1
    TNT1 A -1 {play}
    Stop }}
}}
actor {actor_class(name)}Hidden : {actor_class(name)}Loud {{
  States {{ Spawn: TNT1 A 1 A_CheckSight("Starts")
    Loop
  Starts: TNT1 A 0 {play}
  Sounds: TNT1 A 1
    TNT1 A 0 A_CheckSight("Sounds")
    TNT1 A 0 A_StopSound(CHAN_BODY)
    Goto Spawn }}
}}
"""
        )
    return "".join(actors)


def _tone(index: int) -> bytes:
    """A second of a tone with five harmonics, in the game's sound format: 8 bits, to be looped."""
    time_s = np.arange(_TONE_SAMPLES) / _TONE_RATE_HZ
    hz = round(_LOWEST_TONE_HZ * 2.0 ** (index / _TONES_PER_OCTAVE))
    harmonics = [h for h in range(1, 6) if h * hz < _TONE_RATE_HZ / 2]
    wave = sum(np.sin(2.0 * np.pi * h * hz * time_s) / h for h in harmonics)
    samples = np.rint(128.0 + 50.0 * np.asarray(wave)).astype(np.uint8)
    header = struct.pack("<HHI", 3, _TONE_RATE_HZ, len(samples) + 32)
    return header + bytes(16) + samples.tobytes() + bytes(16)


def _grid_lines(cells: int) -> list[tuple[Point, Point, int | None, int | None]]:
    """Start, end, cell on the right and on the left of every line; None is outside the room."""

    def sector(column: int, row: int) -> int | None:
        return row * cells + column if 0 <= column < cells and 0 <= row < cells else None

    lines: list[tuple[Point, Point, int | None, int | None]] = []
    for across in range(cells + 1):
        for along in range(cells):
            near, far, at = along * CELL_UNITS, (along + 1) * CELL_UNITS, across * CELL_UNITS
            lines.append(((near, at), (far, at), sector(along, across - 1), sector(along, across)))
            lines.append(((at, near), (at, far), sector(across, along), sector(across - 1, along)))
    for corner in range(4):
        lines.append((_CLOSET[corner], _CLOSET[(corner + 1) % 4], cells * cells, None))
    return lines


def _text_map(cells: int) -> str:
    """The map in the Universal Doom Map Format."""
    blocks = ['namespace = "zdoom";']
    vertices: dict[Point, int] = {}
    sides: list[str] = []

    def side(sector: int, part: str) -> int:
        sides.append(f'sidedef {{ sector = {sector}; texture{part} = "{_WALL}"; }}')
        return len(sides) - 1

    for start, end, right, left in _grid_lines(cells):
        if right is None:
            start, end, right, left = end, start, left, right
        assert right is not None
        ends = [vertices.setdefault(point, len(vertices)) for point in (start, end)]
        line = f"linedef {{ v1 = {ends[0]}; v2 = {ends[1]}; "
        if left is None:
            line += f"sidefront = {side(right, 'middle')}; blocking = true; }}"
        else:
            line += (
                f"sidefront = {side(right, 'bottom')}; sideback = {side(left, 'bottom')}; twosided = true; }}"
            )
        blocks.append(line)
    blocks += [f"vertex {{ x = {x}.0; y = {y}.0; }}" for x, y in vertices]
    blocks += sides
    for sector in range(cells * cells + 1):
        blocks.append(
            f'sector {{ id = {sector + 1}; texturefloor = "{_FLOOR}"; textureceiling = "{_CEILING_FLAT}"; '
            f"heightceiling = {_CEILING}; lightlevel = {_LIGHT}; }}"
        )
    skills = " ".join(f"skill{level} = true;" for level in range(1, 6))
    blocks.append(f"thing {{ x = -160.0; y = 32.0; type = 1; single = true; {skills} }}")
    return "\n".join(blocks) + "\n"
