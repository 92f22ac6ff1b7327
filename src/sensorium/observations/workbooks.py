"""Parquet files and workbooks, read by whichever engine of pandas is installed."""

import importlib
import io
import zipfile
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
    batches, count = [], 0
    for batch in file.iter_batches(batch_size=min(wanted, 65_536)):
        batches.append(batch.to_pandas())
        count += len(batch)
        if count >= wanted:
            break
    grid = pandas_grid(pandas.concat(batches, ignore_index=True).head(wanted), config)
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
