"""The ways to present a sound: the waveform itself, what was heard in words, or its measures."""

import base64
import math
from collections.abc import Mapping
from typing import Any

from sensorium.core import MissingDependencyError, ObservationError
from sensorium.features.extractors.base import Features
from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import AnyBlock, AudioBlock, TextBlock
from sensorium.observations.audio import decode_samples, encode_wav
from sensorium.observations.base import Part
from sensorium.observations.values import AudioValue
from sensorium.representations.base import Level, Variant
from sensorium.representations.config import AudioConfig

HEARD_RETAINED = 0.7
"""What transcript and events keep of a sound: the words, not voice and tone."""

EVENTS_RETAINED = 0.4
"""What events alone keep."""

MEASURES_RETAINED = 0.1
"""What length, loudness and silence keep."""

_MAX_CHANNELS = 2


def audio_variants(
    part: Part, config: AudioConfig, counter: TokenCounter, features: Mapping[str, Features]
) -> list[Variant]:
    """Build all variants of a sound, from whole to its measures.

    - FULL with ``encoding: native``: the waveform as 16-bit WAV of one or two channels, the first
      `max_seconds` of it; `why` and a line before it say when it was cut.
    - FULL with ``encoding: transcript``: transcript and sound events, in time order, from the extractors
      ``transcript`` and ``sound_events``. With ``native`` the same is a SUMMARY.
    - SUMMARY: the measures in one line, and why nothing was heard when an extractor was unavailable.

    Args:
        part: One with an `AudioValue`.
        config: Limits and encoding.
        counter: Counts sounds by its model's rule.
        features: ``transcript`` with data ``{"text", "segments": [{"start_s", "end_s", "text"}]}`` and
            ``sound_events`` with ``{"events": [{"start_s", "end_s", "label", "loudness_dbfs"}]}``, each where
            there is one. Entries of another form are left out.

    Returns:
        At least one variant, the most telling first.

    Raises:
        TypeError: The part is no sound.
    """
    value = part.value
    if not isinstance(value, AudioValue):
        raise TypeError(f"{part.id} is {value.kind}, not a sound.")
    variants: list[Variant] = []
    problem = ""
    if config.encoding == "native":
        try:
            variants.append(_waveform(value, config, counter))
        except (ObservationError, MissingDependencyError) as error:
            problem = str(error)
    heard = _heard(features)
    line = "; ".join([describe_sound(value), *part.notes])
    if heard:
        text = "\n".join([line, *heard])
        has_words = bool(_spoken(features))
        level = Level.SUMMARY if variants else Level.FULL
        share = 1.0 if level is Level.FULL else HEARD_RETAINED if has_words else EVENTS_RETAINED
        why = "transcript and events" if has_words else "sound events; no words were heard"
        variants.append(Variant(level, (TextBlock(text=text),), counter.text(text), share, why))
    reason = problem or ("" if heard else _why_nothing_heard(features))
    line += f". {reason}" if reason else ""
    why = f"length and loudness only{f'; {reason}' if reason else ''}"
    variants.append(
        Variant(Level.SUMMARY, (TextBlock(text=line),), counter.text(line), MEASURES_RETAINED, why)
    )
    return variants


def describe_sound(value: AudioValue) -> str:
    """One line, e.g. ``sound, 12.4 s, mono, 16,000 Hz, loudness -23 dBFS, peak -3 dBFS, 35 % silence``."""
    channels = {1: "mono", 2: "stereo"}.get(value.channels, f"{value.channels} channels")
    pieces = ["sound", duration_text(value.duration_s), channels, f"{value.rate_hz:,} Hz"]
    # Silence has no level; others write it as minus infinity.
    levels = {"loudness": value.loudness_dbfs, "peak": value.peak_dbfs}
    finite = {name: level for name, level in levels.items() if level is not None and math.isfinite(level)}
    if not finite:
        if value.silence_share is not None:
            pieces.append("silent throughout")
    else:
        pieces += [f"{name} {round(level)} dBFS" for name, level in finite.items()]
        if value.silence_share is not None:
            pieces.append(f"{100 * value.silence_share:.0f} % silence")
    return ", ".join(pieces)


def duration_text(seconds: float) -> str:
    """``0.5 s``, ``12.4 s``, ``3:07 min``, ``1:02:09 h``; of what is no number ``unknown length``."""
    if not math.isfinite(seconds):
        return "unknown length"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} min"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d} h"


def _waveform(value: AudioValue, config: AudioConfig, counter: TokenCounter) -> Variant:
    samples = decode_samples(value, max_seconds=config.max_seconds)
    if not len(samples):
        raise ObservationError("the sound has no samples")
    notes = []
    if samples.shape[1] > _MAX_CHANNELS:
        samples = samples.mean(axis=1, keepdims=True)
        notes.append(f"{value.channels} channels mixed to one")
    duration_s = len(samples) / value.rate_hz
    retained = 1.0
    if duration_s + 1.0 / value.rate_hz < value.duration_s:
        retained = duration_s / value.duration_s
        notes.append(f"the first {duration_text(duration_s)} of {duration_text(value.duration_s)}")
    data = base64.b64encode(encode_wav(samples, value.rate_hz)).decode("ascii")
    blocks: tuple[AnyBlock, ...] = (AudioBlock(data=data, format="wav", duration_s=duration_s),)
    tokens = counter.audio(duration_s)
    why = "; ".join(notes)
    if why:
        blocks = (TextBlock(text=f"[{why}]"), *blocks)
        tokens += counter.text(f"[{why}]")
    return Variant(Level.FULL, blocks, tokens, retained, why)


def _data(features: Mapping[str, Features], name: str) -> dict[str, Any]:
    found = features.get(name)
    return {} if found is None or found.unavailable is not None else found.data


def _heard(features: Mapping[str, Features]) -> list[str]:
    """Utterances and sound events in time order."""
    timed = _spoken(features)
    for entry in _entries(_data(features, "sound_events"), "events"):
        label = str(entry.get("label", "")).strip()
        if label:
            loudness = entry.get("loudness_dbfs")
            level = f" ({loudness:.0f} dBFS)" if isinstance(loudness, int | float) else ""
            timed.append((_number(entry, "start_s"), f"{_stretch(entry)} sound: {label}{level}"))
    return [text for _, text in sorted(timed, key=lambda pair: pair[0])]


def _spoken(features: Mapping[str, Features]) -> list[tuple[float, str]]:
    """Utterances with the time at which they begin."""
    transcript = _data(features, "transcript")
    timed = []
    for entry in _entries(transcript, "segments"):
        text = str(entry.get("text", "")).strip()
        if text:
            timed.append((_number(entry, "start_s"), f"{_stretch(entry)} says: {text}"))
    whole = str(transcript.get("text") or "").strip()
    return timed if timed or not whole else [(0.0, f"says: {whole}")]


def _why_nothing_heard(features: Mapping[str, Features]) -> str:
    reasons = [f"{name}: {found.unavailable}" for name, found in features.items() if found.unavailable]
    return "; ".join(reasons)


def _entries(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    entries = data.get(key)
    return [e for e in entries if isinstance(e, Mapping)] if isinstance(entries, list | tuple) else []


def _number(entry: Mapping[str, Any], key: str) -> float:
    value = entry.get(key)
    return float(value) if isinstance(value, int | float) else 0.0


def _stretch(entry: Mapping[str, Any]) -> str:
    return f"[{_number(entry, 'start_s'):.1f}-{_number(entry, 'end_s'):.1f} s]"
