"""The notebook: cells with ids that stay, and what they wrote."""

from dataclasses import dataclass
from typing import Any, Literal

from sensorium.core.errors import nearest
from sensorium.envs.notebook.execution import Execution
from sensorium.envs.tools import ToolError

CellKind = Literal["code", "markdown"]


@dataclass
class Cell:
    """One cell."""

    id: str
    kind: CellKind
    source: str
    run: Execution | None = None
    """Its last run; None when it was never run."""
    is_stale: bool = False
    """Whether it was run in a kernel that is gone, so that its variables are, too."""


class Notebook:
    """Cells in their order."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self._made = 0

    def add(self, source: str, kind: CellKind, after: str | None) -> Cell:
        """Add a cell.

        Args:
            source: Its text.
            kind: Code or text.
            after: Id of the cell before it; None for the end.

        Raises:
            ToolError: There is no such cell.
        """
        place = len(self.cells) if after is None else self.cells.index(self.find(after)) + 1
        self._made += 1
        cell = Cell(f"c{self._made}", kind, source)
        self.cells.insert(place, cell)
        return cell

    def find(self, cell_id: str) -> Cell:
        """The cell with this id; it may be given as it is shown, ``notebook/cell-c1``.

        Raises:
            ToolError: There is none; the message names the nearest.
        """
        wanted = cell_id.strip().rpartition("/")[2].removeprefix("cell-")
        for cell in self.cells:
            if cell.id == wanted:
                return cell
        if not self.cells:
            raise ToolError(f"there is no cell {cell_id!r}: the notebook is empty")
        raise ToolError(f"there is no cell {cell_id[:80]!r}. {nearest(wanted, [c.id for c in self.cells])}")

    def remove(self, cell: Cell) -> None:
        """Take a cell out."""
        self.cells.remove(cell)

    def limit(self, max_chars: int, *, but: Cell) -> None:
        """Remove the outputs of the oldest cells where all together are too large.

        Args:
            max_chars: Of all outputs.
            but: This one keeps its outputs.
        """
        sizes = {cell.id: cell.run.collector.num_chars for cell in self.cells if cell.run is not None}
        total = sum(sizes.values())
        for cell in sorted(self.cells, key=lambda cell: int(cell.id[1:])):
            if total <= max_chars:
                return
            if cell.run is not None and cell is not but:
                cell.run.collector.discard()
                total += cell.run.collector.num_chars - sizes[cell.id]

    def forget_runs(self, *, but: Cell | None = None) -> None:
        """Mark what was run in a kernel that is gone."""
        for cell in self.cells:
            cell.is_stale = cell.run is not None and cell is not but

    def json(self) -> dict[str, Any]:
        """The notebook in nbformat 4.5."""
        return {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {
                "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
                "language_info": {"name": "python"},
            },
            "cells": [_json(cell) for cell in self.cells],
        }


def _json(cell: Cell) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": cell.id,
        "cell_type": cell.kind,
        "metadata": {},
        "source": cell.source,
    }
    if cell.kind == "code":
        run = cell.run
        shown["outputs"] = run.collector.outputs() if run is not None else []
        shown["execution_count"] = run.count if run is not None and not cell.is_stale else None
    return shown
