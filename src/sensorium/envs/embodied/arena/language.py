"""What the agent is told: sentences, spoken and written, as tables that are gathered by index."""

import functools

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ConfigError
from sensorium.envs.embodied.arena.config import COLORS, SHAPES
from sensorium.features.audio import LOG_MEL_FLOOR
from sensorium.features.speech import SAMPLE_RATE_HZ, utterance, utterance_log_mel

NAMING = (
    "go to the {color} {shape}",
    "find the {color} {shape}",
    "please go to the {color} {shape}",
    "touch the {color} {shape}",
)
"""Ways to name the target."""

LISTENING = ("go to the sound", "find what you hear", "please go to the sound", "listen and find it")
"""Ways to say that the target is the object that sounds."""

NUM_WORDINGS = len(NAMING)

SPEECH_FRAME_RATE_HZ = 40.0
SPEECH_MELS = 20
SPEECH_FRAMES = 80
"""Two seconds: the longest sentence at 120 words per minute, and some silence."""


def sentences(task: str) -> tuple[str, ...]:
    """Every sentence of a task, by index.

    Index (wording * len(COLORS) + color) * len(SHAPES) + shape in the tasks that name the target; the wording
    alone in `arena/listen`. The last one is empty: nothing is said.
    """
    if task == "arena/listen":
        return (*LISTENING, "")
    named = [way.format(color=color, shape=shape) for way in NAMING for color in COLORS for shape in SHAPES]
    return (*named, "")


@functools.lru_cache(maxsize=16)
def speech_table(task: str, voices: tuple[str, ...], rate_wpm: int, waveform: bool) -> NDArray[np.float32]:
    """Speak every sentence of a task with every voice.

    Args:
        task: Task name.
        voices: Voices of `sensorium.features.speech`.
        rate_wpm: Words per minute.
        waveform: Samples instead of log-mel frames.

    Returns:
        (sentences, voices, SPEECH_FRAMES, SPEECH_MELS) log-mel, silence being LOG_MEL_FLOOR, or
        (sentences, voices, samples) in [-1, 1]; read-only.

    Raises:
        ConfigError: A voice does not exist, or a sentence does not fit into the time there is.
    """
    num_samples = int(SPEECH_FRAMES * SAMPLE_RATE_HZ / SPEECH_FRAME_RATE_HZ)
    said = sentences(task)
    shape = (num_samples,) if waveform else (SPEECH_FRAMES, SPEECH_MELS)
    table = np.full((len(said), len(voices), *shape), 0.0 if waveform else LOG_MEL_FLOOR, np.float32)
    for row, text in enumerate(said[:-1]):
        for column, voice in enumerate(voices):
            spoken = utterance(text, voice=voice, rate_wpm=rate_wpm).waveform
            if spoken.size > num_samples:
                raise ConfigError(
                    f"{text!r} spoken by {voice} lasts {spoken.size / SAMPLE_RATE_HZ:.2f} s, but there are "
                    f"{num_samples / SAMPLE_RATE_HZ:g} s; raise the backend option rate_wpm, now {rate_wpm}."
                )
            if waveform:
                table[row, column, : spoken.size] = spoken
            else:
                table[row, column] = utterance_log_mel(
                    text,
                    voice=voice,
                    rate_wpm=rate_wpm,
                    frame_rate_hz=SPEECH_FRAME_RATE_HZ,
                    n_mels=SPEECH_MELS,
                    num_frames=SPEECH_FRAMES,
                )
    table.setflags(write=False)
    return table
