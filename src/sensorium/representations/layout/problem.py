"""What could not be read, as one pinned segment."""

from sensorium.observations.base import Part
from sensorium.observations.values import ProblemValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import TextConfig
from sensorium.representations.layout.typed import value_of


def lay_out_problem(part: Part, config: TextConfig | None = None) -> Document:
    """Lay out what is wrong, where, and how to mend it.

    Args:
        part: A part with a `ProblemValue`.
        config: Not needed: a problem is always short.
    """
    value = value_of(part, ProblemValue, "problems")
    place = f" ({value.where})" if value.where and value.where != part.id else ""
    mend = f" To mend: {value.mend.rstrip('. ')}." if value.mend else ""
    text = f"Could not be read: {value.what.rstrip('. ')}{place}.{mend}"
    return Document(title="problem", segments=(Segment(text, 5.0, is_pinned=True),))
