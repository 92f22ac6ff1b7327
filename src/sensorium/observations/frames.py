"""Data frames of pandas and polars as grids; neither library is imported unless its object is given."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sensorium.observations.config import ReadConfig
from sensorium.observations.grid import Grid, rows_within
from sensorium.observations.profile import plain_cell, safe_str
from sensorium.observations.table import sample_note, spread_rows

_MAX_LABEL_CHARS = 200


def pandas_grid(raw: Any, config: ReadConfig) -> Grid:
    """A pandas DataFrame, Series or Index as a grid.

    Names of several levels are joined by `` / ``, and so are labels. A default index is left out.
    """
    frame = raw
    if hasattr(raw, "to_frame"):
        frame = raw.to_frame(index=False) if not hasattr(raw, "index") else raw.to_frame()
        if getattr(raw, "name", None) is None:
            frame.columns = ["value"]
    if not hasattr(frame, "iloc"):
        raise TypeError(f"a table cannot be read from pandas' {type(raw).__name__}")
    total = len(frame)
    kept = spread_rows(total, rows_within(total, frame.shape[1], config))
    notes: tuple[str, ...] = ()
    if len(kept) < total:
        frame = frame.iloc[list(kept)]
        notes = (sample_note(len(kept), total),)
    dtypes = [str(dtype) for dtype in frame.dtypes]
    labels = _labels(frame.index, kept, total)
    index_names = [safe_str(name) for name in frame.index.names if name is not None]
    if labels is not None and index_names:
        notes += (f"rows are labelled by {' / '.join(index_names)}",)
    return Grid(
        names=[_name(name) for name in frame.columns.tolist()],
        columns=[_pandas_values(frame.iloc[:, i], dtype) for i, dtype in enumerate(dtypes)],
        dtypes=[None if dtype == "object" else dtype for dtype in dtypes],
        row_numbers=kept,
        total_rows=total,
        labels=labels,
        is_sample=len(kept) < total,
        notes=notes,
    )


def polars_grid(raw: Any, config: ReadConfig) -> Grid:
    """A polars DataFrame, LazyFrame or Series as a grid."""
    if hasattr(raw, "collect"):
        raw = raw.collect()
    frame = raw.to_frame() if hasattr(raw, "to_frame") else raw
    total = int(frame.height)
    kept = spread_rows(total, rows_within(total, frame.width, config))
    if len(kept) < total:
        frame = frame[list(kept)]
    columns: list[Sequence[Any]] = []
    for series in frame.get_columns():
        is_plain = series.dtype.is_numeric() and series.null_count() == 0
        values = series.to_numpy() if is_plain else None
        columns.append(series.to_list() if values is None or values.dtype.kind not in "iuf" else values)
    return Grid(
        names=list(frame.columns),
        columns=columns,
        dtypes=[str(dtype).lower() for dtype in frame.dtypes],
        row_numbers=kept,
        total_rows=total,
        is_sample=len(kept) < total,
        notes=(sample_note(len(kept), total),) if len(kept) < total else (),
    )


def _pandas_values(series: Any, dtype: str) -> Any:
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iuf" and isinstance(series.dtype, np.dtype):
        return series.to_numpy()
    if dtype.startswith("Sparse"):
        return np.asarray(series)
    if kind == "m":
        return [None if text == "NaT" else text for text in series.astype(str).tolist()]
    return series.astype(object).tolist()


def _labels(index: Any, kept: Sequence[int], total: int) -> list[str] | None:
    if type(index).__name__ == "RangeIndex" and total == len(kept) and index.start == 0 and index.step == 1:
        return None
    values = index.tolist()
    if all(isinstance(v, int) and v == n for v, n in zip(values, kept, strict=True)):
        return None
    return [_name(value)[:_MAX_LABEL_CHARS] for value in values]


def _name(value: Any) -> str:
    if isinstance(value, tuple):
        return " / ".join(text for text in map(_name, value) if text)
    cell = plain_cell(value)
    return "" if cell is None else str(cell)
