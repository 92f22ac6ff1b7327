"""Checkpoints: weights, optimiser, filters, randomness and counters, in safetensors and JSON; no pickle.

checkpoints/{step}/
model.safetensors      parameters and observation filters
optimizer.safetensors  moments of Adam, by parameter name
random.safetensors     state of the run's random generator
state.json             counters, the policy's inputs, sha256 of every file
policy.onnx            the same policy for any runtime; see policy.json beside it
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save

from sensorium.core import CheckpointError
from sensorium.core.files import atomic_directory
from sensorium.policies.embodied import ActorCritic
from sensorium.trainers.onnx_export import export_policy
from sensorium.trainers.ppo import PPO
from sensorium.trainers.tensor_files import load_moments, moments, no_space, read_tensors, saveable, sha256

FORMAT = 1
"""Version of the layout above."""

_STATE_KEYS = frozenset({"inputs", "learner", "onnx_max_abs_diff", "counters", "sha256"})


def checkpoint_path(run: Path, env_steps: int) -> Path:
    """Directory of the checkpoint after `env_steps` environment steps."""
    return run / "checkpoints" / f"{env_steps:012d}"


def save_checkpoint(path: Path, learner: PPO, counters: Mapping[str, Any]) -> float:
    """Write a checkpoint with its ONNX file; on failure nothing of it remains and older ones are intact.

    Args:
        path: New directory.
        learner: Policy, optimiser and generator.
        counters: Whatever else the loop needs to go on; JSON-friendly.

    Returns:
        Largest absolute difference between PyTorch and ONNX over a recurrent test.

    Raises:
        CheckpointError: The ONNX file disagrees with PyTorch, or the disk is full.
    """
    policy = learner.policy
    files = {
        "model.safetensors": save(saveable(policy.state_dict())),
        "optimizer.safetensors": save(saveable(moments(dict(policy.named_parameters()), learner.optimizer))),
        "random.safetensors": save({"generator": learner.generator.get_state()}),
    }
    try:
        with atomic_directory(path) as folder:
            for name, content in files.items():
                (folder / name).write_bytes(content)
            difference = export_policy(policy, folder)
            state = {
                "format": FORMAT,
                "inputs": [sensor.describe() for sensor in policy.inputs],
                "learner": learner.to_json(),
                "onnx_max_abs_diff": difference,
                "counters": dict(counters),
                "sha256": {f.name: sha256(f.read_bytes()) for f in sorted(folder.iterdir())},
            }
            (folder / "state.json").write_text(json.dumps(state, indent=1))
    except OSError as error:
        raise no_space(path, error) from error
    return difference


def load_policy(path: Path, policy: ActorCritic) -> dict[str, Any]:
    """Load weights and filters into `policy`; returns what `state.json` holds.

    Raises:
        CheckpointError: A file is missing or corrupt, or the weights are of another architecture.
    """
    state = _read_state(path)
    wanted = [sensor.describe() for sensor in policy.inputs]
    if state["inputs"] != wanted:
        raise CheckpointError(
            f"{path} was made for other senses: {_names(state['inputs'])}; this policy has {_names(wanted)}."
        )
    tensors = read_tensors(path, "model.safetensors", state)
    own = policy.state_dict()
    wrong = sorted(
        name
        for name in own.keys() | tensors.keys()
        if name not in own or name not in tensors or own[name].shape != tensors[name].shape
    )
    if wrong:
        raise CheckpointError(
            f"{path} holds a policy of another architecture; {len(wrong)} tensors differ, e.g. "
            f"{', '.join(wrong[:3])}. Use the network settings of the run's config.json."
        )
    policy.load_state_dict(tensors)
    return state


def load_learner(path: Path, learner: PPO) -> dict[str, Any]:
    """Load everything that training needs to go on; returns what `state.json` holds.

    Raises:
        CheckpointError: A file is missing or corrupt, or the weights are of another architecture.
    """
    state = load_policy(path, learner.policy)
    parameters = dict(learner.policy.named_parameters())
    load_moments(parameters, learner.optimizer, read_tensors(path, "optimizer.safetensors", state))
    learner.generator.set_state(read_tensors(path, "random.safetensors", state)["generator"])
    learner.from_json(state["learner"])
    return state


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((path / "state.json").read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is not a complete checkpoint: state.json: {error}.") from error
    found = state.get("format") if isinstance(state, dict) else None
    if found != FORMAT:
        raise CheckpointError(f"{path} has checkpoint format {found}; this version reads {FORMAT}.")
    if missing := sorted(_STATE_KEYS - state.keys()):
        raise CheckpointError(f"{path} is not a complete checkpoint: state.json lacks {', '.join(missing)}.")
    return state


def _names(inputs: list[dict[str, Any]]) -> str:
    return ", ".join(_name(sensor) for sensor in inputs)


def _name(sensor: dict[str, Any]) -> str:
    encoder = f" by {sensor['encoder']}" if sensor["encoder"] else ""
    return f"{sensor['name']}{tuple(sensor['shape'])}{encoder}"
