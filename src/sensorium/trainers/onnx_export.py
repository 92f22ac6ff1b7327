"""The policy as an ONNX file: readings and memory in, action parameters, value and memory out.

Drawing an action is left to the caller; the observation filters are inside. A text sensor takes the
embeddings of the frozen text encoder that `policy.json` names.
"""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

from sensorium.core import CheckpointError, Modality
from sensorium.nn.recurrent import LSTMState
from sensorium.policies.embodied import ActorCritic, PolicyState
from sensorium.representations.tensors import SensorInput, TableRows, TensorObservation

OPSET = 17
TOLERANCE = 1e-4
"""Largest absolute difference between PyTorch and ONNX with which a file is accepted."""
PARITY_STEPS = 20


class _Exported(nn.Module):
    """One step of the policy with flat inputs and outputs, as ONNX wants them."""

    def __init__(self, policy: ActorCritic) -> None:
        super().__init__()
        self.policy = policy
        self.input_names = [*_reading_names(policy), "present", "age_s", "starts", *_state_names(policy)]
        heads = policy.heads
        self.output_names = [
            *(["logits"] if heads.num_options else []),
            *(["mean", "log_std"] if heads.continuous_dim else []),
            "value",
            *(f"next_{name}" for name in _state_names(policy)),
        ]

    def forward(self, *flat: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(self.input_names, flat, strict=True))
        row = torch.arange(given["present"].shape[0], device=given["present"].device)
        sensors = self.policy.inputs
        tables = {s.name: _table(s, given) for s in sensors if s.tabled}
        observation = TensorObservation(
            dense={s.name: given[s.name] for s in sensors if not s.tabled},
            rows=dict.fromkeys(tables, row),
            tables=tables,
            present=given["present"],
            age_s=given["age_s"],
        )
        state = PolicyState(
            lstm=LSTMState(given["lstm_hidden"], given["lstm_cell"]),
            clips={name: given[f"clip_{name}"] for name in _clip_names(self.policy)},
            steps=given["steps"],
        )
        step = self.policy.step(observation, state, given["starts"])
        d, after = step.distribution, step.state
        action = [part for part in (d.logits, d.mean, d.log_std) if part is not None]
        clips = [after.clips[name] for name in _clip_names(self.policy)]
        return (*action, step.values, after.lstm.hidden, after.lstm.cell, after.steps, *clips)


def export_policy(policy: ActorCritic, folder: Path) -> float:
    """Write `policy.onnx` and `policy.json`, and compare ONNX Runtime with PyTorch.

    The comparison runs 20 recurrent steps on random readings, at batch 1 and 3.

    Returns:
        Largest absolute difference of any output.

    Raises:
        CheckpointError: The difference is above `TOLERANCE`; nothing should then use the file.
    """
    was_training = policy.training
    policy.eval()
    module = _Exported(policy)
    path = folder / "policy.onnx"
    example = _random_inputs(policy, 2, torch.Generator().manual_seed(0))
    device = policy.log_std.device
    with warnings.catch_warnings(), torch.no_grad():
        # The tracing exporter takes 1 s where the newer one takes 11; its warnings are about shapes that
        # the parity test below exercises.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(example[name].to(device) for name in module.input_names),
            str(path),
            input_names=module.input_names,
            output_names=module.output_names,
            dynamic_axes={name: {0: "batch"} for name in module.input_names + module.output_names},
            opset_version=OPSET,
            dynamo=False,
        )
    difference = _parity(module, path)
    policy.train(was_training)
    (folder / "policy.json").write_text(json.dumps(_schema(module, path, difference), indent=1))
    if not difference <= TOLERANCE:
        raise CheckpointError(
            f"The ONNX file differs from PyTorch by {difference:.2e}, more than {TOLERANCE:.0e}; the "
            f"checkpoint was not saved."
        )
    return difference


def _parity(module: _Exported, path: Path) -> float:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    device = module.policy.log_std.device
    worst = 0.0
    for batch in (1, 3):
        generator = torch.Generator().manual_seed(batch)
        state: dict[str, Tensor] = {}
        for t in range(PARITY_STEPS):
            inputs = _random_inputs(module.policy, batch, generator) | state
            inputs["starts"] = torch.full((batch,), t == 0) | (inputs["starts"] & (t > 5))
            feed = {node.name: inputs[node.name].numpy() for node in session.get_inputs()}
            ours = session.run(None, feed)
            with torch.no_grad():
                theirs = module(*(inputs[name].to(device) for name in module.input_names))
            for a, b in zip(ours, theirs, strict=True):
                worst = max(worst, float(np.abs(a.astype(np.float64) - b.cpu().double().numpy()).max()))
            state = {
                name.removeprefix("next_"): torch.from_numpy(value)
                for name, value in zip(module.output_names, ours, strict=True)
                if name.startswith("next_")
            }
    return worst


def _schema(module: _Exported, path: Path, difference: float) -> dict[str, Any]:
    policy = module.policy
    mask = policy.parameter_mask
    return {
        "opset": OPSET,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "max_abs_diff": difference,
        "inputs": module.input_names,
        "outputs": module.output_names,
        "sensors": [sensor.describe() for sensor in policy.inputs],
        "action": {
            "num_options": policy.heads.num_options,
            "continuous_dim": policy.heads.continuous_dim,
            "parameter_mask": None if mask is None else mask.int().tolist(),
        },
        "usage": "Feed next_* back as the state; set starts where an episode begins; start from zeros. "
        "present has one column per sensor; feed zeros as the reading of an absent one. A continuous "
        "action is mean, clipped to [-1, 1].",
    }


def _table(sensor: SensorInput, given: dict[str, Tensor]) -> TableRows:
    values = given[sensor.name]
    if sensor.modality is Modality.TEXT:
        return TableRows(values, given[f"{sensor.name}_mask"])
    return TableRows(values, torch.ones_like(values.flatten(1)[:, :1], dtype=torch.bool))


def _reading_names(policy: ActorCritic) -> list[str]:
    names: list[str] = []
    for sensor in policy.inputs:
        names.append(sensor.name)
        if sensor.modality is Modality.TEXT:
            names.append(f"{sensor.name}_mask")
    return names


def _clip_names(policy: ActorCritic) -> list[str]:
    return [s.name for s in policy.inputs if policy.perception.num_frames(s.name) > 1]


def _state_names(policy: ActorCritic) -> list[str]:
    return ["lstm_hidden", "lstm_cell", "steps", *(f"clip_{name}" for name in _clip_names(policy))]


def _random_inputs(policy: ActorCritic, batch: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Readings, presence and a zero state for a test."""
    inputs: dict[str, Tensor] = {}
    for sensor in policy.inputs:
        shape = (batch, *sensor.shape)
        if sensor.dtype == "uint8":
            inputs[sensor.name] = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
        else:
            inputs[sensor.name] = torch.randn(shape, generator=generator)
        if sensor.modality is Modality.TEXT:
            inputs[f"{sensor.name}_mask"] = torch.rand(shape[:2], generator=generator) < 0.7
    sensors = len(policy.inputs)
    inputs["present"] = torch.rand((batch, sensors), generator=generator) < 0.8
    inputs["age_s"] = torch.rand((batch, sensors), generator=generator)
    inputs["starts"] = torch.rand((batch,), generator=generator) < 0.2
    state = policy.initial_state(batch)
    inputs["lstm_hidden"], inputs["lstm_cell"] = (part.cpu() for part in state.lstm)
    inputs["steps"] = state.steps.cpu()
    return inputs | {f"clip_{name}": clip.cpu() for name, clip in state.clips.items()}
