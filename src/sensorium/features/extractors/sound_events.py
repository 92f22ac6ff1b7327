"""When something is heard, and of what kind it is: loudness, pitch and texture, without any weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.features.extractors.audio_config import SoundEventsConfig
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.per_part import Found, extract_each
from sensorium.features.extractors.sound_frames import FRAME_S, RATE_HZ, SoundFrames, sound_frames
from sensorium.features.extractors.sound_labels import label_runs
from sensorium.features.extractors.waveform import decode_sound, has_sound
from sensorium.observations.base import Part


class SoundEvents:
    """Stretches of a sound in which something is heard, each with a cautious label.

    Labels are ``tone`` (with a steady ``pitch_hz``), ``tonal`` (a changing pitch, or several at once: melody,
    siren, chord), ``noise``, ``click`` (too short to say more), ``speech-like`` (voiced, with changes of
    texture and loudness; music and animals can be like that too) and ``mixed``.

    ``data``: ``duration_s``, ``active_s`` (seconds that are not silent), ``onsets_s`` (where loudness
    jumps up), and ``events`` (start_s, end_s, label, loudness_dbfs, peak_dbfs, and of
    tones pitch_hz and pitch_range_hz, else None), in order.

    Args:
        config: Thresholds.
    """

    name = "sound_events"

    def __init__(self, config: SoundEventsConfig | None = None) -> None:
        self.config = config or SoundEventsConfig()

    @property
    def version(self) -> str:
        """Changes with code and settings."""
        return f"1-{self.config.digest()}"

    def accepts(self, part: Part) -> bool:
        """Sounds."""
        return has_sound(part)

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """See `Extractor`."""
        return extract_each(self, parts, self._find)

    def _find(self, part: Part) -> Found:
        config = self.config
        waveform = decode_sound(part, rate_hz=RATE_HZ, max_duration_s=config.max_duration_s)
        duration_s = round(len(waveform) / RATE_HZ, 3)
        frames = sound_frames(waveform)
        events = [
            event
            for start, end in active_stretches(frames.level_dbfs, config)
            for event in _describe(frames, start, end)
        ]
        loudest = sorted(events, key=lambda event: -event["loudness_dbfs"])[: config.max_events]
        events = sorted(loudest, key=lambda event: event["start_s"])
        data = {
            "duration_s": duration_s,
            "active_s": round(sum(event["end_s"] - event["start_s"] for event in events), 2),
            "onsets_s": onsets(frames.level_dbfs, floor_dbfs=config.floor_dbfs),
            "events": events,
        }
        return Found(data, _summary(duration_s, events))


def active_stretches(levels: NDArray[np.float32], config: SoundEventsConfig) -> list[tuple[int, int]]:
    """Stretches of frames, end excluded, that stand out of the background.

    The background is the level that a tenth of the frames stays below. A sound that never becomes quiet has
    none: all of it that is within 25 dB of its peak counts.
    """
    if levels.size == 0:
        return []
    background, peak = float(np.percentile(levels, 10)), float(levels.max())
    threshold = background + config.above_noise_db
    if threshold > peak - 6.0:
        threshold = peak - 25.0
    threshold = max(threshold, config.floor_dbfs)
    is_active = np.concatenate([[False], levels > threshold, [False]])
    edges = np.flatnonzero(is_active[1:] != is_active[:-1]).reshape(-1, 2)
    merged: list[tuple[int, int]] = []
    for start, end in edges.tolist():
        if merged and (start - merged[-1][1]) * FRAME_S <= config.max_gap_s:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return [(start, end) for start, end in merged if (end - start) * FRAME_S >= config.min_duration_s]


def onsets(levels: NDArray[np.float32], *, floor_dbfs: float) -> list[float]:
    """Seconds at which the level rises by 12 dB or more within 60 ms, to above the floor; 0.1 s apart."""
    span = round(0.06 / FRAME_S)
    before = np.concatenate([np.full(span, -120.0, np.float32), levels])[: len(levels)]
    rises = np.flatnonzero((levels - np.maximum(before, floor_dbfs) >= 12.0) & (levels > floor_dbfs))
    times: list[float] = []
    last = -np.inf
    for frame in rises.tolist():
        if (frame - last) * FRAME_S > 0.1:
            times.append(round(frame * FRAME_S, 2))
        last = frame
    return times


def _describe(frames: SoundFrames, start: int, end: int) -> list[dict[str, Any]]:
    events = []
    for run_start, run_end, label, pitch_hz in label_runs(frames, start, end):
        levels = frames.level_dbfs[run_start:run_end]
        power = 10.0 ** (levels.astype(np.float64) / 10.0)
        events.append(
            {
                "start_s": round(run_start * FRAME_S, 2),
                "end_s": round(run_end * FRAME_S, 2),
                "label": label,
                "loudness_dbfs": round(float(10.0 * np.log10(power.mean())), 1),
                "peak_dbfs": round(float(levels.max()), 1),
                "pitch_hz": None if pitch_hz is None else pitch_hz[1],
                "pitch_range_hz": None if pitch_hz is None else [pitch_hz[0], pitch_hz[2]],
            }
        )
    return events


def _summary(duration_s: float, events: Sequence[dict[str, Any]]) -> str:
    """In words, e.g. ``2.0 s of sound: tone of 440 Hz 0.50-1.50 s (-9 dB)``; at most six events are named."""
    if not events:
        return f"{duration_s:.1f} s of silence"
    phrases = []
    for event in events[:6]:
        pitch = ""
        if event["pitch_hz"] is not None:
            low, high = event["pitch_range_hz"]
            is_tone = event["label"] == "tone"
            pitch = f" of {event['pitch_hz']:.0f} Hz" if is_tone else f", {low:.0f} to {high:.0f} Hz,"
        when = f"{event['start_s']:.2f}-{event['end_s']:.2f} s"
        phrases.append(f"{event['label']}{pitch} {when} ({event['loudness_dbfs']:.0f} dB)")
    more = f"; {len(events) - 6} more" if len(events) > 6 else ""
    return f"{duration_s:.1f} s of sound: {'; '.join(phrases)}{more}"
