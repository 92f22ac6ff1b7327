"""The script that furnishes the room when the map begins, as the engine's bytecode.

The engine has no compiler on board, so the few instructions are written down here. Everything that differs
between episodes comes in through console variables, packed into integers:

    sns_player     heading << 20 | x << 10 | y             heading in 256ths of a turn, east 0, north 64
    sns_object{i}  kind << 20 | x << 10 | y                kind counts from 1; 0: no such object
    sns_speaker{i} kind << 20 | x << 10 | y                kind counts from 1 in the list of speakers
    sns_walls{i}   tag << 20 | tag << 10 | tag             sectors that become wall; 0: none

x and y are map units. Format: "ACS0", ZDoom's oldest: a header, code in 32-bit words, a directory of scripts
(type * 1000 + number, address, arguments), and strings. Source: ZDoom wiki, "ACS0".
"""

import struct
from collections.abc import Sequence

MAX_OBJECTS = 6
MAX_WALL_VARIABLES = 4
"""Three walls in each."""

_TERMINATE, _PUSH, _SPECIAL_3 = 1, 3, 6
_SUBTRACT, _MULTIPLY, _ASSIGN, _READ, _DROP = 15, 16, 25, 28, 54
_AND, _SHIFT_LEFT, _SHIFT_RIGHT, _UNLESS = 72, 76, 77, 79
_CLEAR_INVENTORY, _SPAWN, _GET_VARIABLE, _SET_ANGLE, _SET_POSITION = 142, 149, 255, 276, 283
_RAISE_FLOOR_AT_ONCE = 67
_OPEN, _ENTER = 1001, 4002
_HEADER_BYTES = 8
_FIXED_ONE = 1 << 16


class _Assembler:
    """Collects instructions and strings."""

    def __init__(self, strings: Sequence[str]) -> None:
        self.strings = list(strings)
        self.code: list[int] = []

    @property
    def address(self) -> int:
        """Where the next instruction will lie."""
        return _HEADER_BYTES + 4 * len(self.code)

    def emit(self, *words: int) -> None:
        self.code.extend(words)

    def load(self, variable: str) -> None:
        """Keep a console variable for `bits`."""
        self.emit(_PUSH, self.strings.index(variable), _GET_VARIABLE, _ASSIGN, 0)

    def bits(self, shift: int, mask: int = 0x3FF) -> None:
        """Push some bits of the variable that was loaded."""
        self.emit(_READ, 0, _PUSH, shift, _SHIFT_RIGHT, _PUSH, mask, _AND)

    def place(self) -> None:
        """Push x, y and z (0), in fixed point, of the variable that was loaded."""
        for shift in (10, 0):
            self.bits(shift)
            self.emit(_PUSH, _FIXED_ONE, _MULTIPLY)
        self.emit(_PUSH, 0)

    def unless_zero(self) -> int:
        """Begin a block that is skipped when the top of the stack is 0; hand the result to `end_block`."""
        self.emit(_UNLESS, 0)
        return len(self.code) - 1

    def end_block(self, block: int) -> None:
        self.code[block] = self.address


def furnishing_script(objects: Sequence[str], speakers: Sequence[str]) -> bytes:
    """Assemble the BEHAVIOR lump.

    Args:
        objects: Actor class of each kind.
        speakers: Actor class of each invisible speaker.
    """
    placed = [(f"sns_object{i}", 0) for i in range(MAX_OBJECTS)]
    placed += [(f"sns_speaker{i}", len(objects)) for i in range(MAX_OBJECTS)]
    walls = [f"sns_walls{i}" for i in range(MAX_WALL_VARIABLES)]
    names = [*objects, *speakers, "sns_player", *(name for name, _ in placed), *walls]
    script = _Assembler(names)
    open_address = script.address
    for variable, first_class in placed:
        _spawn(script, variable, first_class)
    for variable in walls:
        script.load(variable)
        for shift in (0, 10, 20):
            _raise_wall(script, shift)
    script.emit(_TERMINATE)
    enter_address = script.address
    script.load("sns_player")
    script.emit(_CLEAR_INVENTORY, _PUSH, 0)
    script.place()
    script.emit(_PUSH, 0, _SET_POSITION, _DROP, _PUSH, 0)
    script.bits(20, 0xFF)
    script.emit(_PUSH, 8, _SHIFT_LEFT, _SET_ANGLE, _TERMINATE)
    return _link(script, {_OPEN: open_address, _ENTER: enter_address})


def _spawn(script: _Assembler, variable: str, first_class: int) -> None:
    """Spawn an actor of the class that the variable tells, where it tells."""
    script.load(variable)
    script.emit(_READ, 0)
    block = script.unless_zero()
    script.bits(20)
    script.emit(_PUSH, 1 - first_class, _SUBTRACT)  # a string's number is its place in the list of names
    script.place()
    script.emit(_PUSH, 0, _PUSH, 0, _SPAWN, _DROP)
    script.end_block(block)


def _raise_wall(script: _Assembler, shift: int) -> None:
    """Raise the floor of a sector by the height of the room (128), unless its tag is 0."""
    script.bits(shift)
    block = script.unless_zero()
    script.bits(shift)
    script.emit(_PUSH, 0, _PUSH, 16, _SPECIAL_3, _RAISE_FLOOR_AT_ONCE)
    script.end_block(block)


def _link(script: _Assembler, addresses: dict[int, int]) -> bytes:
    """Header, code, strings and directory in one lump."""
    body = struct.pack(f"<{len(script.code)}i", *script.code)
    offsets = []
    for name in script.strings:
        offsets.append(_HEADER_BYTES + len(body))
        body += name.encode("ascii") + b"\0"
    body += b"\0" * (4 + -len(body) % 4)
    directory = struct.pack("<I", len(addresses))
    for number, address in addresses.items():
        directory += struct.pack("<III", number, address, 0)
    directory += struct.pack(f"<{1 + len(offsets)}I", len(offsets), *offsets)
    return struct.pack("<4sI", b"ACS\0", _HEADER_BYTES + len(body)) + body + directory
