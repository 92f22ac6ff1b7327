"""Torch modules; they do not know what reinforcement learning is."""

from sensorium.nn.conv import ConvEncoder
from sensorium.nn.fusion import (
    CrossModalFusion,
    EarlyFusion,
    Fused,
    Fusion,
    GatedFusion,
    LateFusion,
    Prepared,
    build_fusion,
)
from sensorium.nn.normalise import RunningNorm
from sensorium.nn.pretrained import load_pretrained
from sensorium.nn.recurrent import LSTMState, SegmentLSTM
from sensorium.nn.sound import SoundEncoder, TextProjection, VectorEncoder
from sensorium.nn.space_time import SpaceTimeEncoder
from sensorium.nn.tokens import Tokens, TokenShape

__all__ = [
    "ConvEncoder",
    "CrossModalFusion",
    "EarlyFusion",
    "Fused",
    "Fusion",
    "GatedFusion",
    "LSTMState",
    "LateFusion",
    "Prepared",
    "RunningNorm",
    "SegmentLSTM",
    "SoundEncoder",
    "SpaceTimeEncoder",
    "TextProjection",
    "TokenShape",
    "Tokens",
    "VectorEncoder",
    "build_fusion",
    "load_pretrained",
]
