"""Torch modules; they do not know what reinforcement learning is."""

from sensorium.nn.conv import ConvEncoder
from sensorium.nn.fusion import CrossModalFusion, Fused
from sensorium.nn.normalise import RunningNorm
from sensorium.nn.recurrent import LSTMState, SegmentLSTM
from sensorium.nn.sound import SoundEncoder, TextProjection, VectorEncoder
from sensorium.nn.space_time import SpaceTimeEncoder
from sensorium.nn.tokens import Tokens, TokenShape

__all__ = [
    "ConvEncoder",
    "CrossModalFusion",
    "Fused",
    "LSTMState",
    "RunningNorm",
    "SegmentLSTM",
    "SoundEncoder",
    "SpaceTimeEncoder",
    "TextProjection",
    "TokenShape",
    "Tokens",
    "VectorEncoder",
]
