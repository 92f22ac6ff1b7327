"""Real tables that charts are drawn from; `scripts/collect_chart_tables.py` gathered them."""

import functools
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Literal

from sensorium.envs.base import Record

_TEST_SHARE = 4  # one table in so many is kept for the test split


class TableColumn(Record):
    """One column."""

    name: str
    unit: str
    values: tuple[float, ...]


class DataTable(Record):
    """A small extract of a real data set."""

    name: str
    title: str
    source: str
    """Package and data set."""
    kind: Literal["series", "categories", "sample"]
    """Rows with an order, rows with names, or single measurements."""
    index_name: str
    index: tuple[str, ...]
    groups: tuple[str, ...]
    """Of a sample: the group of every row, if there are any."""
    additive: bool
    """Whether the columns of a row are parts of a whole."""
    columns: tuple[TableColumn, ...]

    @property
    def num_rows(self) -> int:
        """Rows."""
        return len(self.columns[0].values)

    def alike(self) -> tuple[TableColumn, ...]:
        """Columns in the unit of the first one."""
        return tuple(column for column in self.columns if column.unit == self.columns[0].unit)


@functools.cache
def all_tables() -> tuple[DataTable, ...]:
    """Every table."""
    text = (files("sensorium.envs.visual_qa") / "data/tables.json").read_text(encoding="utf-8")
    return tuple(DataTable.model_validate(one) for one in json.loads(text))


@functools.cache
def tables_of(split: str) -> tuple[DataTable, ...]:
    """The tables of a split; no table is in two of them."""
    chosen, seen = [], dict[tuple[str, bool, bool], int]()
    for one in all_tables():
        sort = (one.kind, one.additive, bool(one.groups))
        seen[sort] = seen.get(sort, 0) + 1
        is_test = seen[sort] % _TEST_SHARE == 2
        if is_test == (split == "test"):
            chosen.append(one)
    return tuple(chosen)


def tables_where(split: str, fits: Callable[[DataTable], bool]) -> list[DataTable]:
    """The tables of a split that a chart can be made of."""
    return [one for one in tables_of(split) if fits(one)]
