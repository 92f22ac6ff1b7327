"""The files that a task puts into the work directory."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sensorium.core import EnvError
from sensorium.envs.notebook.tasks import ask

_MAX_FILE_BYTES = 200_000_000


def task_files(specs: Any, data_directory: Path | None = None) -> dict[str, bytes]:
    """Contents of the files of a task.

    Args:
        specs: File name -> one of ``{"text": ...}``, ``{"base64": ...}``, ``{"path": ...}`` below
            `data_directory`, or ``{"dataset": ..., "template": ..., "seed": ...}`` as tasks of this
            environment have it; ``sha256`` beside any of them is checked.
        data_directory: Where paths lead; they are refused when None.

    Raises:
        EnvError: A file is described in no such way, not there, or not what it should be.
    """
    if not isinstance(specs, Mapping):
        raise EnvError(f"The task's files are of type {type(specs).__name__}. Expected a mapping by name.")
    files = {}
    for name, spec in specs.items():
        if not isinstance(spec, Mapping):
            raise EnvError(f"The file {name!r} of the task is {spec!r}. Expected e.g. {{'text': 'a,b'}}.")
        content = _content(str(name), spec, data_directory)
        wanted = spec.get("sha256")
        if wanted is not None and hashlib.sha256(content).hexdigest() != wanted:
            raise EnvError(
                f"The file {name!r} differs from the one that the task was made with: another version of "
                "the package with the data set is installed. Make the tasks again, or install the version "
                "they were made with."
            )
        files[str(name)] = content
    return files


def _content(name: str, spec: Mapping[str, Any], directory: Path | None) -> bytes:
    if isinstance(spec.get("text"), str):
        return str(spec["text"]).encode()
    if isinstance(spec.get("base64"), str):
        try:
            return base64.b64decode(spec["base64"], validate=True)
        except binascii.Error as error:
            raise EnvError(f"The file {name!r} of the task is no valid base64: {error}.") from error
    if isinstance(spec.get("path"), str):
        return _below(name, spec["path"], directory)
    dataset, template, seed = (spec.get(key) for key in ("dataset", "template", "seed"))
    if isinstance(dataset, str) and isinstance(template, str) and isinstance(seed, int):
        asked = ask(dataset, template, seed)
        if asked is not None and name in asked[1]:
            return asked[1][name].csv().encode()
        raise EnvError(f"The file {name!r} is not one of {template} about {dataset} with seed {seed}.")
    raise EnvError(
        f"The file {name!r} of the task has none of: text, base64, path, dataset with template and seed."
    )


def _below(name: str, path: str, directory: Path | None) -> bytes:
    if directory is None:
        raise EnvError(
            f"The file {name!r} of the task names a path. Set data_directory to where such files are."
        )
    root = directory.resolve()
    place = (root / path).resolve()
    if not place.is_relative_to(root) or not place.is_file():
        raise EnvError(f"The file {name!r} of the task: there is no file {path!r} below data_directory.")
    if place.stat().st_size > _MAX_FILE_BYTES:
        raise EnvError(f"The file {name!r} of the task has over {_MAX_FILE_BYTES:,} bytes.")
    return place.read_bytes()
