"""A raw state with what its owner knows of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sensorium.core.types import Modality
from sensorium.observations.code import CodeState


@dataclass(frozen=True, slots=True)
class Source:
    r"""A raw state with what its owner knows of it; everything but the state may be left out.

    Example:
        >>> Source("a,b\n1,2", modality=Modality.TABLE, importance=2.0).modality.value
        'table'
    """

    raw: Any
    modality: Modality | None = None
    """How it is read; found out from its type and content when None."""
    importance: float = 1.0
    """Weight beside the other parts: 0 is sent only when there is room for everything, 2 counts double."""
    timestamp_s: float | None = None
    """When it was perceived, seconds on the clock of the observation."""
    path: str | None = None
    """Name of the file that a text comes from: its ending says what it is."""
    language: str | None = None
    """Language of code."""
    state: CodeState | None = None
    """Cursor, variables, stack trace, tests and tools of code."""
    unit: str | None = None
    """Unit of the elements of an array or depth picture."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Name of a column or value -> unit."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Name of a column or field -> what it means."""
    alt: str = ""
    """What is known of a picture in words."""
    url: str | None = None
    """Where a client can load a picture."""
    is_cut: bool = False
    """The state is only the beginning of a larger file: that it breaks off is no fault of the file."""
