"""Cautious names for stretches of sound, from pitch, evenness and the rhythm of loudness."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.features.extractors.sound_frames import FRAME_S, SoundFrames

_CLICK_S = 0.08
_SPEECH_S = 0.25
_RUN_S = 0.2
_PAUSE_DB = 35.0
_TONAL, _NOISY, _BETWEEN = 0, 1, 2


class Run(NamedTuple):
    """Frames with one label, end excluded, and the 10th, 50th and 90th percentile of a tone's pitch."""

    start: int
    end: int
    label: str
    pitch_hz: tuple[float, float, float] | None


def label_runs(frames: SoundFrames, start: int, end: int) -> list[Run]:
    """Name a stretch of activity: as one when it is short or like speech, else by runs of one texture.

    Args:
        frames: Measures of the whole sound.
        start: First frame of the stretch.
        end: Frame after its last.
    """
    if (end - start) * FRAME_S <= _CLICK_S:
        return [Run(start, end, "click", None)]
    if is_speech_like(frames, start, end):
        return [Run(start, end, "speech-like", None)]
    textures = _smoothed(_textures(frames, start, end))
    cuts = [0, *(np.flatnonzero(np.diff(textures)) + 1).tolist(), len(textures)]
    runs = []
    for first, last in pairwise(cuts):
        label, pitch_hz = _label(frames, start + first, start + last, int(textures[first]))
        runs.append(Run(start + first, start + last, label, pitch_hz))
    return runs


def is_speech_like(frames: SoundFrames, start: int, end: int) -> bool:
    """Whether a stretch has what speech has: voiced pieces, and changes of texture and loudness.

    All of: at least a quarter of a second; 15 % or more of the frames voiced (periodic, below 450 Hz); a
    spectrum that changes from frame to frame, and over time; and a loudness that goes up and down.
    """
    if (end - start) * FRAME_S < _SPEECH_S:
        return False
    levels = frames.level_dbfs[start:end]
    pitch, height = frames.pitch_hz[start:end], frames.periodicity[start:end]
    is_loud = levels > levels.max() - 30.0
    is_voiced = is_loud & (height > 0.55) & ~(pitch >= 450.0)  # NaN: a fundamental too weak to tell
    voiced = float(is_voiced.sum()) / max(1, int(is_loud.sum()))
    if voiced < 0.15:
        return False
    mel = frames.log_mel[start:end]
    shape = mel - mel.mean(axis=1, keepdims=True)
    change = np.abs(np.diff(shape, axis=0)).mean(axis=1)[is_loud[1:]]
    swing = float(np.percentile(levels[is_loud], 95) - np.percentile(levels[is_loud], 10))
    spread = float(np.std(shape[is_loud], axis=0).mean())
    return bool(change.size and float(np.median(change)) > 0.3 and swing > 5.0 and spread > 1.2)


def _textures(frames: SoundFrames, start: int, end: int) -> NDArray[np.int64]:
    height, flatness = frames.periodicity[start:end], frames.flatness[start:end]
    is_tonal = (height > 0.75) & (flatness < 0.4)
    is_noisy = (height < 0.5) & (flatness > 0.1)
    textures = np.where(is_tonal, _TONAL, np.where(is_noisy, _NOISY, _BETWEEN))
    # A pause within the stretch has no texture: what was before it goes on.
    level = frames.level_dbfs[start:end]
    last_loud = np.maximum.accumulate(np.where(level > level.max() - _PAUSE_DB, np.arange(len(level)), 0))
    return textures[last_loud]


def _smoothed(textures: NDArray[np.int64]) -> NDArray[np.int64]:
    """Runs shorter than 0.2 s take the texture of the longer neighbour, the shortest first."""
    textures = textures.copy()
    shortest_allowed = round(_RUN_S / FRAME_S)
    while True:
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(textures)) + 1, [len(textures)]])
        lengths = np.diff(cuts)
        if len(lengths) == 1 or lengths.min() >= shortest_allowed:
            return textures
        run = int(lengths.argmin())
        left = lengths[run - 1] if run > 0 else -1
        right = lengths[run + 1] if run + 1 < len(lengths) else -1
        other = cuts[run] - 1 if left >= right else cuts[run + 1]
        textures[cuts[run] : cuts[run + 1]] = textures[other]


def _label(
    frames: SoundFrames, start: int, end: int, texture: int
) -> tuple[str, tuple[float, float, float] | None]:
    if texture == _NOISY:
        return "noise", None
    if texture == _BETWEEN:
        return "mixed", None
    pitch = frames.pitch_hz[start:end][frames.periodicity[start:end] > 0.6]
    known = pitch[np.isfinite(pitch)]
    level = frames.level_dbfs[start:end]
    if known.size < 0.5 * int((level > level.max() - _PAUSE_DB).sum()):
        return "tonal", None
    low, middle, high = (round(float(value), 1) for value in np.percentile(known, [10, 50, 90]))
    is_steady = high < 1.06 * low  # about a semitone
    return ("tone" if is_steady else "tonal"), (low, middle, high)
