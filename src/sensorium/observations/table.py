"""Tables: data frames, CSV, records, spreadsheets, as a profile with notable rows.

Limits: ``max_rows`` rows (and about four million cells) are profiled, ``keep_rows`` rows are kept. Of more,
an evenly spread sample is taken, which a note says.
"""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import encodable
from sensorium.observations.grid import Grid, rows_within, table_value
from sensorium.observations.profile import plain_cell, safe_str
from sensorium.observations.text_types import typed
from sensorium.observations.values import Column, ProblemValue, TableValue

if TYPE_CHECKING:
    from sensorium.observations.html_text import HtmlTable

_MAGIC_BYTES = 16


def read_table(
    raw: Any,
    *,
    part_id: str = "table",
    config: ReadConfig = ReadConfig(),
    units: Mapping[str, str] | None = None,
    meanings: Mapping[str, str] | None = None,
) -> list[Part]:
    """Read a table.

    Args:
        raw: A pandas or polars DataFrame or Series, text or bytes of separated values, bytes of a Parquet,
            Arrow, Excel or SQLite file, a path to such a file, a list of records (mappings or sequences),
            or a mapping of names to columns.
        part_id: Id of the part; the sheets of a workbook and the tables of a database get
            ``{part_id}/{name}``.
        config: Limits.
        units: Name of a column -> unit; others are guessed from the names.
        meanings: Name of a column -> what it means.

    Returns:
        Parts with a `TableValue`, or with a `ProblemValue` that says why it could not be read.
    """
    values: list[tuple[str, TableValue | ProblemValue, tuple[str, ...]]]
    try:
        grids = _grids(raw, config)
        values = [(name, *table_value(grid, config, units=units, meanings=meanings)) for name, grid in grids]
    except Exception as error:  # foreign objects and damaged files raise anything
        values = [("", _problem(error, part_id), ())]
    return [
        Part(
            id=f"{part_id}/{encodable(name)}" if name else part_id,
            modality=Modality.TABLE,
            value=value,
            notes=notes,
        )
        for name, value, notes in values
    ]


def shown_table(table: "HtmlTable", config: ReadConfig) -> tuple[TableValue, tuple[str, ...]]:
    """The value of a table as a notebook shows it, maybe shortened by rows of dots."""
    width = len(table.rows[0])
    names = _header_names(table.header, width)[table.num_labels :]
    rows = [row for row in table.rows if len(row) == width]
    cut = next((i for i, row in enumerate(rows) if set(row) <= {"...", "…", "⋮"}), None)
    if cut is not None:
        del rows[cut]
    kept_columns = [i for i, name in enumerate(names) if name not in ("...", "…")]
    total = max(table.num_rows or 0, len(rows))
    tail = len(rows) - cut if cut is not None else 0
    numbers = [*range(len(rows) - tail), *range(total - tail, total)]
    labels = [" / ".join(row[: table.num_labels]) for row in rows] if table.num_labels else None
    if labels is not None and all(label == str(n) for label, n in zip(labels, numbers, strict=True)):
        labels = None
    columns = [[row[table.num_labels + i] for row in rows] for i in kept_columns]
    grid = Grid(
        names=[names[i] for i in kept_columns],
        columns=columns,
        dtypes=[None] * len(columns),
        row_numbers=numbers,
        total_rows=total,
        labels=labels,
        is_text=True,
        is_sample=total > len(rows),
        notes=_shown_notes(len(rows), total, len(names) - len(kept_columns)),
    )
    if total > len(rows):  # a profile of the few rows that are shown would mislead
        return _unprofiled(grid), grid.notes
    return table_value(grid, config)


def _unprofiled(grid: Grid) -> TableValue:
    found = [typed(values) for values in grid.columns]
    columns = tuple(Column(name=n or "column", dtype=t) for n, (_, t) in zip(grid.names, found, strict=True))
    cells = [[plain_cell(v) for v in values] for values, _ in found]
    return TableValue(
        columns=columns,
        num_rows=grid.total_rows,
        rows=tuple(zip(*cells, strict=True)),
        row_numbers=tuple(grid.row_numbers),
        index=None if grid.labels is None else tuple(grid.labels),
        is_sample=True,
    )


def _shown_notes(num_shown: int, total: int, hidden_columns: int) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    if total > num_shown:
        notes += (f"the notebook shows {num_shown:,} of its {total:,} rows; they are not profiled",)
    if hidden_columns:
        notes += ("the notebook does not show all columns",)
    return notes


def _header_names(header: list[list[str]], width: int) -> list[str]:
    rows = [row for row in header if len(row) == width]
    if not rows:
        return [f"column {i + 1}" for i in range(width)]
    named = [" / ".join(dict.fromkeys(filter(None, column))) for column in zip(*rows, strict=True)]
    return [name or f"column {i + 1}" for i, name in enumerate(named)]


def _grids(raw: Any, config: ReadConfig) -> list[tuple[str, Grid]]:
    """The tables of a source, each with its name (empty when there is one alone)."""
    library = type(raw).__module__.partition(".")[0]
    if library == "pandas":
        from sensorium.observations.frames import pandas_grid

        return [("", pandas_grid(raw, config))]
    if library == "polars":
        from sensorium.observations.frames import polars_grid

        return [("", polars_grid(raw, config))]
    if isinstance(raw, Path):
        return _file_grids(raw, config)
    if isinstance(raw, str):
        from sensorium.observations.delimited import delimited_bytes, read_delimited

        return [("", read_delimited(*delimited_bytes(raw), config))]
    if isinstance(raw, bytes | bytearray | memoryview):
        return _bytes_grids(bytes(raw), config)
    if isinstance(raw, Mapping):
        return [("", _mapping_grid(raw, config))]
    if isinstance(raw, Sequence):
        return [("", _records_grid(raw, config))]
    if hasattr(raw, "to_pandas"):  # pyarrow, and others that follow it
        from sensorium.observations.frames import pandas_grid

        return [("", pandas_grid(raw.to_pandas(), config))]
    raise TypeError(f"a table cannot be read from {type(raw).__name__}")


def _file_grids(path: Path, config: ReadConfig) -> list[tuple[str, Grid]]:
    with path.open("rb") as file:
        found = _binary_grids(path, file.read(_MAGIC_BYTES), config)
        if found is not None:
            return found
        from sensorium.observations.delimited import read_delimited

        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        separator = "\t" if path.suffix.lower() in (".tsv", ".tab") else None
        return [("", read_delimited(file, size, config, separator))]


def _bytes_grids(data: bytes, config: ReadConfig) -> list[tuple[str, Grid]]:
    found = _binary_grids(data, data[:_MAGIC_BYTES], config)
    if found is not None:
        return found
    from sensorium.observations.delimited import read_delimited

    return [("", read_delimited(io.BytesIO(data), len(data), config))]


def _binary_grids(source: Path | bytes, head: bytes, config: ReadConfig) -> list[tuple[str, Grid]] | None:
    """The tables of a file that says by its first bytes what it is; None when it is text."""
    from sensorium.observations.workbooks import arrow_grid, parquet_grid, workbook_grids

    opened = source if isinstance(source, Path) else io.BytesIO(source)
    if head.startswith(b"PAR1"):
        return [("", parquet_grid(opened, config))]
    if head.startswith(b"ARROW1"):
        return [("", arrow_grid(opened, config))]
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return workbook_grids(opened, config)
    if head.startswith(b"SQLite format 3\x00"):
        from sensorium.observations.database import database_grids

        return database_grids(source, config)
    return None


def _mapping_grid(raw: Mapping[Any, Any], config: ReadConfig) -> Grid:
    """A mapping of names to columns, which may differ in length."""
    columns = {safe_str(name): values for name, values in raw.items()}
    lists = [list(v) if isinstance(v, Sequence) and not isinstance(v, str) else [v] for v in columns.values()]
    length = max(map(len, lists), default=0)
    kept = spread_rows(length, rows_within(length, len(lists), config))
    notes = _sample_note(len(kept), length)
    if any(len(one) != length for one in lists):
        notes += ("columns differ in length: what is missing at their ends counts as missing",)
    return Grid(
        names=list(columns),
        columns=[[one[i] if i < len(one) else None for i in kept] for one in lists],
        dtypes=[None] * len(lists),
        row_numbers=kept,
        total_rows=length,
        is_sample=len(kept) < length,
        notes=notes,
    )


def _records_grid(raw: Sequence[Any], config: ReadConfig) -> Grid:
    """A list of mappings, of sequences, or of single values."""
    kept = spread_rows(len(raw), rows_within(len(raw), 1, config))
    records = [raw[i] for i in kept]
    notes = _sample_note(len(kept), len(raw))
    if records and all(isinstance(record, Mapping) for record in records):
        names = list(dict.fromkeys(key for record in records for key in record))
        columns = [[record.get(name) for record in records] for name in names]
    elif records and all(
        isinstance(record, Sequence) and not isinstance(record, str | bytes) for record in records
    ):
        width = max(map(len, records))
        first = records[0]
        fields = getattr(first, "_fields", None)
        names = list(fields) if fields else [f"column {i + 1}" for i in range(width)]
        columns = [[record[i] if i < len(record) else None for record in records] for i in range(len(names))]
    else:
        names, columns = ["value"], [records]
    return Grid(
        names=[safe_str(name) for name in names],
        columns=columns,
        dtypes=[None] * len(names),
        row_numbers=kept,
        total_rows=len(raw),
        is_sample=len(kept) < len(raw),
        notes=notes,
    )


def spread_rows(num_rows: int, limit: int) -> Sequence[int]:
    """Row numbers, all or `limit` of them spread evenly from the first to the last."""
    if num_rows <= limit:
        return range(num_rows)
    if limit <= 1:
        return range(min(limit, num_rows))
    return [number * (num_rows - 1) // (limit - 1) for number in range(limit)]


def _sample_note(num_read: int, total: int) -> tuple[str, ...]:
    return () if num_read == total else (sample_note(num_read, total),)


def sample_note(num_read: int, total: int) -> str:
    """What is said of a table of which only some rows were looked at."""
    return f"profile of {num_read:,} rows spread evenly over {total:,}"


def _problem(error: Exception, part_id: str) -> ProblemValue:
    mend = ""
    if isinstance(error, ImportError) and "parquet" in str(error):
        # pandas lists what it tried in seven lines.
        what = "the table cannot be read: pandas finds no engine for Parquet (pyarrow or fastparquet)"
        return ProblemValue(what=what, where=part_id, mend="Install pyarrow, or save the table as CSV.")
    missing = re.search(r"Import (\w+)", str(error)) if isinstance(error, ImportError) else None
    if missing is not None:  # pandas words it at length, and differently from version to version
        what = f"the table cannot be read: {missing[1]} is not installed"
        return ProblemValue(what=what, where=part_id, mend=f"Install {missing[1]}, or save the table as CSV.")
    if isinstance(error, ImportError):
        mend = "Install the package that it names, or save the table as CSV."
    elif isinstance(error, OSError):
        mend = "Check that the file exists and may be read."
    kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
    what = f"the table cannot be read: {kind}{encodable(safe_str(error))[:500]}"
    return ProblemValue(what=what, where=part_id, mend=mend)
