"""Checkpoints of a language model's run: trained weights, optimiser, counters, and the round under way.

checkpoints/{update}/
model.safetensors      what is trained: adapters, or all weights
optimizer.safetensors  moments of Adam, by parameter name
state.json             counters, the round under way, sha256 of every file
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load, save
from torch import Tensor

from sensorium.core import CheckpointError
from sensorium.core.files import PARTIAL_SUFFIX, atomic_directory
from sensorium.trainers.language.learner import Learner, Rows
from sensorium.trainers.language.samples import Sample

FORMAT = 1
"""Version of the layout above."""


class Pending(NamedTuple):
    """A round that was collected and not learnt from to its end."""

    rows: Rows
    position: int
    """Optimiser steps taken of it."""
    metrics: dict[str, float]
    """Of its episodes."""
    told: dict[str, list[float]]
    """Name of a metric of learning -> its value in each step taken."""


def save_run(path: Path, learner: Learner, counters: Mapping[str, Any], pending: Pending | None) -> None:
    """Write a checkpoint, completely or not at all.

    Args:
        path: New directory.
        learner: Weights and optimiser.
        counters: Whatever else the loop needs to go on; JSON-friendly.
        pending: The round under way.

    Raises:
        CheckpointError: The disk is full or the folder cannot be written.
    """
    moments = {
        f"{name}/{key}": value
        for name, parameter in learner.parameters.items()
        for key, value in learner.optimizer.state.get(parameter, {}).items()
    }
    files = {
        "model.safetensors": save(_plain(learner.parameters)),
        "optimizer.safetensors": save(_plain(moments)),
    }
    state = {
        "format": FORMAT,
        "num_steps": learner.num_steps,
        "counters": dict(counters),
        "pending": None if pending is None else _pending_json(pending),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    try:
        with atomic_directory(path) as folder:
            for name, content in files.items():
                (folder / name).write_bytes(content)
            (folder / "state.json").write_text(json.dumps(state))
    except OSError as error:
        raise CheckpointError(
            f"Could not save {path}: {error.strerror or error}. The checkpoints before it are intact. "
            "Free some space and go on with --on-existing resume."
        ) from error


def load_run(path: Path, learner: Learner) -> tuple[dict[str, Any], Pending | None]:
    """Put a checkpoint's weights and moments into `learner`; returns counters and the round under way.

    Raises:
        CheckpointError: A file is missing, corrupt, or of another model.
    """
    try:
        state = json.loads((path / "state.json").read_text())
        if state["format"] != FORMAT:
            raise CheckpointError(
                f"{path} has checkpoint format {state['format']}; this version reads {FORMAT}."
            )
        tensors, moments = (
            _read(path, name, state) for name in ("model.safetensors", "optimizer.safetensors")
        )
        pending = None if state["pending"] is None else _pending(state["pending"])
        counters: dict[str, Any] = state["counters"]
        num_steps = int(state["num_steps"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is not a complete checkpoint: {error}.") from error
    own = learner.parameters
    if tensors.keys() != own.keys() or any(own[n].shape != t.shape for n, t in tensors.items()):
        raise CheckpointError(
            f"{path} holds other weights than this run trains. Use the model and lora settings of its "
            "config.json."
        )
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)
    for full_name, tensor in moments.items():
        name, _, key = full_name.rpartition("/")
        device = torch.device("cpu") if key == "step" else own[name].device
        learner.optimizer.state[own[name]][key] = tensor.to(device)
    learner.num_steps = num_steps
    return counters, pending


def latest_run_checkpoint(run: Path) -> Path | None:
    """Newest complete checkpoint of a run, or None."""
    folders = (path.parent for path in (run / "checkpoints").glob("*/state.json"))
    found = sorted(folder for folder in folders if folder.suffix != PARTIAL_SUFFIX)
    return found[-1] if found else None


def _plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _read(path: Path, name: str, state: Mapping[str, Any]) -> dict[str, Tensor]:
    content = (path / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != state["sha256"][name]:
        raise CheckpointError(
            f"{path / name} is corrupt: its sha256 is not the one in state.json. Delete this checkpoint "
            "folder to go on from the one before it."
        )
    return load(content)


def _pending_json(pending: Pending) -> dict[str, Any]:
    rows = pending.rows
    return {
        "samples": [sample._asdict() for sample in rows.samples],
        "advantages": rows.advantages.tolist(),
        "groups": rows.groups.tolist(),
        "position": pending.position,
        "metrics": pending.metrics,
        "told": pending.told,
    }


def _pending(found: Mapping[str, Any]) -> Pending:
    samples = [_sample(one) for one in found["samples"]]
    rows = Rows(samples, torch.tensor(found["advantages"]), torch.tensor(found["groups"], dtype=torch.long))
    return Pending(rows, int(found["position"]), found["metrics"], found["told"])


def _sample(found: Mapping[str, Any]) -> Sample:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
    }
    return Sample(**values)
