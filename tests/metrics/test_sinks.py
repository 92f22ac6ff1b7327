import itertools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from sensorium.core import MissingDependencyError, RunDirectoryError
from sensorium.metrics import (
    Histogram,
    JsonlSink,
    Latest,
    Mean,
    Metric,
    MultiSink,
    TensorBoardSink,
    read_jsonl,
)


def ticking(step: float = 1.0) -> Callable[[], float]:
    ticks = itertools.count(100.0, step)
    return lambda: next(ticks)


def write_steps(path: Path, steps: range) -> None:
    sink = JsonlSink(path, clock=ticking())
    for step in steps:
        sink.write(step, {"lr": Latest.of(step / 10)})
    sink.close()


def test_jsonl_writes_one_flushed_object_per_line(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    sink = JsonlSink(path, clock=ticking())
    sink.write(8, {"loss/policy": Mean.of([1, 2]), "ratio": Histogram.of([0.5, 0.5], [0.0, 1.0])})
    line = json.loads(path.read_text())  # before close: a killed run keeps it
    assert line["step"] == 8
    assert line["wall_s"] == 1.0
    assert line["loss/policy"] == 1.5
    assert line["ratio"] == {"count": 2, "mean": 0.5, "p05": 0.05, "p50": 0.5, "p95": 0.95}
    sink.close()
    sink.close()


def test_jsonl_writes_null_and_the_count_of_what_is_not_finite(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "m.jsonl")
    sink.write(1, {"a": Mean.of([math.nan]), "b": Mean.of([1.0, math.inf]), "c": Histogram.of([], [0, 1])})
    sink.close()
    text = (tmp_path / "m.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    row = json.loads(text)
    assert row["a"] is None
    assert row["a/non_finite"] == 1
    assert row["b"] == 1.0
    assert row["b/non_finite"] == 1
    assert row["c"]["p50"] is None
    assert "c/non_finite" not in row


def test_jsonl_goes_on_behind_a_cut_line_and_continues_its_clock(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write_steps(path, range(1, 4))
    with path.open("a") as file:
        file.write('{"step": 4, "wall')
    assert [row["step"] for row in read_jsonl(path)] == [1, 2, 3]
    write_steps(path, range(4, 6))
    rows = read_jsonl(path)
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["wall_s"] for row in rows] == [1, 2, 3, 4, 5]


def test_truncate_after_removes_what_a_resumed_run_does_again(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write_steps(path, range(1, 6))
    sink = JsonlSink(path, clock=ticking())
    sink.truncate_after(3)
    sink.write(4, {"lr": Latest.of(9)})
    sink.close()
    rows = read_jsonl(path)
    assert [(row["step"], row["lr"]) for row in rows] == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 9)]
    assert rows[-1]["wall_s"] == 4.0


def test_read_jsonl_says_which_line_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"step": 1, "wall_s": 0}\nnonsense\n{"step": 2, "wall_s": 1}\n')
    with pytest.raises(RunDirectoryError, match="line 2"):
        read_jsonl(path)
    path.write_text('{"unrelated": 1}\n')
    with pytest.raises(RunDirectoryError, match="step and wall_s"):
        JsonlSink(path)
    assert path.read_text() == '{"unrelated": 1}\n'
    with pytest.raises(RunDirectoryError, match="No such file"):
        read_jsonl(tmp_path / "absent.jsonl")


def test_tensorboard_reads_back_scalars_and_histograms(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sink = TensorBoardSink(tmp_path)
    values = np.array([-2.0, 0.1, 0.2, 0.9, 5.0])
    for step in (1, 2):
        metrics: dict[str, Metric] = {
            "loss/policy": Mean.of(step / 2),
            "policy/ratio": Histogram.of(values, [0, 0.5, 1]),
        }
        sink.write(step, metrics)
    sink.close()
    events = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0, "histograms": 0})
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss/policy")] == [(1, 0.5), (2, 1.0)]
    histogram = events.Histograms("policy/ratio")[-1].histogram_value
    assert histogram.num == 5
    assert histogram.sum == pytest.approx(values.sum())
    assert histogram.sum_squares == pytest.approx((values**2).sum())
    assert list(histogram.bucket) == [1, 2, 1, 1]
    assert list(histogram.bucket_limit) == [0, 0.5, 1, 2]


def test_tensorboard_hides_steps_that_a_resumed_run_does_again(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    first = TensorBoardSink(tmp_path)
    for step in (1, 2, 3):
        first.write(step, {"a": Mean.of(0)})
    first.close()
    next(tmp_path.iterdir()).rename(tmp_path / "events.out.tfevents.0000000001.first")
    second = TensorBoardSink(tmp_path, purge_step=2)
    second.write(2, {"a": Mean.of(1)})
    second.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("a")] == [(1, 0.0), (2, 1.0)]


def test_missing_tensorboard_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorboard.summary.writer.event_file_writer", None)
    with pytest.raises(MissingDependencyError, match=r"sensorium\[rl\]"):
        TensorBoardSink(tmp_path)


class Recorder:
    def __init__(self, log: list[str], name: str, *, fails: bool = False) -> None:
        self.log, self.name, self.fails = log, name, fails

    def write(self, step: int, metrics: Mapping[str, Metric]) -> None:
        self.log.append(f"{self.name}{step}")

    def close(self) -> None:
        self.log.append(f"{self.name} closed")
        if self.fails:
            raise OSError("disk full")


def test_multi_sink_closes_all_even_if_one_fails() -> None:
    log: list[str] = []
    sink = MultiSink([Recorder(log, "a", fails=True), Recorder(log, "b")])
    sink.write(3, {})
    with pytest.raises(OSError, match="disk full"):
        sink.close()
    assert log == ["a3", "b3", "a closed", "b closed"]
