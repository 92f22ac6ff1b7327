"""Changes of texts as an agent reads them: changed lines with their numbers and a little around them."""

import json

from sensorium.core.counted import counted
from sensorium.representations.base import Segment
from sensorium.representations.delta.sequences import Gap, gaps, matching_blocks
from sensorium.representations.delta.text import text_delta
from sensorium.representations.layout.line_count import count_lines

_CONTEXT = 2
"""Unchanged lines shown around a change."""
_LONG_LINE = 200
"""Characters from which a line is shown by what changed in it."""
_AROUND = 20
"""Characters shown around a change in a long line."""
_MAX_REMOVED = 4
"""Removed lines of one stretch that are shown; the agent has seen them."""
_CONTEXT_WEIGHT = 0.3

_VISIBLE = {code: repr(chr(code))[1:-1] for code in (*range(9), *range(11, 32), 127, 0x85, 0x2028, 0x2029)}


def text_changes(old: str, new: str) -> tuple[str, list[Segment]]:
    """What changed in a text: a summary of a few words, and a segment per line.

    Lines that came begin with ``+``, lines that went with ``-``, long lines of which a part changed with
    ``~``; new and unchanged lines carry their number now, removed ones the number they had.
    """
    before, after = old.split("\n"), new.split("\n")
    found = gaps(matching_blocks(before, after), len(before), len(after))
    segments: list[Segment] = []
    shown = 0  # new lines told so far
    for at, gap in enumerate(found):
        following = found[at + 1].new_start if at + 1 < len(found) else len(after)
        for line in range(max(shown, gap.new_start - _CONTEXT), gap.new_start):
            segments.append(_line(" ", line, after[line], _CONTEXT_WEIGHT))
        segments.extend(_gap(gap, before, after))
        shown = min(gap.new_end + _CONTEXT, following)
        for line in range(gap.new_end, shown):
            segments.append(_line(" ", line, after[line], _CONTEXT_WEIGHT))
    come = sum(gap.new_end - gap.new_start for gap in found)
    gone = sum(gap.old_end - gap.old_start for gap in found)
    return f"+{come:,} -{gone:,} of {counted(count_lines(new), 'line')}", segments


def _gap(gap: Gap, before: list[str], after: list[str]) -> list[Segment]:
    num_old, num_new = gap.old_end - gap.old_start, gap.new_end - gap.new_start
    if num_old == num_new:
        pairs = [(before[gap.old_start + at], after[gap.new_start + at]) for at in range(num_new)]
        if all(min(len(old), len(new)) >= _LONG_LINE for old, new in pairs):
            return [
                segment
                for at, (old, new) in enumerate(pairs, gap.new_start)
                for segment in _long_line(at, old, new)
            ]
    segments = []
    if num_old <= _MAX_REMOVED:
        for line in range(gap.old_start, gap.old_end):
            segments.append(_line("-", line, _clipped(before[line]), 1.0))
    else:
        segments.append(_line("-", gap.old_start, _clipped(before[gap.old_start]), 1.0))
        text = f"- {gap.old_start + 2}-{gap.old_end - 1} ({num_old - 2:,} lines)"
        segments.append(Segment(text, 0.5, place=f"line {gap.old_start + 2}"))
        segments.append(_line("-", gap.old_end - 1, _clipped(before[gap.old_end - 1]), 0.5))
    for line in range(gap.new_start, gap.new_end):
        segments.append(_line("+", line, after[line], 1.5))
    return segments


def _long_line(at: int, old: str, new: str) -> list[Segment]:
    """A long line by the stretches that changed."""
    segments = []
    for start, removed, inserted in text_delta(old, new).edits:
        end = start + removed
        left, right = old[max(0, start - _AROUND) : start], old[end : end + _AROUND]
        gone = quoted(left + _clipped(old[start:end]) + right)
        text = f"~ {at + 1} character {start + 1}: {gone} -> {quoted(left + inserted + right)}"
        segments.append(Segment(text, 1.5, place=f"line {at + 1}"))
    return segments


def _line(mark: str, at: int, text: str, weight: float) -> Segment:
    shown = text if text.isprintable() else text.translate(_VISIBLE)
    return Segment(f"{mark} {at + 1}  {shown}", weight, place=f"line {at + 1}")


def _clipped(text: str) -> str:
    """The ends of a text that the agent has seen."""
    if len(text) <= _LONG_LINE:
        return text
    return f"{text[: _LONG_LINE // 2]}...{text[-_LONG_LINE // 4 :]}"


def quoted(text: str) -> str:
    """Text in quotes, on one line."""
    return json.dumps(text, ensure_ascii=False).translate(_VISIBLE)
