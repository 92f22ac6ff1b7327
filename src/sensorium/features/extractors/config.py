"""Which extractors run, and how long they may take."""

from pydantic import Field

from sensorium.core import Config


class FeaturesConfig(Config):
    """Section ``features``."""

    extractors: tuple[str, ...] = ("code_structure",)
    """Names of extractors, in the order of the registry."""
    timeout_s: float = Field(default=20.0, gt=0.0)
    """Longest time one extractor may take for one observation; after that its features are unavailable."""
    cache: bool = True
    """Keep features on disk, by content hash and version."""
