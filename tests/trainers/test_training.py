import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cue_agents import cue_config
from torch import Tensor

from sensorium.core import ActionKind, CheckpointError
from sensorium.trainers import training as training_module
from sensorium.trainers.checkpoint import save_checkpoint
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.run_directory import OnExisting, open_run
from sensorium.trainers.tensor_files import latest_checkpoint
from sensorium.trainers.training import Progress, Training

pytestmark = pytest.mark.usefixtures("cue_backend")

SENSORS = ("rgb", "speech", "proprio")


def config(checkpoint_every: int = 64, **algo: int) -> TrainConfig:
    """Three checkpoints of 64 steps."""
    return cue_config(SENSORS, ActionKind.HYBRID, checkpoint_every=checkpoint_every, algo=algo)


def weights(training: Training) -> dict[str, Tensor]:
    return dict(training.learner.policy.state_dict())


def train(run: Path, settings: TrainConfig, stop_after: int | None = None) -> Training:
    """Train; with `stop_after`, the process is told to stop after that many environment steps."""
    training = Training(settings, run)

    def report(progress: Progress) -> None:
        if stop_after is not None and progress.env_steps >= stop_after:
            signal.raise_signal(signal.SIGINT)

    result = training.run(report)
    assert result.interrupted == (stop_after is not None)
    return training


def metrics(run: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: x for key, x in line.items() if "time/" not in key and key != "wall_s"} for line in lines]


def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(tmp_path: Path) -> None:
    settings = config()
    whole_dir = open_run(settings, tmp_path / "whole", OnExisting.FAIL)
    whole = train(whole_dir, settings)
    assert len(list((whole_dir / "checkpoints").iterdir())) == 3

    parts_dir = open_run(settings, tmp_path / "parts", OnExisting.FAIL)
    train(parts_dir, settings, stop_after=64)
    train(parts_dir, settings, stop_after=128)
    parts = train(parts_dir, settings)
    assert parts.env_steps == whole.env_steps == 192
    a, b = weights(whole), weights(parts)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert torch.equal(whole.learner.generator.get_state(), parts.learner.generator.get_state())
    names = [path.name for path in sorted((parts_dir / "checkpoints").iterdir())]
    assert names == [path.name for path in sorted((whole_dir / "checkpoints").iterdir())]
    for name in names:
        for file in ("model.safetensors", "optimizer.safetensors", "random.safetensors"):
            one, two = (d / "checkpoints" / name / file for d in (whole_dir, parts_dir))
            assert one.read_bytes() == two.read_bytes()
    whole_metrics = metrics(whole_dir)
    assert whole_metrics == metrics(parts_dir)
    assert [row["step"] for row in whole_metrics] == [64, 128, 192]


def test_acting_while_learning_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    """Of the three rollouts before a checkpoint two were begun before the update before them."""
    settings = config(checkpoint_every=192, total_steps=384, max_staleness=1)
    in_turn = config(checkpoint_every=192, total_steps=384)
    whole_dir = open_run(settings, tmp_path / "whole", OnExisting.FAIL)
    whole = train(whole_dir, settings)
    parts_dir = open_run(settings, tmp_path / "parts", OnExisting.FAIL)
    train(parts_dir, settings, stop_after=192)
    parts = train(parts_dir, settings)
    other = train(open_run(in_turn, tmp_path / "other", OnExisting.FAIL), in_turn)
    a, b, c = weights(whole), weights(parts), weights(other)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not all(torch.equal(a[name], c[name]) for name in a)
    assert metrics(whole_dir) == metrics(parts_dir)


def test_a_run_that_died_goes_on_from_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metrics written after that checkpoint are taken back, so that no step is told twice."""
    settings = config()
    whole_dir = open_run(settings, tmp_path / "whole", OnExisting.FAIL)
    whole = train(whole_dir, settings)
    died_dir = open_run(settings, tmp_path / "died", OnExisting.FAIL)
    training = Training(settings, died_dir)

    def die(progress: Progress) -> None:
        if progress.env_steps == 192:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        training.run(die)
    found = latest_checkpoint(died_dir)
    assert found is not None
    assert found.name.endswith("128")
    again = train(died_dir, settings)
    a, b = weights(whole), weights(again)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert metrics(whole_dir) == metrics(died_dir)


def test_the_seed_decides_the_run(tmp_path: Path) -> None:
    runs = []
    for number, seed in enumerate((0, 0, 1)):
        settings = cue_config(("rgb",), seed=seed, algo={"total_steps": 64})
        runs.append(weights(train(open_run(settings, tmp_path / str(number), OnExisting.FAIL), settings)))
    a, b, c = runs
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not all(torch.equal(a[name], c[name]) for name in a)


def test_an_interrupt_finishes_the_round_and_saves(tmp_path: Path) -> None:
    settings = cue_config(("rgb",), algo={"total_steps": 10_000})
    run = open_run(settings, tmp_path, OnExisting.FAIL)
    before = signal.getsignal(signal.SIGINT)
    training = train(run, settings, stop_after=128)
    assert training.env_steps == 128
    found = latest_checkpoint(run)
    assert found is not None
    assert found.name.endswith("128")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A background job of a shell starts with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_a_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    settings = cue_config(("rgb",), algo={"total_steps": 10_000})
    training = Training(settings, open_run(settings, tmp_path, OnExisting.FAIL))

    def twice(progress: Progress) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        training.run(twice)


def test_progress_tells_how_the_run_stands(tmp_path: Path) -> None:
    settings = cue_config(("rgb",), break_at=1, algo={"total_steps": 256})
    seen: list[Progress] = []
    run = open_run(settings, tmp_path, OnExisting.FAIL)
    Training(settings, run).run(seen.append)
    assert [p.env_steps for p in seen] == [64, 128, 192, 256]
    assert all(p.total_steps == 256 for p in seen)
    assert seen[-1].eta_s == 0
    assert 0 <= seen[-1].success_rate <= 1
    rows = [row for row in metrics(run) if "env/failed_episodes" in json.dumps(row)]
    assert rows


def test_a_full_disk_stops_with_the_earlier_checkpoint_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config()
    run = open_run(settings, tmp_path, OnExisting.FAIL)
    calls = 0

    def save(*args: object) -> float:
        nonlocal calls
        calls += 1
        if calls == 2:
            monkeypatch.setattr(Path, "write_bytes", no_space)
        return save_checkpoint(*args)  # type: ignore[arg-type]

    def no_space(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(training_module, "save_checkpoint", save)
    with pytest.raises(CheckpointError, match=r"No space left.*--on-existing resume"):
        Training(settings, run).run(lambda progress: None)
    monkeypatch.undo()
    assert [path.name[-3:] for path in (run / "checkpoints").iterdir()] == ["064"]
    assert train(run, settings).env_steps == 192


def test_going_on_with_a_finished_run_reports_what_its_checkpoint_says(tmp_path: Path) -> None:
    run = open_run(config(), tmp_path, OnExisting.FAIL)
    first = Training(config(), run).run(lambda _: None)
    again = Training(config(), run).run(lambda _: None)
    assert (again.env_steps, again.checkpoint) == (first.env_steps, first.checkpoint)
    assert again.onnx_max_abs_diff == first.onnx_max_abs_diff
