"""Which weights a model folder holds: a hash of its files, computed once and remembered."""

import hashlib
import json
from pathlib import Path

from sensorium.core import FeatureError
from sensorium.core.files import atomic_write_bytes
from sensorium.features.disk_cache import cache_folder

_PATTERNS = ("*.safetensors", "*.json", "*.txt", "*.model")
_OURS = "sensorium-"  # files that this package adds to a model folder


def model_fingerprint(folder: Path) -> str:
    """SHA-256 over the names and contents of the weights, tokenizer and config in a model folder.

    Hashing 90 MB takes a fraction of a second and is done once: the result is kept in
    ``cache_folder("fingerprints")`` and used again as long as the size and time of every file are unchanged.

    Args:
        folder: Folder in Hugging Face format.

    Returns:
        64 hex digits.

    Raises:
        FeatureError: The folder holds no safetensors weights, or a file cannot be read.
    """
    files = sorted({path for pattern in _PATTERNS for path in folder.glob(pattern)})
    files = [path for path in files if not path.name.startswith(_OURS)]
    if not any(path.suffix == ".safetensors" for path in files):
        raise FeatureError(
            f"{folder} holds no *.safetensors weights. Save the model again with "
            f"model.save_pretrained(folder, safe_serialization=True); pickled weights are not loaded."
        )
    try:
        stamp = {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in files}
        name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]
        note = cache_folder("fingerprints") / f"{name}.json"
        known = _read(note)
        if known.get("files") == stamp and isinstance(known.get("sha256"), str):
            return str(known["sha256"])
        fingerprint = _hash(files)
    except OSError as error:
        raise FeatureError(f"Cannot read the model in {folder}: {error}.") from error
    try:
        record = {"folder": str(folder.resolve()), "files": stamp, "sha256": fingerprint}
        atomic_write_bytes(note, json.dumps(record, indent=2).encode())
    except OSError:
        return fingerprint  # it is computed again next time
    return fingerprint


def _read(note: Path) -> dict[str, object]:
    try:
        known = json.loads(note.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _hash(files: list[Path]) -> str:
    total = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            total.update(f"{path.name}\0".encode() + hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()
