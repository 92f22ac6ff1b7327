"""Checkpoints of a language model's run: trained weights, optimiser, counters, and the round under way.

checkpoints/{update}/
model.safetensors      what is trained: adapters, or all weights
optimizer.safetensors  moments of Adam, by parameter name
state.json             counters, the round under way, rounds that wait, sha256 of every file
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save

from sensorium.core import CheckpointError
from sensorium.core.files import atomic_directory
from sensorium.rollouts.trajectory import Trajectory
from sensorium.trainers.language.collect import Collected
from sensorium.trainers.language.learner import Learner, Rows
from sensorium.trainers.language.samples import Sample
from sensorium.trainers.tensor_files import load_moments, moments, no_space, read_tensors, saveable, sha256

FORMAT = 2
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


class SavedRun(NamedTuple):
    """What a checkpoint holds beside weights and moments."""

    counters: dict[str, Any]
    pending: Pending | None
    """The round under way."""
    waiting: list[Collected]
    """Rounds after it that are collected already, in order."""


def save_run(
    path: Path,
    learner: Learner,
    counters: Mapping[str, Any],
    pending: Pending | None,
    waiting: Sequence[Collected] = (),
) -> None:
    """Write a checkpoint, completely or not at all.

    Args:
        path: New directory.
        learner: Weights and optimiser.
        counters: Whatever else the loop needs to go on; JSON-friendly.
        pending: The round under way.
        waiting: Rounds after it that are collected already.

    Raises:
        CheckpointError: The disk is full or the folder cannot be written.
    """
    files = {
        "model.safetensors": save(saveable(learner.parameters)),
        "optimizer.safetensors": save(saveable(moments(learner.parameters, learner.optimizer))),
    }
    state = {
        "format": FORMAT,
        "num_steps": learner.num_steps,
        "counters": dict(counters),
        "pending": None if pending is None else _pending_json(pending),
        "waiting": [_collected_json(one) for one in waiting],
        "sha256": {name: sha256(content) for name, content in files.items()},
    }
    try:
        with atomic_directory(path) as folder:
            for name, content in files.items():
                (folder / name).write_bytes(content)
            (folder / "state.json").write_text(json.dumps(state))
    except OSError as error:
        raise no_space(path, error) from error


def load_run(path: Path, learner: Learner) -> SavedRun:
    """Put a checkpoint's weights and moments into `learner`; returns what else it holds.

    Raises:
        CheckpointError: A file is missing, corrupt, or of another model.
    """
    try:
        state = json.loads((path / "state.json").read_text())
        if state["format"] != FORMAT:
            raise CheckpointError(
                f"{path} has checkpoint format {state['format']}; this version reads {FORMAT}."
            )
        tensors, of_adam = (
            read_tensors(path, name, state) for name in ("model.safetensors", "optimizer.safetensors")
        )
        pending = None if state["pending"] is None else _pending(state["pending"])
        saved = SavedRun(state["counters"], pending, [_collected(one) for one in state["waiting"]])
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
    load_moments(own, learner.optimizer, of_adam)
    learner.num_steps = num_steps
    return saved


def _pending_json(pending: Pending) -> dict[str, Any]:
    rows = pending.rows
    return {
        "samples": [sample._asdict() for sample in rows.samples],
        "advantages": rows.advantages.tolist(),
        "groups": rows.groups.tolist(),
        "pictures": dict(rows.pictures),
        "position": pending.position,
        "metrics": pending.metrics,
        "told": pending.told,
    }


def _pending(found: Mapping[str, Any]) -> Pending:
    samples = [_sample(one) for one in found["samples"]]
    rows = Rows(
        samples,
        torch.tensor(found["advantages"]),
        torch.tensor(found["groups"], dtype=torch.long),
        found["pictures"],
    )
    return Pending(rows, int(found["position"]), found["metrics"], found["told"])


def _sample(found: Mapping[str, Any]) -> Sample:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
    }
    return Sample(**values)


def _collected_json(collected: Collected) -> dict[str, Any]:
    plain = [trajectory.model_dump(mode="json") for trajectory in collected.trajectories]
    return collected._asdict() | {"trajectories": plain}


def _collected(found: Mapping[str, Any]) -> Collected:
    read = [Trajectory.model_validate(trajectory) for trajectory in found["trajectories"]]
    return Collected(**{**found, "trajectories": read})
