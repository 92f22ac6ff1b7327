"""How many lines a text has, as editors count: a line end at the end begins no further one."""

from sensorium.core.counted import counted


def count_lines(text: str) -> int:
    """Number of lines; 0 for no text."""
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def said_lines(text: str) -> str:
    """``1 line``, ``1,200 lines``, or ``empty``."""
    count = count_lines(text)
    return counted(count, "line") if count else "empty"
