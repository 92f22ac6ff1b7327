"""Speech to text, by whisper or by a grammar; silence is no text."""

import functools
from collections.abc import Sequence
from typing import Any

from sensorium.features.extractors.audio_config import TranscriptConfig
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.commands import nearest_command
from sensorium.features.extractors.grammar import GrammarRecogniser
from sensorium.features.extractors.per_part import Found, extract_each
from sensorium.features.extractors.recognition import RATE_HZ, Recogniser, SpokenText
from sensorium.features.extractors.waveform import decode_sound, frame_levels, has_sound
from sensorium.features.extractors.whisper import WhisperRecogniser
from sensorium.observations.base import Part


class Transcript:
    """What is said in a sound.

    ``data``: ``text``, ``segments`` (start_s, end_s, text), ``language`` (None in silence), and with a list
    of commands ``command`` (the nearest one, or None) and ``command_similarity``. `summary` is the command
    when one was recognised, else the text.

    Args:
        config: Engine, model, and commands.
    """

    name = "transcript"

    def __init__(self, config: TranscriptConfig | None = None) -> None:
        self.config = config or TranscriptConfig()
        is_whisper = self.config.engine == "whisper"
        self._recogniser: Recogniser = (
            WhisperRecogniser(self.config) if is_whisper else GrammarRecogniser(self.config)
        )

    @functools.cached_property
    def version(self) -> str:
        """Changes with code, settings, engine and weights."""
        return f"1-{self.config.digest(exclude={'threads'})}-{self._recogniser.version}"

    def accepts(self, part: Part) -> bool:
        """Sounds."""
        return has_sound(part)

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """See `Extractor`; sounds are listened to one after the other."""
        return extract_each(self, parts, self._find)

    def _find(self, part: Part) -> Found:
        config = self.config
        waveform = decode_sound(part, rate_hz=RATE_HZ, max_duration_s=config.max_duration_s)
        levels = frame_levels(waveform, rate_hz=RATE_HZ, frame_s=0.03)
        if levels.size == 0 or float(levels.max()) <= config.silence_dbfs:
            spoken = SpokenText((), None)
        else:
            spoken = self._recogniser.recognise(waveform)
        text = " ".join(segment.text for segment in spoken.segments)
        data: dict[str, Any] = {
            "text": text,
            "segments": [segment._asdict() for segment in spoken.segments],
            "language": spoken.language,
        }
        if not config.commands:
            return Found(data, text)
        match = nearest_command(text, config.commands, min_similarity=config.min_similarity)
        data |= {
            "command": None if match is None else match.command,
            "command_similarity": None if match is None else match.similarity,
        }
        return Found(data, text if match is None else match.command)
