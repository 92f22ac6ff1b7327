"""The trial of precisions: what is measured, what follows from it, and what is remembered."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from sensorium.core import FeatureError
from sensorium.features import TextEncoder, precision
from sensorium.features.precision import PrecisionTrial, choose_precision


@pytest.mark.parametrize(
    ("half_s", "cosine", "choice"),
    [
        (0.5, 0.9995, "bfloat16"),
        (0.5, 0.998, "float32"),  # says something else
        (0.99, 1.0, "float32"),  # within what timings vary by
        (2.0, 1.0, "float32"),
        (0.5, 0.999, "bfloat16"),
    ],
)
def test_half_precision_must_be_faster_and_say_the_same(half_s: float, cosine: float, choice: str) -> None:
    trial = PrecisionTrial(float32_s=1.0, bfloat16_s=half_s, cosine=cosine, remembered=False)
    assert trial.speedup == 1.0 / half_s
    assert trial.choice == choice


class _Inputs(dict[str, Any]):
    def to(self, device: str) -> "_Inputs":
        return self


class _Model:
    """Two values per token; bfloat16 is rotated by a known angle."""

    def __init__(self, values: list[float], calls: list[str], name: str) -> None:
        self.values, self.calls, self.name = values, calls, name

    def __call__(self, length: int) -> Any:
        self.calls.append(self.name)
        hidden = torch.tensor(self.values).expand(1, length, -1)
        return type("Output", (), {"last_hidden_state": hidden})


def loader(half: list[float], calls: list[str]) -> Any:
    def tokenizer(text: str, return_tensors: str) -> _Inputs:
        return _Inputs(length=len(text.split()))

    def load(name: str) -> tuple[Any, Any]:
        return tokenizer, _Model([1.0, 0.0] if name == "float32" else half, calls, name)

    return load


def clock(monkeypatch: pytest.MonkeyPatch, *passes: float) -> None:
    """The timer, as if the passes took these many seconds."""
    ticks = [0.0]
    for seconds in passes:
        ticks += [ticks[-1] + seconds, ticks[-1] + seconds]
    monkeypatch.setattr(precision.time, "perf_counter", iter(ticks).__next__)


def test_the_best_pass_and_the_worst_cosine_count(
    cache_home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    clock(monkeypatch, 5.0, 3.0, 4.0, 2.0, 1.0, 9.0)
    with caplog.at_level(logging.INFO, logger="sensorium"):
        trial = choose_precision("toy", "f" * 64, "cpu", loader([0.8, 0.6], calls))
    assert (trial.float32_s, trial.bfloat16_s, trial.remembered) == (3.0, 1.0, False)
    assert trial.cosine == pytest.approx(0.8)
    assert trial.choice == "float32"
    sentences = len(precision._SENTENCES)
    assert calls.count("float32") == calls.count("bfloat16") == 4 * sentences  # one warms up
    (record,) = caplog.records
    assert "toy on cpu computes in float32: float32 3000.0 ms, bfloat16 1000.0 ms (3.00 times" in (
        record.getMessage()
    )


def test_a_trial_is_remembered_for_the_model_and_the_machine(
    cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    load = loader([1.0, 0.0], calls)
    first = choose_precision("toy", "a" * 64, "cpu", load)
    measured = len(calls)
    second = choose_precision("toy", "a" * 64, "cpu", load)
    assert second == first._replace(remembered=True)
    assert len(calls) == measured
    choose_precision("toy", "b" * 64, "cpu", load)
    assert len(calls) == 2 * measured, "another model"
    monkeypatch.setattr(precision.platform, "node", lambda: "elsewhere")
    choose_precision("toy", "a" * 64, "cpu", load)
    assert len(calls) == 3 * measured, "another machine"


@pytest.mark.parametrize("content", ["", "[1]", '{"float32_s": 1}'])
def test_a_damaged_note_is_measured_again(content: str, cache_home: Path) -> None:
    calls: list[str] = []
    choose_precision("toy", "a" * 64, "cpu", loader([1.0, 0.0], calls))
    (note,) = (cache_home / "sensorium" / "precision").iterdir()
    note.write_text(content)
    assert not choose_precision("toy", "a" * 64, "cpu", loader([1.0, 0.0], calls)).remembered


def test_a_folder_that_cannot_be_written_only_costs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "cache_folder", lambda *_: Path("/proc/nowhere"))
    assert not choose_precision("toy", "a" * 64, "cpu", loader([1.0, 0.0], [])).remembered


def test_values_that_are_not_finite_are_an_error(cache_home: Path) -> None:
    with pytest.raises(FeatureError, match="not finite"):
        choose_precision("toy", "a" * 64, "cpu", loader([float("nan"), 0.0], []))


@pytest.mark.parametrize(("half_s", "choice"), [(0.1, "bfloat16"), (3.0, "float32")])
def test_an_encoder_follows_its_trial(
    half_s: float, choice: str, minilm: Path, cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real MiniLM, with a clock that is told what to say; a cached sentence is never timed."""
    clock(monkeypatch, 1.0, 1.0, 1.0, half_s, half_s, half_s)
    encoder = TextEncoder(str(minilm), dtype="auto")
    assert encoder.trial is not None
    assert 0.999 < encoder.trial.cosine < 1.0
    assert encoder.dtype == choice
    assert encoder.identity.endswith("bfloat16") == (choice == "bfloat16")
    (note,) = (cache_home / "sensorium" / "precision").iterdir()
    assert json.loads(note.read_text())["model"] == encoder.weights_sha256
    monkeypatch.undo()
