"""A table of text cells with typed columns: what is asked about and written to the agent's files."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sensorium.envs.notebook.measures import Numbers

ColumnKind = Literal["number", "category", "date", "key"]


@dataclass(frozen=True)
class Column:
    """One column of a data set."""

    name: str
    kind: ColumnKind
    meaning: str
    """In a few words, with the unit."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Code in the source -> what stands in the file."""
    source: str = ""
    """Name in the source; the same when empty."""


@dataclass(frozen=True)
class Table:
    """Cells as they stand in the file, by column; an empty one is missing."""

    columns: Mapping[str, tuple[str, ...]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def texts(self, name: str) -> tuple[str, ...]:
        """Cells of a column."""
        return self.columns[name]

    def numbers(self, name: str) -> Numbers:
        """Values of a column; NaN where one is missing."""
        return np.array([float(cell) if cell else np.nan for cell in self.columns[name]])

    def take(self, rows: Sequence[int]) -> "Table":
        """Some rows, in the order given."""
        return Table({name: tuple(cells[row] for row in rows) for name, cells in self.columns.items()})

    def only(self, names: Sequence[str]) -> "Table":
        """Some columns."""
        return Table({name: self.columns[name] for name in names})

    def with_column(self, name: str, cells: Sequence[str]) -> "Table":
        """The table with a column added or replaced."""
        return Table({**self.columns, name: tuple(cells)})

    def csv(self) -> str:
        """The file."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return out.getvalue()
