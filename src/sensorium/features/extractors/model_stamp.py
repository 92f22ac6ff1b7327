"""Short names for the weights and packages behind a setting, found without loading them."""

import hashlib
from importlib import metadata
from pathlib import Path

from sensorium.features.models import PACKAGED_MODELS


def model_stamp(name_or_path: str) -> str:
    """Text that changes when other weights stand behind the same setting.

    Of a packaged model its pinned hash counts, of a local folder the names, sizes and times of its files, of
    a hub name the name itself.
    """
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        listing = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
        return hashlib.sha256(repr(listing).encode()).hexdigest()[:8]
    if name_or_path in PACKAGED_MODELS:
        return PACKAGED_MODELS[name_or_path].sha256[:8]
    return hashlib.sha256(name_or_path.encode()).hexdigest()[:8]


def package_version(distribution: str) -> str:
    """Version of an installed distribution; ``none`` when there is none of this name."""
    try:
        return metadata.version(distribution)
    except (metadata.PackageNotFoundError, ValueError):  # a path is no name
        return "none"
