"""The value of a part, of the type that a layout is for."""

from typing import TypeVar

from sensorium.observations.base import Part
from sensorium.observations.values import Value

ValueT = TypeVar("ValueT", bound=Value)


def value_of(part: Part, kind: type[ValueT], what: str) -> ValueT:
    """The value of a part.

    Args:
        part: Any part.
        kind: Type that its value has to have.
        what: Such parts in words, plural.

    Raises:
        TypeError: It is of another kind.
    """
    if not isinstance(part.value, kind):
        raise TypeError(f"got a part of kind {part.value.kind!r} ({part.id}); this lays out {what}")
    return part.value
