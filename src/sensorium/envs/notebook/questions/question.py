"""What a kind of question is made from, and what it gives."""

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sensorium.envs.notebook.answers import AnswerKey
from sensorium.envs.notebook.dataset import Dataset
from sensorium.envs.notebook.measures import Numbers
from sensorium.envs.notebook.table import Column, Table

_MAX_ROWS = 4_000
_MAX_NUMBERS = 8


class Unsuitable(Exception):
    """A question cannot be asked about these data; another one is drawn."""


@dataclass(frozen=True)
class Question:
    """A question with its answer."""

    text: str
    key: AnswerKey
    code: str
    """Python with pandas as ``pd`` and the first file as ``df``, which leaves the answer in ``answer``."""
    columns: tuple[str, ...]
    """Those that it speaks of."""
    files: Mapping[str, Table] = field(default_factory=dict)
    """What is written; the table as it is when empty."""
    note: str = ""
    """What must be known of the files beside it."""


class Draw:
    """The rows of a data set that one question is about, and what is picked from them.

    Args:
        rng: Decides everything.
        dataset: Where the rows come from.
        table: All its rows.
    """

    def __init__(self, rng: random.Random, dataset: Dataset, table: Table) -> None:
        self.rng, self.dataset = rng, dataset
        numbers = [c.name for c in dataset.of_kind("number")]
        kept = set(rng.sample(numbers, min(_MAX_NUMBERS, len(numbers))))
        if dataset.is_series:
            kept |= {"year", "quarter"}
        self.columns = tuple(c for c in dataset.columns if c.kind != "number" or c.name in kept)
        self.table = table.take(self._rows(len(table))).only([c.name for c in self.columns])

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.dataset.name}.csv"

    def numbers(self, count: int = 1) -> list[Column]:
        """Different numeric columns with at least ten values each.

        Raises:
            Unsuitable: There are not so many.
        """
        found = [
            c for c in self.columns if c.kind == "number" and not self._is_clock(c) and self._varies(c.name)
        ]
        if len(found) < count:
            raise Unsuitable
        return self.rng.sample(found, count)

    def category(self, at_least: int = 2, at_most: int = 60) -> Column:
        """A column of categories, each of which has some rows.

        Raises:
            Unsuitable: There is none.
        """
        found = [
            c for c in self.columns if c.kind == "category" and at_least <= len(self.levels(c)) <= at_most
        ]
        if not found:
            raise Unsuitable
        return self.rng.choice(found)

    def levels(self, column: Column, at_least: int = 1) -> list[str]:
        """Names of a column's categories with so many rows, sorted."""
        counts = Counter(cell for cell in self.table.texts(column.name) if cell)
        return sorted(name for name, count in counts.items() if count >= at_least)

    def level(self, column: Column, at_least: int = 12) -> str:
        """One category.

        Raises:
            Unsuitable: None has so many rows.
        """
        levels = self.levels(column, at_least)
        if not levels:
            raise Unsuitable
        return self.rng.choice(levels)

    def complete(self, *columns: Column, where: Mapping[str, str] | None = None) -> Table:
        """Rows that have a value in each of these columns, and these categories.

        Raises:
            Unsuitable: Fewer than ten.
        """
        names = [c.name for c in columns]
        rows = [
            row
            for row in range(len(self.table))
            if all(self.table.columns[name][row] for name in names)
            and all(self.table.columns[name][row] == level for name, level in (where or {}).items())
        ]
        if len(rows) < 10:
            raise Unsuitable
        return self.table.take(rows)

    def threshold(self, values: Numbers, low: float = 0.2, high: float = 0.8) -> float:
        """A value somewhere in the middle, rounded."""
        place = float(np.quantile(values, self.rng.uniform(low, high)))
        if place == 0.0:
            return 0.0
        return float(f"{place:.3g}")

    def _rows(self, total: int) -> list[int]:
        count = max(10, min(_MAX_ROWS, round(total * self.rng.uniform(0.6, 0.95)), total))
        if self.dataset.is_series:
            count = max(count, min(total, 40))
            start = self.rng.randint(0, total - count)
            return list(range(start, start + count))
        return self.rng.sample(range(total), count)

    def _is_clock(self, column: Column) -> bool:
        return self.dataset.is_series and column.name in ("year", "quarter")

    def _varies(self, name: str) -> bool:
        values = self.table.numbers(name)
        values = values[~np.isnan(values)]
        return len(values) >= 10 and len(np.unique(values)) >= 5


Template = Callable[[Draw], Question]


def number(value: float, digits: int = 4) -> AnswerKey:
    """The key of a number, to 12 significant digits: machines differ in the last ones of a fit.

    Raises:
        Unsuitable: It is not finite, nearly nothing, or a small whole number that one could guess.
    """
    if not math.isfinite(value) or abs(value) < 1e-12:
        raise Unsuitable
    if abs(value - round(value)) < 1e-9 and abs(value) <= 100:
        raise Unsuitable
    return AnswerKey(kind="number", value=float(f"{value:.12g}"), digits=digits)


def count(value: int, at_least: int = 8) -> AnswerKey:
    """The key of a count, which must be met exactly.

    Raises:
        Unsuitable: It is so small that one could guess it.
    """
    if value < at_least:
        raise Unsuitable
    return AnswerKey(kind="number", value=float(value), exact=True)


def category(value: str, choices: Sequence[str]) -> AnswerKey:
    """The key of a category.

    Raises:
        Unsuitable: There are fewer than five.
    """
    if len(choices) < 5:
        raise Unsuitable
    return AnswerKey(kind="category", value=value, choices=tuple(choices))


def best(scores: Mapping[str, float], *, highest: bool) -> str:
    """The name with the highest or lowest score.

    Raises:
        Unsuitable: Another one is about as good.
    """
    ordered = sorted(scores.items(), key=lambda item: item[1], reverse=highest)
    if len(ordered) < 2:
        raise Unsuitable
    (name, first), (_, second) = ordered[:2]
    if abs(first - second) <= 1e-6 * max(abs(first), abs(second), 1e-12):
        raise Unsuitable
    return name
