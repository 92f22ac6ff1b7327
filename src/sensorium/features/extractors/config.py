"""Which extractors run, with which settings, and how long they may take."""

from typing import Any

from pydantic import Field, PositiveFloat

from sensorium.core import Config


class FeaturesConfig(Config):
    """Section ``features``."""

    extractors: tuple[str, ...] = ()
    """Names of extractors, in the order in which they are reported."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Name of an extractor -> its own settings, e.g. ``{sentence: {model: minilm}}``."""
    timeout_s: float = Field(default=20.0, gt=0.0)
    """Longest time one extractor may take for one observation; after that its features are unavailable, and
    what arrives later goes to the cache."""
    timeouts_s: dict[str, PositiveFloat] = Field(default_factory=dict)
    """Name of an extractor -> a time-out of its own."""
    max_batch: int = Field(default=64, ge=1)
    """Parts that are handed to an extractor at once."""
    max_workers: int | None = Field(default=None, ge=1)
    """Extractors that compute at the same time; one per core when not given."""
    cache: bool = True
    """Keep features on disk, by content hash and version."""
    cache_folder: str | None = None
    """Where; ``$XDG_CACHE_HOME/sensorium/features`` or ``~/.cache/sensorium/features`` when not given."""
    cache_limit_mb: float = Field(default=1024.0, gt=0.0)
    """Size of the cache on disk, millions of bytes; the oldest entries make room."""
    memory_mb: float = Field(default=64.0, ge=0.0)
    """Size of the cache in memory, millions of bytes; 0 keeps nothing there."""
