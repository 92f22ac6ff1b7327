"""Columns of plain text: values apart by runs of blanks or by a separator, told from prose.

Prose has no columns: its lines differ in their number of words, and hardly any word is a number.
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from sensorium.observations.text_types import MISSING, is_comma_number, is_number

BLANKS = " "
"""Separator of columns between which stands a run of blanks."""
GAPS = "  "
"""Separator of columns between which stand two blanks or more, or a tab: values may have single ones."""
COMMENT = ("#", "%")
_SAMPLE = 200
"""Lines that are looked at."""
_SHARE = 0.95
"""Share of rows that must be as wide as most are."""
_MIN_ROWS = 3
_GAP = re.compile(r"[ \t]{2,}|\t")
_SEPARATED = re.compile(r"[\s,;|]+")
_HEADER_MARKS = re.compile(r"^[#%\s]+")


class Columns(NamedTuple):
    """How a text is divided into columns."""

    separator: str
    skipped_lines: int
    """Comments and blank lines in front."""
    width: int
    header: tuple[str, ...]
    """Names of the columns where they cannot be taken from the first line as it is; else empty."""
    has_header: bool
    """Whether the first line that is not skipped holds names."""
    rows: list[list[str]]
    """Of the beginning, without the header."""

    @property
    def numeric(self) -> list[bool]:
        """For each column whether all of its values are numbers or missing, and some are numbers."""
        return [_is_numeric([row[at] for row in self.rows if at < len(row)]) for at in range(self.width)]


def find_columns(text: str, separators: Sequence[str] = (BLANKS, GAPS)) -> Columns | None:
    """The columns of a text with at least one of numbers; None when it has none.

    Args:
        text: Its beginning, ending with a whole line.
        separators: What may stand between columns, tried in order.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    skipped, comment = 0, ""
    while skipped < len(lines) and (not lines[skipped].strip() or is_comment(lines[skipped])):
        comment = lines[skipped] if lines[skipped].strip() else comment
        skipped += 1
    body = list(islice((line for line in lines[skipped:] if line.strip() and not is_comment(line)), _SAMPLE))
    for separator in separators:
        found = _divided(body, separator, skipped, comment)
        if found is not None and any(found.numeric):
            return found
    return None


def is_table(text: str) -> bool:
    """Whether a text is surely a table: half of its columns are numbers, all of its rows have one width."""
    if not _may_be_table(text):
        return False
    columns = find_columns(text, (",", "\t", ";", "|", BLANKS, GAPS))
    if columns is None or len(columns.rows) < _MIN_ROWS:
        return False
    if any(len(row) != columns.width for row in columns.rows):
        return False
    numeric = columns.numeric
    if 2 * sum(numeric) < columns.width:
        return False
    values = list(zip(*columns.rows, strict=True))
    if any(len(set(column)) == 1 for column, is_one in zip(values, numeric, strict=True) if not is_one):
        return False  # the same word in every line: ``step 3 loss 0.5``
    is_numbered = numeric[0] and sum(numeric) == 1 and not (columns.has_header or columns.header)
    return not (is_numbered and _counts_up(values[0]))  # ``1 Introduction``


def _may_be_table(text: str) -> bool:
    """A quick look that most texts do not pass: two of the first lines behind a header hold a number."""
    body = (line for line in text.splitlines() if line.strip() and not is_comment(line))
    first = islice(body, 1, 1 + _MIN_ROWS)
    return sum(any(map(_is_value, _SEPARATED.split(line))) for line in first) >= _MIN_ROWS - 1


def is_comment(line: str) -> bool:
    """Whether a line between rows is a comment."""
    return line.lstrip().startswith(COMMENT)


def prepared(separator: str) -> Callable[[str], str]:
    """What is done to a line before it is divided by `read_rows`."""
    if separator == BLANKS:
        return lambda line: "" if is_comment(line) else line.replace("\t", " ").strip()
    if separator == GAPS:
        return lambda line: "" if is_comment(line) else _GAP.sub("\t", line.strip())
    return lambda line: line


def csv_format(separator: str) -> tuple[str, bool]:
    """Delimiter for `csv.reader`, and whether blanks behind it are skipped."""
    return ("\t", False) if separator == GAPS else (separator, separator == BLANKS)


def _divided(body: list[str], separator: str, skipped: int, comment: str) -> Columns | None:
    rows = _parsed(map(prepared(separator), body), separator)
    rest = rows[1:] or rows
    if not rest:
        return None
    widths = [len(row) for row in rest]
    width = max(set(widths), key=widths.count)
    if width < 2 or widths.count(width) < _SHARE * len(widths):
        return None
    first = rows[0]
    if len(first) == width - 1 and len(rows) > 1 and not any(map(_is_value, first)):
        # As R writes it: no name stands above the labels of the rows.
        return Columns(separator, skipped, width, ("", *first), True, rows[1:])
    if len(first) != width:
        return None
    sample = Columns(separator, skipped, width, (), False, rest)
    has_header = len(rows) > 1 and any(
        is_one and not _is_value(cell) and cell not in MISSING
        for cell, is_one in zip(first, sample.numeric, strict=True)
    )
    if has_header:
        return sample._replace(has_header=True)
    names = _parsed([prepared(separator)(_HEADER_MARKS.sub("", comment))], separator)
    header = names[0] if names and len(names[0]) == width and not any(map(_is_value, names[0])) else ()
    return sample._replace(header=tuple(header), rows=rows)


def _parsed(lines: Iterable[str], separator: str) -> list[list[str]]:
    delimiter, skips = csv_format(separator)
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=skips) if row]
    except csv.Error:
        return []


def _is_numeric(cells: Sequence[str]) -> bool:
    present = [cell for cell in (cell.strip() for cell in cells) if cell not in MISSING]
    return bool(present) and all(map(_is_value, present))


def _is_value(cell: str) -> bool:
    return is_number(cell) or is_comma_number(cell)


def _counts_up(cells: Sequence[str]) -> bool:
    numbers = [float(cell) for cell in cells if is_number(cell)]
    return all(after - before == 1 for before, after in pairwise(numbers))
