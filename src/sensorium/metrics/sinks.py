"""Where metrics go: a file of JSON lines, TensorBoard, or several places at once."""

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from sensorium.core.errors import RunDirectoryError, require
from sensorium.core.files import atomic_write_bytes
from sensorium.metrics.names import NON_FINITE_SUFFIX
from sensorium.metrics.values import Histogram, Metric


@runtime_checkable
class Sink(Protocol):
    """Takes the metrics of a step; to add one, write these two methods."""

    def write(self, step: int, metrics: Mapping[str, Metric]) -> None:
        """Record `metrics` as measured when `step` environment steps had been taken."""

    def close(self) -> None:
        """Write what is pending and release the file; calling it again does nothing."""


class JsonlSink:
    """One JSON object per line: ``{"step": ..., "wall_s": ..., "loss/policy": ..., ...}``.

    Lines are flushed one by one, so a killed run loses at most the line it was writing. NaN and infinity are
    written as null, and ``{metric}/non_finite`` says how many were met. `wall_s` counts the seconds of the
    whole run: an existing file is continued, and so is its clock.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Open `path` for appending; a last line that was cut off by a kill is removed.

        Args:
            path: File to append to; made, with its directory, if missing.
            clock: Seconds, from any origin.

        Raises:
            RunDirectoryError: `path` holds something else than metrics.
            OSError: `path` cannot be written.
        """
        self.path = path
        self._clock = clock
        path.parent.mkdir(parents=True, exist_ok=True)
        self._open(read_jsonl(path) if path.exists() else [])

    def write(self, step: int, metrics: Mapping[str, Metric]) -> None:
        """Append one line and flush it."""
        row: dict[str, Any] = {"step": step, "wall_s": round(self._clock() - self._start_s, 3)}
        for name, value in _named_values(metrics):
            row[name] = _json_value(value)
        self._file.write(json.dumps(row, allow_nan=False) + "\n")
        self._file.flush()

    def truncate_after(self, step: int) -> None:
        """Remove the lines of later steps: what a resumed run does again is not in the file twice.

        The clock goes back to the last line that stays.
        """
        self._file.close()
        self._open([row for row in read_jsonl(self.path) if row["step"] <= step])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _open(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Make the file hold exactly `rows`, and go on behind them."""
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
        if not self.path.exists() or self.path.read_bytes() != lines:
            atomic_write_bytes(self.path, lines)
        self._start_s = self._clock() - (rows[-1]["wall_s"] if rows else 0.0)
        self._file = self.path.open("a", encoding="utf-8")


class TensorBoardSink:
    """Event files for TensorBoard: scalars and histograms, written without torch or TensorFlow."""

    def __init__(self, directory: Path, *, purge_step: int | None = None) -> None:
        """Open a new event file in `directory`.

        Args:
            directory: Made if missing.
            purge_step: TensorBoard hides what earlier files hold of this step and later ones; for a resumed
                run, the first step that it does again.

        Raises:
            MissingDependencyError: tensorboard is not installed.
        """
        purpose = "writing TensorBoard files"
        writer = require("tensorboard.summary.writer.event_file_writer", extra="rl", purpose=purpose)
        self._event = require("tensorboard.compat.proto.event_pb2", extra="rl", purpose=purpose)
        self._summary = require("tensorboard.compat.proto.summary_pb2", extra="rl", purpose=purpose).Summary
        self._writer: Any = writer.EventFileWriter(str(directory))
        if purge_step is not None:
            start = self._event.SessionLog(status=self._event.SessionLog.START)
            self._add(purge_step, session_log=start)

    def write(self, step: int, metrics: Mapping[str, Metric]) -> None:
        """Queue the scalars and histograms of one step; they reach the disk within two minutes."""
        values = []
        for name, metric in metrics.items():
            if isinstance(metric, Histogram):
                values.append(self._summary.Value(tag=name, histo=_histogram_fields(metric)))
        for name, value in _named_values(metrics):
            if not isinstance(value, dict):
                values.append(self._summary.Value(tag=name, simple_value=value))
        self._add(step, summary=self._summary(value=values))

    def close(self) -> None:
        """Write what is queued and close the file."""
        self._writer.close()

    def _add(self, step: int, **fields: Any) -> None:
        self._writer.add_event(self._event.Event(wall_time=time.time(), step=step, **fields))


class MultiSink:
    """Writes to every sink in turn; closes all of them even if one fails."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self.sinks = tuple(sinks)

    def write(self, step: int, metrics: Mapping[str, Metric]) -> None:
        """Write to every sink."""
        for sink in self.sinks:
            sink.write(step, metrics)

    def close(self) -> None:
        """Close every sink; the first error is raised after the last one is closed."""
        with contextlib.ExitStack() as stack:
            for sink in reversed(self.sinks):
                stack.callback(sink.close)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read the lines that `JsonlSink` wrote; a last line that was cut off by a kill is left out.

    Returns:
        One dict per line, in the order of the file; null (a value that was not finite) is None.

    Raises:
        RunDirectoryError: The file is missing, or a line other than the last is not a JSON object with
            `step` and `wall_s`.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RunDirectoryError(f"Cannot read metrics from {path}: {error.strerror}.") from error
    complete = lines[:-1]  # what follows the last newline is empty, or cut off
    rows = []
    for number, line in enumerate(complete, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not {"step", "wall_s"} <= row.keys():
            raise RunDirectoryError(
                f"{path}, line {number}: expected a JSON object with step and wall_s, found {line[:60]!r}. "
                "Remove the line, or name another file."
            )
        rows.append(row)
    return rows


def _named_values(metrics: Mapping[str, Metric]) -> Iterator[tuple[str, float | dict[str, float]]]:
    """Every metric's value, and how many values it left out where there were any."""
    for name, metric in metrics.items():
        yield name, metric.value
        if metric.non_finite:
            yield name + NON_FINITE_SUFFIX, float(metric.non_finite)


def _json_value(value: float | dict[str, float]) -> Any:
    if isinstance(value, dict):
        return {key: _json_value(entry) for key, entry in value.items()}
    return value if math.isfinite(value) else None


def _histogram_fields(histogram: Histogram) -> dict[str, Any]:
    """TensorBoard's form: each bucket has an upper limit, and the last one must be finite."""
    first, last = histogram.edges[0], histogram.edges[-1]
    width = max(last - first, 1e-12)
    return {
        "min": first if not histogram.counts[0] else first - width,
        "max": last if not histogram.counts[-1] else last + width,
        "num": histogram.count,
        "sum": histogram.total,
        "sum_squares": histogram.total_squares,
        "bucket_limit": [*histogram.edges, last + width],
        "bucket": histogram.counts,
    }
