"""Settings of the extractors that listen."""

from typing import Literal

from pydantic import Field, model_validator

from sensorium.core import Config


class TranscriptConfig(Config):
    """What is said."""

    engine: Literal["whisper", "pocketsphinx"] = "whisper"
    """`whisper` (faster-whisper) hears anything; `pocketsphinx` hears the sentences of a grammar only, in
    English, and is some ten times faster."""
    model: str = "whisper-base"
    """For whisper: the packaged model, a folder in CTranslate2 format, or a name on the hub."""
    language: str | None = None
    """For whisper: code such as ``en``; found out from the sound when not given."""
    beam_size: int = Field(default=1, ge=1, le=16)
    """Alternatives that whisper follows; 5 is a little better and slower."""
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    threads: int = Field(default=1, ge=1)
    """Threads that whisper computes with, on a CPU."""
    silence_dbfs: float = Field(default=-55.0, le=0.0)
    """A sound of which no 30 ms are louder than this is silence: its text is empty."""
    grammar: str = ""
    """For pocketsphinx: a grammar in JSGF; made from `commands` when not given."""
    commands: tuple[str, ...] = ()
    """Sentences that are expected; what was heard is compared with them and the nearest one reported."""
    min_similarity: float = Field(default=0.7, ge=0.0, le=1.0)
    """How similar what was heard must be to a command, 1 is equal."""
    max_duration_s: float = Field(default=600.0, gt=0.0)
    """Seconds from the beginning that are listened to."""

    @model_validator(mode="after")
    def _has_sentences(self) -> "TranscriptConfig":
        if self.engine == "pocketsphinx" and not (self.grammar.strip() or self.commands):
            raise ValueError("engine pocketsphinx needs a grammar (JSGF) or a list of commands")
        return self


class SoundEventsConfig(Config):
    """When something is heard, and of what kind it is."""

    floor_dbfs: float = Field(default=-60.0, le=0.0)
    """What is quieter than this is silence."""
    above_noise_db: float = Field(default=10.0, gt=0.0)
    """How far an event is above the background."""
    max_gap_s: float = Field(default=0.2, ge=0.0)
    """Pauses within an event, such as those between words, are at most this long."""
    min_duration_s: float = Field(default=0.02, gt=0.0)
    """Shorter events are left out."""
    max_events: int = Field(default=100, ge=1)
    """The loudest events are kept."""
    max_duration_s: float = Field(default=600.0, gt=0.0)
    """Seconds from the beginning that are listened to."""
