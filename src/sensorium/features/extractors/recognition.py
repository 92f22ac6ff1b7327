"""What a speech recogniser takes and gives."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

RATE_HZ = 16_000
"""Sample rate that recognisers listen at."""


class SpokenSegment(NamedTuple):
    """A stretch of speech."""

    start_s: float
    end_s: float
    text: str


class SpokenText(NamedTuple):
    """What is said in a sound."""

    segments: tuple[SpokenSegment, ...]
    """In order; none when nothing is said."""
    language: str | None
    """Code such as ``en``."""


@runtime_checkable
class Recogniser(Protocol):
    """Listens to whole sounds; loads its model at the first one."""

    @property
    def version(self) -> str:
        """Changes with engine and weights."""
        ...

    def recognise(self, waveform: NDArray[np.float32]) -> SpokenText:
        """Listen to a sound, (samples,) in [-1, 1] at `RATE_HZ`, that is not silent.

        Raises:
            FeatureError: The model failed.
            MissingDependencyError: The engine or its model is not installed.
        """
        ...
