import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from cue_agents import ALL_SENSORS, CONV, SPACE_TIME, cue_config, cue_round, perturb
from numpy.typing import NDArray

from sensorium.core import ActionKind, CheckpointError
from sensorium.nn.config import ConvConfig, SpaceTimeConfig
from sensorium.policies.embodied import ActorCritic
from sensorium.trainers import onnx_export
from sensorium.trainers.onnx_export import export_policy

pytestmark = pytest.mark.usefixtures("cue_backend")


def some_policy(
    kind: ActionKind = ActionKind.DISCRETE, vision: ConvConfig | SpaceTimeConfig = CONV
) -> ActorCritic:
    """Filters that have seen something, parameters away from their start."""
    made = cue_round(cue_config(ALL_SENSORS, kind, vision=vision))
    policy = made.agent.policy
    perturb(policy, scale=0.1)
    made.collector.collect(2)
    for name in policy.perception.filters:
        width = policy.perception.filters[name].num_features
        policy.perception.update_filters(name, torch.randn(20, width) * 3 + 1)
    return policy


@pytest.mark.parametrize(
    ("vision", "kind"),
    [(CONV, ActionKind.DISCRETE), (CONV, ActionKind.CONTINUOUS), (SPACE_TIME, ActionKind.HYBRID)],
    ids=["conv-discrete", "conv-continuous", "space_time-hybrid"],
)
def test_onnx_equals_pytorch(vision: ConvConfig | SpaceTimeConfig, kind: ActionKind, tmp_path: Path) -> None:
    difference = export_policy(some_policy(kind, vision), tmp_path)
    assert 0 < difference < 2e-5  # 0 would mean that nothing was compared
    onnx.checker.check_model(onnx.load(tmp_path / "policy.onnx"))


@pytest.mark.parametrize("vision", [CONV, SPACE_TIME], ids=lambda v: v.type)
def test_the_file_runs_with_nothing_but_its_schema(
    vision: ConvConfig | SpaceTimeConfig, tmp_path: Path
) -> None:
    """What a stranger does who has `policy.onnx` and `policy.json` and no PyTorch: play two episodes."""
    config = cue_config(
        ("rgb", "depth", "speech", "instruction", "proprio"), ActionKind.HYBRID, vision=vision
    )
    made = cue_round(config)
    perturb(made.agent.policy, scale=0.1)
    export_policy(made.agent.policy, tmp_path)
    rollout = made.collector.collect(8)

    schema: dict[str, Any] = json.loads((tmp_path / "policy.json").read_text())
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"), providers=["CPUExecutionProvider"])
    assert schema["inputs"] == [node.name for node in session.get_inputs()]
    assert schema["outputs"] == [node.name for node in session.get_outputs()]
    types = {
        "tensor(float)": np.float32,
        "tensor(uint8)": np.uint8,
        "tensor(int64)": np.int64,
        "tensor(bool)": np.bool_,
    }
    state: dict[str, NDArray[Any]] = {}
    for node in session.get_inputs():
        if f"next_{node.name}" in schema["outputs"]:
            state[node.name] = np.zeros([8, *node.shape[1:]], types[node.type])
    for t in range(8):
        feed: dict[str, NDArray[Any]] = dict(state)
        for sensor in schema["sensors"]:
            name = sensor["name"]
            if sensor["tabled"]:
                table, rows = rollout.tables[name], rollout.rows[name][t]
                feed[name] = table.values[rows].numpy()
                if sensor["modality"] == "text":
                    feed[f"{name}_mask"] = table.mask[rows].numpy()
            else:
                feed[name] = rollout.dense[name][t].numpy()
            assert list(feed[name].shape[1:]) == sensor["shape"]
        feed["present"], feed["age_s"] = rollout.present[t].numpy(), rollout.age_s[t].numpy()
        feed["starts"] = rollout.starts[t].numpy()
        result = dict(zip(schema["outputs"], session.run(None, feed), strict=True))
        assert rollout.logits is not None
        assert rollout.mean is not None
        np.testing.assert_allclose(result["logits"], rollout.logits[t], atol=1e-4)
        np.testing.assert_allclose(result["mean"], rollout.mean[t], atol=1e-4)
        np.testing.assert_allclose(result["value"], rollout.values[t], atol=1e-4)
        state = {name: result[f"next_{name}"] for name in state}
    assert rollout.starts[1:].any()
    assert schema["action"] == {
        "num_options": 3,
        "continuous_dim": 1,
        "parameter_mask": [[0], [1], [1]],
    }


def test_a_file_that_disagrees_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph on disk is changed before it is compared, as a bad exporter would do."""
    policy = cue_round(cue_config(("rgb",))).agent.policy
    compare = onnx_export._parity

    def spoilt(module: Any, path: Path) -> float:
        model = onnx.load(path)
        weight = max(model.graph.initializer, key=lambda w: len(w.raw_data))
        values = np.frombuffer(weight.raw_data, np.float32) + np.float32(0.1)
        weight.raw_data = values.tobytes()
        onnx.save(model, path)
        return compare(module, path)

    monkeypatch.setattr(onnx_export, "_parity", spoilt)
    with pytest.raises(CheckpointError, match=r"The ONNX file differs from PyTorch by .*, more than 1e-04"):
        export_policy(policy, tmp_path)


@pytest.mark.parametrize("difference", [1e-3, float("nan"), float("inf")])
def test_a_difference_that_is_no_number_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, difference: float
) -> None:
    monkeypatch.setattr(onnx_export, "_parity", lambda module, path: difference)
    with pytest.raises(CheckpointError, match="differs from PyTorch"):
        export_policy(cue_round(cue_config(("proprio",))).agent.policy, tmp_path)


def test_the_policy_is_left_as_it_was(tmp_path: Path) -> None:
    policy = cue_round(cue_config(("rgb",))).agent.policy.train()
    before = {name: x.clone() for name, x in policy.state_dict().items()}
    export_policy(policy, tmp_path)
    assert policy.training
    assert all(torch.equal(x, before[name]) for name, x in policy.state_dict().items())
