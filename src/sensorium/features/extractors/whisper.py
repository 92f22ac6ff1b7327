"""Whisper through faster-whisper."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import FeatureError, MissingDependencyError, boundary, require
from sensorium.features.extractors.audio_config import TranscriptConfig
from sensorium.features.extractors.model_stamp import model_stamp, package_version
from sensorium.features.extractors.recognition import RATE_HZ, SpokenSegment, SpokenText
from sensorium.features.models import PACKAGED_MODELS, find_model

_UNSURE_SPEECH = 0.6
_UNSURE_TEXT = -1.0


class WhisperRecogniser:
    """Whisper behind a detector of voices, so that noise and music give no invented sentences.

    Weights are computed with in 8-bit integers on a CPU, in 16-bit floats on a GPU.

    Args:
        config: Model, language, device.
    """

    def __init__(self, config: TranscriptConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def version(self) -> str:
        """Engine and weights."""
        return f"whisper-{package_version('faster-whisper')}-{model_stamp(self._config.model)}"

    def recognise(self, waveform: NDArray[np.float32]) -> SpokenText:
        """See `Recogniser`."""
        model, config = self._loaded(), self._config
        with boundary(FeatureError, "whisper failed"):
            segments, information = model.transcribe(
                waveform,
                language=config.language,
                beam_size=config.beam_size,
                vad_filter=True,
                condition_on_previous_text=False,  # an error would repeat itself to the end
            )
            duration_s = len(waveform) / RATE_HZ  # whisper may tell of an end after it
            spoken = tuple(
                SpokenSegment(round(one.start, 2), round(min(one.end, duration_s), 2), one.text.strip())
                for one in segments
                if one.text.strip()
                and not (one.no_speech_prob > _UNSURE_SPEECH and one.avg_logprob < _UNSURE_TEXT)
            )
        return SpokenText(spoken, str(information.language) if spoken else None)

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> Any:
        config = self._config
        module = require("faster_whisper", extra="speech", purpose="speech recognition with engine whisper")
        try:
            found = find_model(config.model, marker="model.bin")
        except FeatureError as error:
            raise MissingDependencyError(str(error)) from error
        is_local = isinstance(found, Path)
        try:
            return module.WhisperModel(
                str(found),
                device=config.device,
                compute_type="default" if config.device == "auto" else _COMPUTE_TYPES[config.device],
                cpu_threads=config.threads,
                local_files_only=is_local,
            )
        except Exception as error:
            raise MissingDependencyError(
                f"Whisper model {config.model!r} cannot be loaded ({type(error).__name__}: {error}). "
                f"Expected a packaged model ({_packaged()}), a folder in CTranslate2 format with model.bin, "
                f"or a name on the hub such as base.en."
            ) from error


_COMPUTE_TYPES = {"cpu": "int8", "cuda": "float16"}


def _packaged() -> str:
    return ", ".join(name for name, model in PACKAGED_MODELS.items() if model.marker == "model.bin")
