"""From parts to vectors: sound to log-mel frames, sentences to speech, text to embeddings.

Importing this package loads NumPy and pydantic only; torch and transformers are loaded by the pretrained
text encoder, when it meets a sentence that is not in its cache.
"""

from sensorium.features.audio import LOG_MEL_FLOOR, frame_count, log_mel, mel_filterbank
from sensorium.features.base import FrozenTextEncoder, TextEmbedding
from sensorium.features.config import HashedTextConfig, PretrainedTextConfig, TextEncoderConfig
from sensorium.features.hashed_text import HashedTextEncoder
from sensorium.features.models import PACKAGED_MODELS, PackagedModel, fetch_model, find_model, locate_model
from sensorium.features.resample import resample
from sensorium.features.speech import VOICES, Utterance, utterance, utterance_log_mel
from sensorium.features.text_encoder import TextEncoder, build_text_encoder

__all__ = [
    "LOG_MEL_FLOOR",
    "PACKAGED_MODELS",
    "VOICES",
    "FrozenTextEncoder",
    "HashedTextConfig",
    "HashedTextEncoder",
    "PackagedModel",
    "PretrainedTextConfig",
    "TextEmbedding",
    "TextEncoder",
    "TextEncoderConfig",
    "Utterance",
    "build_text_encoder",
    "fetch_model",
    "find_model",
    "frame_count",
    "locate_model",
    "log_mel",
    "mel_filterbank",
    "resample",
    "utterance",
    "utterance_log_mel",
]
