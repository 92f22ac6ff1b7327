"""Changes of parts and observations: lossless, at a cost that follows what changed."""

from sensorium.representations.delta.base import PartDelta
from sensorium.representations.delta.images import changed_rectangles
from sensorium.representations.delta.keyframes import DeltaDecoder, DeltaEncoder, ResyncError, parse_packet
from sensorium.representations.delta.observation import ObservationDelta, apply, diff
from sensorium.representations.delta.parts import apply_delta, make_delta
from sensorium.representations.delta.render import render_delta, tells_all

__all__ = [
    "DeltaDecoder",
    "DeltaEncoder",
    "ObservationDelta",
    "PartDelta",
    "ResyncError",
    "apply",
    "apply_delta",
    "changed_rectangles",
    "diff",
    "make_delta",
    "parse_packet",
    "render_delta",
    "tells_all",
]
