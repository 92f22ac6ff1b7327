"""Printed tables of real data."""

import random
from typing import NamedTuple

from sensorium.envs.visual_qa.answers import ChoiceAnswer, NumberAnswer, TextAnswer, YesNoAnswer
from sensorium.envs.visual_qa.charts.model import most_decimals, written
from sensorium.envs.visual_qa.charts.tables import DataTable, TableColumn, tables_where
from sensorium.envs.visual_qa.documents.model import FontName, Layout, Page
from sensorium.envs.visual_qa.questions import Question, Template, ask, listed

_MAX_NAME_CHARS = 16


class PrintedTable(NamedTuple):
    """What a table says."""

    title: str
    index_name: str
    labels: tuple[str, ...]
    columns: tuple[tuple[str, tuple[float, ...]], ...]
    unit: str
    decimals: int


def table_question(rng: random.Random, split: str, width: int) -> tuple[Page, Question]:
    """A table and a question about it."""
    while True:
        table = _choose(rng, split, width)
        question = ask(table, TEMPLATES, rng)
        if question is not None:
            return _lay_out(table, rng, width), question


def _choose(rng: random.Random, split: str, width: int) -> PrintedTable:
    source = rng.choice(tables_where(split, lambda t: t.kind != "sample" and bool(_narrow(t))))
    columns = _narrow(source)
    count = rng.randint(1, min(4, len(columns)))
    columns = [columns[i] for i in sorted(rng.sample(range(len(columns)), count))]
    num_rows = min(rng.randint(5, 10), source.num_rows)
    first = rng.randrange(source.num_rows - num_rows + 1)
    rows = range(first, first + num_rows)
    values = [(c.name, tuple(c.values[row] for row in rows)) for c in columns]
    return PrintedTable(
        title=source.title,
        index_name=source.index_name,
        labels=tuple(source.index[row] for row in rows),
        columns=tuple(values),
        unit=columns[0].unit,
        decimals=most_decimals(v for _, some in values for v in some),
    )


def _narrow(table: DataTable) -> list[TableColumn]:
    """Columns whose names fit above their values."""
    return [column for column in table.alike() if len(column.name) <= _MAX_NAME_CHARS]


def _lay_out(table: PrintedTable, rng: random.Random, width: int) -> Page:
    fonts: tuple[FontName, ...] = ("sans", "serif", "mono")
    font = rng.choice(fonts)
    page = Layout(width, font=font)
    page.text(table.title, size=22, bold=True)
    page.down(34)
    page.text(f"Values in {table.unit}" if table.unit else "", size=15)
    page.down(32)
    step = (page.right - page.left) / (len(table.columns) + 1.4)
    places = [page.left + step * (number + 2.3) for number in range(len(table.columns))]
    page.rule(2)
    page.down(8)
    page.text(table.index_name, bold=True, size=16)
    for x, (name, _) in zip(places, table.columns, strict=True):
        page.text(name, x=x, bold=True, size=16 if len(name) <= 10 else 13, align="right")
    page.down(30)
    page.rule()
    striped = rng.random() < 0.5
    for row, label in enumerate(table.labels):
        if striped and row % 2:
            page.band(34, "#eef2f7")
        page.down(7)
        page.text(label, x=page.left + 4)
        for x, (_, values) in zip(places, table.columns, strict=True):
            page.text(written(values[row], table.decimals), x=x, align="right")
        page.down(27)
    page.rule(2)
    return page.page("table")


def _number(table: PrintedTable, value: float, unit: str | None = None, *, terms: int = 1) -> NumberAnswer:
    """A value; sums may be rounded like their terms."""
    names = [*table.labels, *(name for name, _ in table.columns), table.title]
    return NumberAnswer(
        value=float(f"{value:.10g}"),
        tolerance=0.5 * 10.0**-table.decimals if terms == 1 else 0.5 * 10.0**-table.decimals * 1.01,
        unit=table.unit if unit is None else unit,
        labels=tuple(name for name in dict.fromkeys(names) if any(c.isdigit() for c in name)),
    )


def _count(table: PrintedTable, value: int) -> NumberAnswer:
    return _number(table, float(value), unit="").model_copy(update={"tolerance": 0.0})


def _row(table: PrintedTable, rng: random.Random) -> int:
    return rng.randrange(len(table.labels))


def _of(table: PrintedTable, row: int) -> str:
    name = table.labels[row]
    return name if name.startswith(table.index_name) else f"the {table.index_name} {name}"


def cell(table: PrintedTable, rng: random.Random) -> Question | None:
    """One value."""
    row, (name, values) = _row(table, rng), rng.choice(table.columns)
    text = f"What is the value in the column {name!r} for {_of(table, row)}?"
    return Question(text=text, answer=_number(table, values[row]))


def largest(table: PrintedTable, rng: random.Random) -> Question | None:
    """Which row has the largest or smallest value of a column."""
    name, values = rng.choice(table.columns)
    pick, word = rng.choice(((max, "largest"), (min, "smallest")))
    best = pick(values)
    if values.count(best) > 1:
        return None
    text = f"For which {table.index_name} is the value in the column {name!r} the {word}?"
    right = table.labels[values.index(best)]
    return Question(text=text, answer=ChoiceAnswer(value=right, options=table.labels), template=word)


def sum_of_rows(table: PrintedTable, rng: random.Random) -> Question | None:
    """The sum of three values of a column."""
    name, values = rng.choice(table.columns)
    rows = sorted(rng.sample(range(len(values)), 3))
    names = listed([table.labels[row] for row in rows], "and")
    text = f"What is the sum of the values in the column {name!r} for {names}?"
    return Question(text=text, answer=_number(table, sum(values[row] for row in rows), terms=3))


def sum_of_column(table: PrintedTable, rng: random.Random) -> Question | None:
    """The sum of a whole column."""
    name, values = rng.choice(table.columns)
    if len(values) > 7:
        return None
    text = f"What do all values in the column {name!r} add up to?"
    return Question(text=text, answer=_number(table, sum(values), terms=len(values)))


def difference(table: PrintedTable, rng: random.Random) -> Question | None:
    """How far two rows are apart."""
    name, values = rng.choice(table.columns)
    a, b = rng.sample(range(len(values)), 2)
    if values[a] == values[b]:
        return None
    if values[a] < values[b]:
        a, b = b, a
    text = (
        f"In the column {name!r}, by how much is the value for {_of(table, a)} larger than that for "
        f"{_of(table, b)}?"
    )
    return Question(text=text, answer=_number(table, values[a] - values[b], terms=2))


def rows_above(table: PrintedTable, rng: random.Random) -> Question | None:
    """How many rows are above one of the values."""
    name, values = rng.choice(table.columns)
    middle = sorted(values)[len(values) // 2]
    number = sum(v > middle for v in values)
    if not number:
        return None
    text = (
        f"How many rows have a value greater than {written(middle, table.decimals)} in the column {name!r}?"
    )
    return Question(text=text, answer=_count(table, number))


def num_rows(table: PrintedTable, rng: random.Random) -> Question | None:
    """How many rows there are."""
    text = "How many rows does the table have below its header?"
    return Question(text=text, answer=_count(table, len(table.labels)))


def unit(table: PrintedTable, rng: random.Random) -> Question | None:
    """In which unit."""
    if not table.unit.isascii() or not table.unit.replace(" ", "").isalpha():
        return None
    return Question(text="In which unit are the values given?", answer=TextAnswer(value=table.unit))


def is_larger(table: PrintedTable, rng: random.Random) -> Question | None:
    """Whether one column is larger than another."""
    if len(table.columns) < 2:
        return None
    (one, a), (other, b) = rng.sample(table.columns, 2)
    row = _row(table, rng)
    if a[row] == b[row]:
        return None
    text = f"For {_of(table, row)}, is the value of {one!r} larger than that of {other!r}?"
    return Question(text=text, answer=YesNoAnswer(value=a[row] > b[row]))


TEMPLATES: tuple[Template[PrintedTable], ...] = (
    cell, largest, sum_of_rows, sum_of_column, difference, rows_above, num_rows, unit, is_larger,
)  # fmt: skip
