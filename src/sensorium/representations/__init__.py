"""Features become what is read: messages for a language model, aligned tensors for a policy network.

`tensors` needs torch and is imported by its own name.
"""

from sensorium.representations.base import Account, Entry, Level, Representation
from sensorium.representations.config import PipelineConfig
from sensorium.representations.history import History
from sensorium.representations.pipeline import ObservationPipeline, Trace
from sensorium.representations.references import References, fetch_tool
from sensorium.representations.session import Session, SessionState

__all__ = [
    "Account",
    "Entry",
    "History",
    "Level",
    "ObservationPipeline",
    "PipelineConfig",
    "References",
    "Representation",
    "Session",
    "SessionState",
    "Trace",
    "fetch_tool",
]
