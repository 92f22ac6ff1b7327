"""A chat model whose weights are in this process: continuous batching, tool calls held to their schemas.

torch and transformers are imported when a model is loaded.
"""

from sensorium.llm.local.chat import LocalChatModel
from sensorium.llm.local.config import EngineConfig, LocalModelConfig, SamplingDefaults
from sensorium.llm.local.engine import Engine, EngineStats
from sensorium.llm.local.requests import (
    Generation,
    LocalCompletion,
    ModelClosedError,
    PictureError,
    QueueFullError,
    Request,
    RequestError,
    Sampling,
)
from sensorium.llm.local.tiny import tiny_model, tiny_seeing_model

__all__ = [
    "Engine",
    "EngineConfig",
    "EngineStats",
    "Generation",
    "LocalChatModel",
    "LocalCompletion",
    "LocalModelConfig",
    "ModelClosedError",
    "PictureError",
    "QueueFullError",
    "Request",
    "RequestError",
    "Sampling",
    "SamplingDefaults",
    "tiny_model",
    "tiny_seeing_model",
]
