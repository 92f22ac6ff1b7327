"""Sentences spoken by espeak-ng, at 16 kHz, cached in memory and on disk."""

import functools
import math
from dataclasses import dataclass
from importlib import metadata

import numpy as np
from numpy.typing import NDArray

from sensorium.core import FeatureError, require
from sensorium.features.audio import frame_count, log_mel
from sensorium.features.disk_cache import ArrayCache, cache_folder
from sensorium.features.espeak import VOICES, check_voice, synthesise
from sensorium.features.resample import resample

__all__ = ["SAMPLE_RATE_HZ", "VOICES", "Utterance", "utterance", "utterance_log_mel"]

SAMPLE_RATE_HZ = 16_000
"""Sample rate of every utterance."""

_SILENCE = 1e-3  # 60 dB below full scale
_MARGIN_S = 0.01
_FORMAT = 1  # part of the cache key: raise it when the samples of an utterance change


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A spoken sentence."""

    waveform: NDArray[np.float32]
    """(samples,) mono in [-1, 1], read-only. Silence at both ends (below -60 dB of full scale) is cut down to
    10 ms. Empty when there is nothing to say."""
    sample_rate_hz: int
    text: str
    voice: str
    rate_wpm: int
    pitch: int

    @property
    def duration_s(self) -> float:
        """Length of the waveform."""
        return self.waveform.size / self.sample_rate_hz


@functools.lru_cache(maxsize=512)
def _utterance(text: str, voice: str, rate_wpm: int, pitch: int) -> Utterance:
    loader = require("espeakng_loader", extra="rl", purpose="speech synthesis")
    check_voice(voice, rate_wpm, pitch)
    version = metadata.version(loader.__name__.replace("_", "-"))
    key = "\x1f".join(["espeakng-loader", version, f"{_FORMAT}", voice, f"{rate_wpm}", f"{pitch}", text])
    cache = ArrayCache(cache_folder("speech"))
    samples = cache.load(key)
    if samples is None or samples.dtype != np.int16 or samples.ndim != 1:
        samples = _speak(text, voice, rate_wpm, pitch)
        cache.store(key, samples)
    waveform = samples.astype(np.float32) / np.float32(32768)
    waveform.setflags(write=False)
    return Utterance(
        waveform=waveform,
        sample_rate_hz=SAMPLE_RATE_HZ,
        text=text,
        voice=voice,
        rate_wpm=rate_wpm,
        pitch=pitch,
    )


def utterance(text: str, *, voice: str = "en-us", rate_wpm: int = 160, pitch: int = 50) -> Utterance:
    """Speak a sentence; the same arguments give the same samples in every call and every process.

    espeak-ng's 22,050 Hz are resampled to 16 kHz by cutting the spectrum at 8 kHz (see `resample`), trimmed
    and rounded to 16 bits. Kept in memory (the last 512) and under `cache_folder("speech")`.

    Args:
        text: What to say. Text without anything to pronounce gives an empty waveform.
        voice: One of `VOICES`, or any other `language+variant` of espeak-ng.
        rate_wpm: Words per minute, 80 to 450.
        pitch: 0 to 99.

    Raises:
        ConfigError: The voice does not exist, or a setting is out of range.
        FeatureError: espeak-ng failed.
        MissingDependencyError: The package espeakng-loader is not installed.
    """
    return _utterance(text, voice, rate_wpm, pitch)


def utterance_log_mel(
    text: str,
    *,
    voice: str = "en-us",
    rate_wpm: int = 160,
    pitch: int = 50,
    frame_rate_hz: float = 40.0,
    n_mels: int = 20,
    num_frames: int,
) -> NDArray[np.float32]:
    """Speak a sentence into a fixed number of log-mel frames; silence (LOG_MEL_FLOOR) fills what remains.

    The window is 32 ms long, or the next power of two of samples that spans the time between two frames.

    Args:
        text: What to say; empty text is silence throughout.
        voice: As for `utterance`.
        rate_wpm: As for `utterance`.
        pitch: As for `utterance`.
        frame_rate_hz: Frames per second.
        n_mels: Mel channels between 50 Hz and 8 kHz.
        num_frames: Number of frames to return.

    Returns:
        (num_frames, n_mels) float32, cached and read-only.

    Raises:
        FeatureError: The sentence is longer than num_frames, or espeak-ng failed.
        ConfigError: As for `utterance`.
        MissingDependencyError: As for `utterance`.
    """
    return _utterance_log_mel(text, voice, rate_wpm, pitch, frame_rate_hz, n_mels, num_frames)


@functools.lru_cache(maxsize=4096)
def _utterance_log_mel(
    text: str, voice: str, rate_wpm: int, pitch: int, frame_rate_hz: float, n_mels: int, num_frames: int
) -> NDArray[np.float32]:
    spoken = utterance(text, voice=voice, rate_wpm=rate_wpm, pitch=pitch)
    room = math.ceil(num_frames * SAMPLE_RATE_HZ / frame_rate_hz)
    if spoken.waveform.size > room:
        needed = 1 + frame_count(
            spoken.waveform.size - 1, sample_rate_hz=SAMPLE_RATE_HZ, frame_rate_hz=frame_rate_hz
        )
        raise FeatureError(
            f"{text!r} spoken by {voice} at {rate_wpm} words per minute lasts {spoken.duration_s:.2f} s, "
            f"which is {needed} frames at {frame_rate_hz:g} Hz, but there is room for {num_frames}. "
            f"Raise num_frames to {needed}, raise rate_wpm, lower frame_rate_hz, or shorten the text."
        )
    padded = np.pad(spoken.waveform, (0, room - spoken.waveform.size))
    n_fft = max(512, 1 << math.ceil(math.log2(SAMPLE_RATE_HZ / frame_rate_hz)))
    frames = log_mel(
        padded, sample_rate_hz=SAMPLE_RATE_HZ, frame_rate_hz=frame_rate_hz, n_mels=n_mels, n_fft=n_fft
    )[:num_frames]
    frames.setflags(write=False)
    return frames


def _speak(text: str, voice: str, rate_wpm: int, pitch: int) -> NDArray[np.int16]:
    sound = synthesise(text, voice=voice, rate_wpm=rate_wpm, pitch=pitch)
    waveform = resample(
        sound.samples.astype(np.float32) / np.float32(32768),
        from_hz=sound.sample_rate_hz,
        to_hz=SAMPLE_RATE_HZ,
    )
    audible = np.flatnonzero(np.abs(waveform) > _SILENCE)
    if not audible.size:
        return np.zeros(0, np.int16)
    margin = round(_MARGIN_S * SAMPLE_RATE_HZ)
    trimmed = waveform[max(0, audible[0] - margin) : audible[-1] + 1 + margin]
    samples: NDArray[np.int16] = np.clip(np.rint(trimmed * 32768.0), -32768, 32767).astype(np.int16)
    return samples
