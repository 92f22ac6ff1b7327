"""What came of extracting from one observation."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from sensorium.core.types import Modality
from sensorium.features.extractors.base import Features
from sensorium.observations.base import Part


class FeatureReport(BaseModel):
    """Features of the parts of one observation, and what they cost."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    features: dict[str, dict[str, Features]] = Field(default_factory=dict)
    """Part id -> name of extractor -> features. Every part is in it; an extractor that does not read parts of
    its kind is not."""
    milliseconds: dict[str, float] = Field(default_factory=dict)
    """Extractor -> time spent on these parts, their share of batches; 0 where all came from the cache."""
    hits: int = 0
    """Features that needed no extraction: from the cache, or of content that occurs twice in the batch."""
    misses: int = 0
    """Features that were extracted, or could not be."""
    notes: tuple[str, ...] = ()
    """What was unavailable and why, a line per reason."""

    def latencies(self, parts: Sequence[Part]) -> dict[Modality, list[float]]:
        """Modality -> milliseconds of every part that was not wholly in the cache, all extractors together.

        Args:
            parts: The parts of this observation.
        """
        found: dict[Modality, list[float]] = {}
        for part in parts:
            entries = self.features.get(part.id, {}).values()
            if any(not entry.is_cached for entry in entries):
                total = sum(entry.seconds for entry in entries) * 1000.0
                found.setdefault(part.modality, []).append(total)
        return found


def notes_of(features: dict[str, dict[str, Features]]) -> tuple[str, ...]:
    """A line for each extractor and reason, e.g. ``ocr: unavailable: took longer than 20 s (3 parts)``."""
    counts: dict[tuple[str, str], int] = {}
    for entries in features.values():
        for name, entry in entries.items():
            if entry.unavailable is not None:
                counts[name, entry.unavailable] = counts.get((name, entry.unavailable), 0) + 1
    return tuple(
        f"{name}: unavailable: {reason} ({count} part{'s' if count > 1 else ''})"
        for (name, reason), count in counts.items()
    )
