"""Clean text out of the engine's message buffer."""

import re

_COLOUR = re.compile(r"\x1c(?:\[[^\]]*\]|.)")  # the engine's colour escape: \x1c and a letter or [name]
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_NOISE = re.compile(r"^(?:Starting MIDI playback failed|map\d+ - .*)$", re.IGNORECASE)
"""Lines about the engine, not the world: it has no MIDI device, and it greets with the name of the level
whose number the scenario borrows."""


def clean_notifications(buffer: str, max_length: int) -> str:
    r"""Return the messages of a step, oldest first, joined by newlines; empty when there were none.

    Colour codes, rulers and the engine's own chatter (see `_NOISE`) are dropped.

    Args:
        buffer: The engine's notification buffer.
        max_length: Longer text is cut at the front: the newest message matters most.

    Example:
        >>> clean_notifications("\n\x1c+map01 - Plant\n\nStarting MIDI playback failed\nShoot: Demon\n", 256)
        'Shoot: Demon'
    """
    if not buffer:
        return ""
    lines = (_UNPRINTABLE.sub("", _COLOUR.sub("", line)).strip() for line in buffer.split("\n"))
    return "\n".join(line for line in lines if line and not _NOISE.match(line))[-max_length:]
