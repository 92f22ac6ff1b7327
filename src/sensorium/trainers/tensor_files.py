"""Tensors of a checkpoint on disk: safetensors whose hash is kept beside them, no pickle."""

import errno
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from sensorium.core import CheckpointError
from sensorium.core.files import PARTIAL_SUFFIX


def latest_checkpoint(run: Path) -> Path | None:
    """Newest complete checkpoint of a run, by name, or None."""
    folders = (path.parent for path in (run / "checkpoints").glob("*/state.json"))
    found = sorted(folder for folder in folders if folder.suffix != PARTIAL_SUFFIX)
    return found[-1] if found else None


def saveable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies that safetensors takes: on the CPU, contiguous, sharing nothing."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def moments(parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """State of an optimiser as ``{parameter}/{key}`` -> tensor."""
    return {
        f"{name}/{key}": value
        for name, parameter in parameters.items()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_moments(
    parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]
) -> None:
    """Put what `moments` gave back into an optimiser."""
    for full_name, tensor in tensors.items():
        name, _, key = full_name.rpartition("/")
        parameter = parameters[name]
        # Adam keeps its step counter on the CPU whatever device the parameter is on.
        device = torch.device("cpu") if key == "step" else parameter.device
        optimizer.state[parameter][key] = tensor.to(device)


_MEND = "Delete this checkpoint folder to go on from the one before it."


def sha256(content: bytes) -> str:
    """Hash of a file, as `state.json` holds it."""
    return hashlib.sha256(content).hexdigest()


def read_tensors(path: Path, name: str, state: Mapping[str, Any]) -> dict[str, Tensor]:
    """Tensors of one file of a checkpoint.

    Args:
        path: Folder of the checkpoint.
        name: Of the file.
        state: What `state.json` holds, with the hashes under ``sha256``.

    Raises:
        CheckpointError: The file is missing or corrupt.
    """
    try:
        content = (path / name).read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path / name} cannot be read: {error.strerror}. {_MEND}") from error
    if sha256(content) != state["sha256"][name]:
        raise CheckpointError(f"{path / name} is corrupt: its sha256 is not the one in state.json. {_MEND}")
    try:
        return load(content)
    except SafetensorError as error:
        raise CheckpointError(f"{path / name} is not a safetensors file: {error}.") from error


def no_space(path: Path, error: OSError) -> CheckpointError:
    """What is said when a checkpoint could not be written: on a full disk, and for other reasons."""
    if isinstance(error, FileExistsError):
        mend = (
            "Another process may be training this run; only one can. A checkpoint without state.json is "
            "incomplete and can be deleted."
        )
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        mend = "Free some space."
    else:
        mend = "See to it that this folder can be written."
    reason = str(error.strerror or error).rstrip(".")
    return CheckpointError(
        f"Could not save {path}: {reason}. The checkpoints before it are intact. {mend} Go on with "
        f"--on-existing resume."
    )
