import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cue_agents import ALL_SENSORS, SPACE_TIME, cue_config, cue_round
from torch import Tensor

from sensorium.core import ActionKind, CheckpointError
from sensorium.trainers.checkpoint import (
    checkpoint_path,
    load_learner,
    load_policy,
    save_checkpoint,
)
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.ppo import PPO
from sensorium.trainers.tensor_files import latest_checkpoint, sha256

pytestmark = pytest.mark.usefixtures("cue_backend")

CONFIG = cue_config(("rgb", "instruction", "proprio"), ActionKind.HYBRID)


def trained(config: TrainConfig = CONFIG, rounds: int = 1) -> PPO:
    made = cue_round(config)
    learner = PPO(made.agent.policy, config.algo, made.collector.generator)
    for _ in range(rounds):
        learner.update(made.collector.collect(8), progress=0.0)
    return learner


def everything(learner: PPO) -> dict[str, Tensor]:
    tensors = {f"policy/{name}": x for name, x in learner.policy.state_dict().items()}
    for name, parameter in learner.policy.named_parameters():
        for key, value in learner.optimizer.state.get(parameter, {}).items():
            tensors[f"adam/{name}/{key}"] = value
    return tensors | {"generator": learner.generator.get_state()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that tests may read but not change."""
    path = checkpoint_path(tmp_path_factory.mktemp("run"), 64)
    learner = trained()
    learner.state.kl_coef, learner.state.skipped = 0.125, 3
    save_checkpoint(path, learner, {"env_steps": 64, "wall_s": 1.5})
    return path


def copied(saved: Path, tmp_path: Path) -> Path:
    path = checkpoint_path(tmp_path, 64)
    path.mkdir(parents=True)
    for file in saved.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    return path


def test_round_trip_is_bit_for_bit(tmp_path: Path) -> None:
    learner = trained(rounds=2)
    learner.state.kl_coef, learner.state.skipped = 0.125, 3
    path = checkpoint_path(tmp_path, 64)
    difference = save_checkpoint(path, learner, {"env_steps": 64, "note": "x"})
    assert 0 <= difference < 1e-4
    fresh = trained(cue_config(("rgb", "instruction", "proprio"), ActionKind.HYBRID, seed=5), rounds=0)
    state = load_learner(path, fresh)
    assert state["counters"] == {"env_steps": 64, "note": "x"}
    assert state["onnx_max_abs_diff"] == difference
    a, b = everything(learner), everything(fresh)
    assert set(a) == set(b)
    assert any(name.endswith("exp_avg_sq") for name in a)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert (fresh.state.kl_coef, fresh.state.skipped) == (0.125, 3)


def test_the_next_update_is_the_same(tmp_path: Path) -> None:
    made = cue_round(CONFIG)
    learner = PPO(made.agent.policy, CONFIG.algo, made.collector.generator)
    learner.update(made.collector.collect(8), progress=0.0)
    rollout = made.collector.collect(8)
    save_checkpoint(checkpoint_path(tmp_path, 1), learner, {})
    fresh = trained(rounds=0)
    load_learner(checkpoint_path(tmp_path, 1), fresh)
    learner.update(rollout, progress=0.5)
    fresh.update(rollout, progress=0.5)
    a, b = everything(learner), everything(fresh)
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_there_is_no_pickle_and_every_file_is_vouched_for(saved: Path) -> None:
    names = {file.name for file in saved.iterdir()}
    assert names == {
        "model.safetensors",
        "optimizer.safetensors",
        "random.safetensors",
        "policy.onnx",
        "policy.json",
        "state.json",
    }
    state = json.loads((saved / "state.json").read_text())
    assert set(state["sha256"]) == names - {"state.json"}


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "random.safetensors"])
def test_one_wrong_bit_is_noticed(saved: Path, tmp_path: Path, name: str) -> None:
    path = copied(saved, tmp_path)
    content = bytearray((path / name).read_bytes())
    content[-1] ^= 1
    (path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{name} is corrupt: its sha256"):
        load_learner(path, trained(rounds=0))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_missing_file_is_named(saved: Path, tmp_path: Path, name: str) -> None:
    path = copied(saved, tmp_path)
    (path / name).unlink()
    mend = "" if name == "state.json" else ".*Delete this checkpoint folder"
    with pytest.raises(CheckpointError, match=name + mend):
        load_learner(path, trained(rounds=0))


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 99}', '{"format": 1}'])
def test_a_broken_state_file_is_a_clear_error(saved: Path, tmp_path: Path, text: str) -> None:
    path = copied(saved, tmp_path)
    (path / "state.json").write_text(text)
    with pytest.raises(CheckpointError, match=str(path)):
        load_learner(path, trained(rounds=0))


def test_a_truncated_tensor_file_with_the_right_hash(saved: Path, tmp_path: Path) -> None:
    path = copied(saved, tmp_path)
    content = (path / "model.safetensors").read_bytes()[:50]
    (path / "model.safetensors").write_bytes(content)
    state: dict[str, Any] = json.loads((path / "state.json").read_text())
    state["sha256"]["model.safetensors"] = sha256(content)
    (path / "state.json").write_text(json.dumps(state))
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        load_policy(path, trained(rounds=0).policy)


def test_another_architecture_is_refused_and_changes_nothing(saved: Path) -> None:
    wider = CONFIG.updated({"network": {"fusion": {"hidden_dim": 24}}})
    learner = trained(wider, rounds=0)
    before = {name: x.clone() for name, x in learner.policy.state_dict().items()}
    with pytest.raises(CheckpointError, match=r"another architecture; \d+ tensors differ, e\.g\. actor"):
        load_learner(saved, learner)
    assert all(torch.equal(x, before[name]) for name, x in learner.policy.state_dict().items())


def test_another_encoder_is_refused(saved: Path) -> None:
    other = cue_config(("rgb", "instruction", "proprio"), ActionKind.HYBRID, vision=SPACE_TIME)
    with pytest.raises(CheckpointError, match="another architecture"):
        load_policy(saved, trained(other, rounds=0).policy)


def test_other_senses_are_refused(saved: Path) -> None:
    other = trained(cue_config(("depth",), ActionKind.HYBRID), rounds=0)
    with pytest.raises(
        CheckpointError, match=r"other senses: rgb\(16, 16, 3\), instruction.*this policy has depth"
    ):
        load_policy(saved, other.policy)


def test_another_text_encoder_is_refused(saved: Path) -> None:
    """Same shapes, other vectors: without this check it would load and not understand a word."""
    other = trained(rounds=0)
    changed = [replace(s, encoder="another") if s.encoder else s for s in other.policy.inputs]
    other.policy.inputs = tuple(changed)
    with pytest.raises(
        CheckpointError, match=r"other senses: .*this policy has .*instruction\(4, 16\) by another"
    ):
        load_policy(saved, other.policy)


def test_latest_checkpoint_is_the_newest_complete_one(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    for steps in (900, 1000, 20_000):
        checkpoint_path(tmp_path, steps).mkdir(parents=True)
    for steps in (900, 1000):
        (checkpoint_path(tmp_path, steps) / "state.json").write_text("{}")
    partial = tmp_path / "checkpoints" / ".000000030000.ab.partial"
    partial.mkdir()
    (partial / "state.json").write_text("{}")
    assert latest_checkpoint(tmp_path) == checkpoint_path(tmp_path, 1000)


def test_a_full_disk_leaves_the_checkpoint_before_and_nothing_else(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = copied(saved, tmp_path)
    contents = {file.name: file.read_bytes() for file in before.iterdir()}
    learner = trained(rounds=0)
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name == "optimizer.safetensors":
            write(self, data[:10])
            raise OSError(28, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(
        CheckpointError,
        match=r"Could not save .*No space left on device.*before it are intact. Free some space",
    ):
        save_checkpoint(checkpoint_path(tmp_path, 128), learner, {})
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [before.name]
    assert {file.name: file.read_bytes() for file in before.iterdir()} == contents
    assert latest_checkpoint(tmp_path) == before
    load_learner(before, learner)


def test_a_checkpoint_is_never_written_over(saved: Path) -> None:
    with pytest.raises(CheckpointError, match=r"exists.*Another process may be training this run") as caught:
        save_checkpoint(saved, trained(rounds=0), {})
    assert "space" not in str(caught.value)


def test_a_folder_that_cannot_be_written_is_not_called_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path, data: bytes) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", denied)
    with pytest.raises(CheckpointError, match=r"Permission denied.*can be written") as caught:
        save_checkpoint(checkpoint_path(tmp_path, 128), trained(rounds=0), {})
    assert "space" not in str(caught.value)


def test_all_senses_can_be_saved(tmp_path: Path) -> None:
    learner = trained(cue_config(ALL_SENSORS, ActionKind.CONTINUOUS, vision=SPACE_TIME))
    assert save_checkpoint(checkpoint_path(tmp_path, 1), learner, {}) < 1e-4
