"""Differences of texts and bytes: found by lines, narrowed to words and characters."""

import re
from collections.abc import Iterable, Sequence

from sensorium.representations.delta.base import BytesDelta, TextDelta, TextEdit
from sensorium.representations.delta.sequences import (
    Work,
    common_prefix,
    common_suffix,
    gaps,
    matching_blocks,
)

_CLAUSES = re.compile(r".*?(?:[,;.}>\n]|[es37] )|.+", re.DOTALL)
"""Pieces of some 40 characters whose ends depend on what is around them only."""
_WORDS = re.compile(r"\w+|\s|[^\w\s]")
_MAX_WORDS_CHARS = 100_000
"""Replaced stretches longer than this are not narrowed to words."""
_MIN_CLAUSES_CHARS = 4_000
"""Replaced stretches longer than this are cut into clauses before words are looked at."""
_ANCHOR_STEP = 16_384
"""Longer stretches are divided where characters of the old text, taken so far apart, are found again."""
_ANCHOR_CHARS = 48
_ANCHOR_RANGE = 65_536
"""Characters on either side of the expected place in which they are looked for."""
_JOIN_CHARS = 8
"""Edits with fewer characters between them are joined: each costs about as much by itself."""
_MIN_NARROWED = 24
"""Replaced stretches shorter than this are not narrowed to words."""
_EDIT_COST = 10
"""Characters that writing down one edit takes, besides its text."""


def text_delta(old: str, new: str) -> TextDelta:
    r"""What turns `old` into `new`. Only ``\n`` ends a line; every other separator is a character."""
    head = common_prefix(old, new)
    tail = common_suffix(old, new, min(len(old), len(new)) - head)
    start = old.rfind("\n", 0, head) + 1  # the line of the first difference, whole
    end_old = _line_end(old, len(old) - tail)
    end_new = end_old - len(old) + len(new)
    by_lines, by_words = Work((end_old + end_new - 2 * start) // 3), Work(0)
    edits: list[TextEdit] = []
    for at, before, after in _replaced(lines_of(old[start:end_old]), lines_of(new[start:end_new]), by_lines):
        edits.extend(_narrowed(start + at, before, after, by_words))
    return TextDelta(edits=tuple(_merged(old, edits)))


def apply_text(old: str, delta: TextDelta) -> str:
    """The new text.

    Raises:
        ValueError: The edits do not fit the text.
    """
    pieces, done = [], 0
    for at, removed, inserted in delta.edits:
        if at < done or removed < 0 or at + removed > len(old):
            raise ValueError(f"an edit at {at} removes {removed} of a text of {len(old)} characters")
        pieces += [old[done:at], inserted]
        done = at + removed
    return "".join([*pieces, old[done:]])


def bytes_delta(old: bytes, new: bytes) -> BytesDelta:
    """What turns `old` into `new`: one stretch, from the first difference to the last."""
    head = common_prefix(old, new)
    tail = common_suffix(old, new, min(len(old), len(new)) - head)
    return BytesDelta(at=head, removed=len(old) - head - tail, inserted=new[head : len(new) - tail])


def apply_bytes(old: bytes, delta: BytesDelta) -> bytes:
    """The new bytes.

    Raises:
        ValueError: The stretch does not fit.
    """
    end = delta.at + delta.removed
    if delta.at < 0 or delta.removed < 0 or end > len(old):
        raise ValueError(f"a change of bytes {delta.at} to {end} does not fit {len(old)} bytes")
    return old[: delta.at] + delta.inserted + old[end:]


def lines_of(text: str) -> list[str]:
    r"""Lines with their ``\n``; together they are the text."""
    lines = text.split("\n")
    last = lines.pop()
    found = [line + "\n" for line in lines]
    return [*found, last] if last else found


def _line_end(text: str, at: int) -> int:
    """End of the line that holds the character before `at`, so that a common tail begins with a line."""
    if at == 0 or text[at - 1] == "\n":
        return at
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _replaced(old: Sequence[str], new: Sequence[str], work: Work) -> Iterable[tuple[int, str, str]]:
    """Place in the joined old text, what stood there, what stands there now."""
    at = done = 0
    for gap in gaps(matching_blocks(old, new, work), len(old), len(new)):
        at += sum(map(len, old[done : gap.old_start]))
        before = "".join(old[gap.old_start : gap.old_end])
        yield at, before, "".join(new[gap.new_start : gap.new_end])
        at += len(before)
        done = gap.old_end


def _narrowed(at: int, before: str, after: str, work: Work) -> list[TextEdit]:
    """One replaced stretch as the clauses and words in it that differ, when that is shorter."""
    head = common_prefix(before, after)
    tail = common_suffix(before, after, min(len(before), len(after)) - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    at += head
    edits = [TextEdit(at, len(old), new)]
    size = len(old) + len(new)
    if min(len(old), len(new)) < _MIN_NARROWED or work.left < 0:
        return edits
    if size >= _MIN_CLAUSES_CHARS:
        stretches = _anchored(old, new) if size > 4 * _ANCHOR_STEP else []
        if len(stretches) < 2 and size <= work.chars:
            work.chars -= size
            stretches = list(_replaced(_CLAUSES.findall(old), _CLAUSES.findall(new), work))
        if stretches and (len(stretches) > 1 or len(stretches[0][1]) + len(stretches[0][2]) < size):
            narrow = [
                edit for place, *pair in stretches for edit in _narrowed(at + place, pair[0], pair[1], work)
            ]
            return narrow if _cost(narrow) < _cost(edits) else edits
    if size > _MAX_WORDS_CHARS:
        return edits
    words = _replaced(_WORDS.findall(old), _WORDS.findall(new), work)
    narrow = [TextEdit(at + place, len(gone), come) for place, gone, come in words]
    return narrow if _cost(narrow) < _cost(edits) else edits


def _anchored(old: str, new: str) -> list[tuple[int, str, str]]:
    """Long stretches divided at places that both have: as `_replaced`, without those that are equal."""
    stretches: list[tuple[int, str, str]] = []
    done_old = done_new = 0
    for at in range(_ANCHOR_STEP, len(old) - _ANCHOR_CHARS, _ANCHOR_STEP):
        expected = at - done_old + done_new
        low, high = max(done_new, expected - _ANCHOR_RANGE), expected + _ANCHOR_RANGE
        found = new.find(old[at : at + _ANCHOR_CHARS], low, high)
        if found >= 0:
            stretches.append((done_old, old[done_old:at], new[done_new:found]))
            done_old, done_new = at, found
    stretches.append((done_old, old[done_old:], new[done_new:]))
    changed = [stretch for stretch in stretches if stretch[1] != stretch[2]]
    return changed if len(stretches) > 1 else []


def _cost(edits: Sequence[TextEdit]) -> int:
    return sum(len(edit.inserted) + _EDIT_COST for edit in edits)


def _merged(old: str, edits: list[TextEdit]) -> list[TextEdit]:
    merged: list[TextEdit] = []
    for edit in edits:
        if merged:
            last = merged[-1]
            end = last.at + last.removed
            if edit.at - end < _JOIN_CHARS:
                text = last.inserted + old[end : edit.at] + edit.inserted
                merged[-1] = TextEdit(last.at, edit.at + edit.removed - last.at, text)
                continue
        merged.append(edit)
    return merged
