"""The second layer: what an extractor finds in parts, and the one Protocol that all extractors keep."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from sensorium.core.exact_json import Received
from sensorium.observations.base import Part


def _as_vector(value: Any) -> NDArray[np.float32]:
    vector = np.array(value, dtype=np.float32)
    vector.setflags(write=False)
    return vector


Vector = Annotated[
    NDArray[np.float32],
    BeforeValidator(_as_vector),
    PlainSerializer(lambda v: [float(x) for x in v], return_type=list[float]),
]
"""(D,) float32, read-only; a list of numbers in JSON."""


class Features(BaseModel):
    """What one extractor found in one part."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        use_attribute_docstrings=True,
        ser_json_inf_nan="strings",
    )

    part_id: str
    extractor: str
    """Name of the extractor."""
    version: str
    """Its version: a change of code, model or setting that changes results changes it."""
    vector: Vector | None = None
    """A standardised vector (D,), e.g. a sentence embedding of length 1."""
    data: Received = Field(default_factory=dict)
    """A structured description: plain JSON data."""
    summary: str = ""
    """The description in one line of words, as an LLM would be told; empty when there is none."""
    unavailable: str | None = None
    """Why there is nothing (a time-out, a missing package or model); None when extraction worked."""
    seconds: float = 0.0
    """Time extraction took, its share of a batch, as the runner measured it; 0 from the cache."""
    is_cached: bool = False


FeatureMap = Mapping[str, Mapping[str, Features]]
"""Part id -> name of extractor -> features."""


@runtime_checkable
class Extractor(Protocol):
    """Finds something in parts; batched by nature, thread-safe, without state that changes results."""

    @property
    def name(self) -> str:
        """Key in configs and in the results, e.g. ``sentence``."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever results could."""
        ...

    def accepts(self, part: Part) -> bool:
        """Whether the part is of a kind it reads; cheap, loads nothing."""
        ...

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """Extract from parts that `accepts` accepted; one result per part, in order.

        What cannot be read in one part (a broken picture) is said in that part's `unavailable`.

        Raises:
            MissingDependencyError: A package or model it needs is not installed; the runner turns this into
                `unavailable` for all parts.
            FeatureError: The extractor failed as a whole.
        """
        ...
