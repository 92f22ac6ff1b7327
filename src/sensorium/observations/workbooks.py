"""Parquet and Arrow files, and workbooks, read by whichever engine of pandas is installed."""

import importlib
import io
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sensorium.core.errors import require
from sensorium.observations.config import ReadConfig
from sensorium.observations.frames import pandas_grid
from sensorium.observations.grid import Grid, rows_within

_MAX_SHEETS = 50
_MAX_INFLATION = 20
"""Times ``max_bytes`` that the unpacked parts of a workbook may take."""


def parquet_grid(source: Path | io.BytesIO, config: ReadConfig) -> Grid:
    """Read a Parquet file; of a large one the first rows, by pyarrow.

    Raises:
        MissingDependencyError: pandas is not installed.
        ImportError: No engine for Parquet is installed.
    """
    pandas = require("pandas", extra="observe", purpose="reading Parquet files")
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        return pandas_grid(pandas.read_parquet(source), config)
    file = parquet.ParquetFile(source)
    total = file.metadata.num_rows
    wanted = rows_within(total, file.metadata.num_columns, config)
    if wanted >= total:
        return pandas_grid(file.read().to_pandas(), config)
    return _first_rows(file.iter_batches(batch_size=min(wanted, 65_536)), wanted, total, config)


def arrow_grid(source: Path | io.BytesIO, config: ReadConfig) -> Grid:
    """Read an Arrow file (Feather, version 2); of a large one the first rows.

    Raises:
        MissingDependencyError: pandas or pyarrow is not installed.
    """
    require("pandas", extra="observe", purpose="reading Arrow files")
    arrow: Any = require("pyarrow", extra="observe", purpose="reading Arrow files")
    with arrow.ipc.open_file(arrow.memory_map(str(source)) if isinstance(source, Path) else source) as file:
        wanted, total = rows_within(config.max_rows, len(file.schema), config), 0
        batches: list[Any] = []
        for number in range(file.num_record_batches):  # all are met once: nothing else tells how many rows
            batch = file.get_batch(number)
            if total < wanted:
                batches.append(batch)
            total += batch.num_rows
        return _first_rows(batches, wanted, total, config)


def _first_rows(batches: Iterable[Any], wanted: int, total: int, config: ReadConfig) -> Grid:
    """The first rows of record batches of pyarrow."""
    pandas = require("pandas", extra="observe", purpose="reading tables")
    frames: list[Any] = []
    count = 0
    for batch in batches:
        if frames and count >= wanted:
            break
        frames.append(batch.slice(0, wanted - count).to_pandas())
        count += batch.num_rows
    if not frames:
        return Grid([], [], [], [], 0)
    grid = pandas_grid(pandas.concat(frames, ignore_index=len(frames) > 1), config)
    if wanted >= total:
        return grid
    note = f"the first {wanted:,} of {total:,} rows were read"
    return grid._replace(total_rows=total, is_sample=True, notes=(*grid.notes, note))


def workbook_grids(source: Path | io.BytesIO, config: ReadConfig) -> list[tuple[str, Grid]]:
    """Read the sheets of a workbook (``.xlsx``, ``.xls``, ``.ods``).

    Raises:
        MissingDependencyError: pandas is not installed.
        ImportError: The engine for this kind of workbook is not installed.
        ValueError: It would unpack to more than it may, or is no workbook.
    """
    pandas = require("pandas", extra="observe", purpose="reading workbooks")
    _refuse_bomb(source, config)
    sheets: dict[Any, Any] = pandas.read_excel(source, sheet_name=None, nrows=config.max_rows + 1)
    grids = []
    for name, frame in list(sheets.items())[:_MAX_SHEETS]:
        is_cut = len(frame) > config.max_rows
        grid = pandas_grid(frame.head(config.max_rows), config)
        if is_cut:
            note = f"only the first {config.max_rows:,} rows were read"
            grid = grid._replace(is_sample=True, notes=(*grid.notes, note))
        grids.append((str(name).replace("/", "-") if len(sheets) > 1 else "", grid))
    return grids


def _refuse_bomb(source: Path | io.BytesIO, config: ReadConfig) -> None:
    if not zipfile.is_zipfile(source):
        return
    with zipfile.ZipFile(source) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    limit = _MAX_INFLATION * config.max_bytes
    if size > limit:
        raise ValueError(f"the workbook unpacks to {size:,} bytes, more than the limit of {limit:,}")
    if not isinstance(source, Path):
        source.seek(0)
