"""What the agent is told, as text and as speech: computed once, picked by each episode's seed."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sensorium.core import derive_seed
from sensorium.envs.embodied.doom.config import DoomOptions
from sensorium.features import speech

FRAME_RATE_HZ = 40.0
"""Log-mel frames per second of `speech`."""

N_MELS = 20
"""Mel channels of `speech`."""


class Instructions:
    """The sentences of a scenario, and every voice that may speak them.

    Args:
        sentences: What may be said.
        choose: Which of the sentences is said in the episode of a seed. None: any, they mean the same.
        options: Voices and rate.
        waveform: Whether speech is a waveform (samples,) at 16 kHz instead of log-mel (frames, mels).
        num_envs: How many worlds.
        spoken: Whether speech is needed at all.

    Raises:
        ConfigError: A voice does not exist.
        MissingDependencyError: Speech is needed and the synthesiser is not installed.
    """

    def __init__(
        self,
        sentences: tuple[str, ...],
        options: DoomOptions,
        *,
        waveform: bool,
        num_envs: int,
        spoken: bool,
        choose: Callable[[int], int] | None = None,
    ) -> None:
        self.sentences = sentences
        self._choose = choose or (lambda seed: derive_seed(seed, "instruction") % len(sentences))
        self._voices = options.voices if spoken else ()
        self._sentence = np.zeros(num_envs, np.intp)
        self._voice = np.zeros(num_envs, np.intp)
        self._speech = self._speak(options.rate_wpm, waveform) if spoken else np.zeros((0, 0, 0), np.float32)

    def _speak(self, rate_wpm: int, waveform: bool) -> NDArray[np.float32]:
        """(sentences, voices, ...) padded with silence to the longest."""
        sounds = [
            [speech.utterance(text, voice=voice, rate_wpm=rate_wpm).waveform for voice in self._voices]
            for text in self.sentences
        ]
        longest = max(sound.size for row in sounds for sound in row)
        if waveform:
            return np.array([[np.pad(sound, (0, longest - sound.size)) for sound in row] for row in sounds])
        num_frames = math.ceil(longest * FRAME_RATE_HZ / speech.SAMPLE_RATE_HZ)
        return np.array(
            [
                [
                    speech.utterance_log_mel(
                        text,
                        voice=voice,
                        rate_wpm=rate_wpm,
                        frame_rate_hz=FRAME_RATE_HZ,
                        n_mels=N_MELS,
                        num_frames=num_frames,
                    )
                    for voice in self._voices
                ]
                for text in self.sentences
            ]
        )

    @property
    def speech_shape(self) -> tuple[int, ...]:
        """Shape of one spoken instruction."""
        return self._speech.shape[2:]

    def pick(self, world: int, seed: int) -> None:
        """Choose the sentence and the voice of a world's new episode."""
        self._sentence[world] = self._choose(seed)
        if self._voices:
            self._voice[world] = derive_seed(seed, "voice") % len(self._voices)

    def describe(self, world: int) -> dict[str, str]:
        """What one world was told and, where it was spoken, by which voice."""
        said = {"instruction": self.sentences[self._sentence[world]]}
        return said | {"voice": self._voices[self._voice[world]]} if self._voices else said

    def texts(self) -> list[str]:
        """The sentence of every world."""
        return [self.sentences[sentence] for sentence in self._sentence]

    def spoken(self) -> NDArray[np.float32]:
        """(N, ...) the spoken sentence of every world, a fresh array."""
        return self._speech[self._sentence, self._voice]
