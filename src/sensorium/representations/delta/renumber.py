"""Rules by which parts keep their content while positions shift: ``cell-12`` becomes ``cell-13``.

One rule covers a whole run of parts, so a cell inserted at the top of a notebook costs the cell and one rule.
"""

import re
from typing import NamedTuple

from sensorium.observations.base import Part
from sensorium.observations.values import CellValue

_NUMBER = re.compile(r"([0-9]+)")
_MAX_DIGITS = 18
"""Longer numbers are names, not positions."""


class Run(NamedTuple):
    """Parts that stay, next to each other before and after."""

    start: int
    """Place of the first among the old parts."""
    length: int
    reindex: int = 0
    """Added to the position of notebook cells."""
    recount: int = 0
    """Added to the execution count of executed cells."""
    group: int = -1
    """Which number of the ids changes, from 0; -1: ids stay."""
    renumber: int = 0
    """Added to that number."""


def renumbered(part_id: str, group: int, by: int) -> str:
    """An id with `by` added to its number `group`; the same id when there is no such number."""
    if group < 0 or by == 0:
        return part_id
    pieces = _NUMBER.split(part_id)
    at = 2 * group + 1
    if at >= len(pieces) or len(pieces[at]) > _MAX_DIGITS:
        return part_id
    pieces[at] = str(int(pieces[at]) + by)
    return "".join(pieces)


def id_rule(old: str, new: str) -> tuple[int, int] | None:
    """Which number of the id changed and by how much: ``(-1, 0)`` for equal ids, None when more than that."""
    if old == new:
        return -1, 0
    before, after = _NUMBER.split(old), _NUMBER.split(new)
    differs = [at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other]
    if len(before) != len(after) or len(differs) != 1 or differs[0] % 2 == 0:
        return None
    at = differs[0]
    if max(len(before[at]), len(after[at])) > _MAX_DIGITS:
        return None
    by = int(after[at]) - int(before[at])
    return (at // 2, by) if renumbered(old, at // 2, by) == new else None


def shifted_value(value: CellValue, reindex: int, recount: int) -> CellValue:
    """A cell at another position, executed as another count."""
    if reindex == 0 and (recount == 0 or value.execution_count is None):
        return value
    count = value.execution_count
    return CellValue(
        index=value.index + reindex,
        cell_type=value.cell_type,
        source=value.source,
        language=value.language,
        execution_count=None if count is None else count + recount,
    )


class RunBuilder:
    """Gathers kept parts into as few runs as their shifts allow."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.renamed: list[tuple[int, str]] = []
        """Place among the new parts and id, where no rule gives it."""
        self._reindex: int | None = None
        self._recount: int | None = None

    def add(self, old_at: int, old: Part, new_at: int, new: Part, is_same_text: bool) -> None:
        """Add the next kept part.

        Args:
            old_at: Its place before.
            old: The part before.
            new_at: Its place now.
            new: The part now.
            is_same_text: Whether its source is unchanged, so that its execution count may follow a rule.
        """
        reindex = recount = None
        if isinstance(old.value, CellValue) and isinstance(new.value, CellValue):
            reindex = new.value.index - old.value.index
            before, after = old.value.execution_count, new.value.execution_count
            if is_same_text and before is not None and after is not None:
                recount = after - before
        rule = id_rule(old.id, new.id)
        if rule is None:
            self.renamed.append((new_at, new.id))
        if self._extends(old_at, old, new, reindex, recount, by_rule=rule is not None):
            run = self.runs[-1]
        else:
            self._reindex = self._recount = None
            run = Run(old_at, 0, 0, 0, *(rule or (-1, 0)))
            self.runs.append(run)
        self._reindex = reindex if self._reindex is None else self._reindex
        self._recount = recount if self._recount is None else self._recount
        self.runs[-1] = run._replace(
            length=run.length + 1, reindex=self._reindex or 0, recount=self._recount or 0
        )

    def _extends(
        self, old_at: int, old: Part, new: Part, reindex: int | None, recount: int | None, *, by_rule: bool
    ) -> bool:
        if not self.runs:
            return False
        run = self.runs[-1]
        return (
            run.start + run.length == old_at
            and (reindex is None or self._reindex is None or reindex == self._reindex)
            and (recount is None or self._recount is None or recount == self._recount)
            and (not by_rule or renumbered(old.id, run.group, run.renumber) == new.id)
        )
