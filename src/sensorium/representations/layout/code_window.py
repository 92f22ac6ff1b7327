"""Which lines of a long file are shown: those around the cursor, faults and stack frames."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from sensorium.observations.values import CodeValue


class Anchors(NamedTuple):
    """Lines, from 1, around which a file is shown."""

    stack: tuple[int, ...]
    """Of stack frames in this file, the innermost first."""
    other: tuple[int, ...]
    """Of the cursor and of faults, the cursor first."""


_NOWHERE = Anchors((), ())


def anchors_of(value: CodeValue) -> Anchors:
    """The lines of a file where something is going on."""
    if value.cursor_line is None and value.stack is None and not value.faults:
        return _NOWHERE
    other = [value.cursor_line] if value.cursor_line is not None else []
    other += [fault.line for fault in value.faults[:5]]
    stack: list[int] = []
    if value.stack is not None and value.path:
        for frame in reversed(value.stack.frames):
            if frame.line is not None and frame.line not in stack and same_file(frame.file, value.path):
                stack.append(frame.line)
    elif value.stack is not None and len({frame.file for frame in value.stack.frames}) == 1:
        stack = [frame.line for frame in reversed(value.stack.frames) if frame.line is not None]
    last = value.text.count("\n") + 1
    return Anchors(
        tuple(dict.fromkeys(line for line in stack if line <= last))[:10],
        tuple(dict.fromkeys(min(line, last) for line in other)),
    )


@lru_cache(maxsize=4096)
def same_file(first: str, second: str) -> bool:
    """Whether two paths may name one file: the shorter is the end of the longer."""
    a, b = _pieces(first), _pieces(second)
    if not a or not b:
        return False
    count = min(len(a), len(b))
    return a[-count:] == b[-count:]


def _pieces(path: str) -> list[str]:
    return [piece for piece in path.replace("\\", "/").split("/") if piece not in ("", ".", "~")]


def window_of(value: CodeValue, numbers: Sequence[int], max_lines: int) -> frozenset[int]:
    """Positions in `numbers` of the lines that are shown, at most `max_lines`.

    Args:
        value: The code, for its anchors.
        numbers: Numbers of its lines that could be shown, ascending (comments may have been taken out).
        max_lines: Most lines.

    Returns:
        Everything when it fits. Otherwise the lines are dealt out in turn to the anchors, each growing two
        thirds upwards (where what led there stands) and one third downwards; without anchors the first lines.
    """
    if len(numbers) <= max_lines:
        return frozenset(range(len(numbers)))
    anchors = anchors_of(value)
    lines = (*anchors.other[:1], *anchors.stack, *anchors.other[1:])
    centres = list(dict.fromkeys(_position(numbers, line) for line in lines))[:max_lines]
    if not centres:
        return frozenset(range(max_lines))
    chosen = set(centres)
    up, down = list(centres), list(centres)
    turn = 0
    while len(chosen) < max_lines:
        turn += 1
        for index in range(len(centres)):
            if turn % 3:
                up[index] = _next(up[index], -1, chosen, len(numbers))
                new = up[index]
            else:
                down[index] = _next(down[index], 1, chosen, len(numbers))
                new = down[index]
            if 0 <= new < len(numbers):
                chosen.add(new)
            if len(chosen) >= max_lines:
                break
    return frozenset(chosen)


def _next(position: int, step: int, chosen: set[int], count: int) -> int:
    """The next line in a direction that is not shown yet, or one outside the file."""
    position += step
    while 0 <= position < count and position in chosen:
        position += step
    return min(max(position, -1), count)


def _position(numbers: Sequence[int], line: int) -> int:
    """Position of a line, or of the last one before it."""
    return max(0, bisect_right(numbers, line) - 1)
