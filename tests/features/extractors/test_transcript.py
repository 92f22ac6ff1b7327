from pathlib import Path
from typing import Any

import numpy as np
import pytest
from media_parts import picture_part, sound_part, text_part, weights
from numpy.typing import NDArray

from sensorium.core import ConfigError, MissingDependencyError, parse_config
from sensorium.features.espeak import synthesise
from sensorium.features.extractors.audio_config import TranscriptConfig
from sensorium.features.extractors.base import Extractor, Features
from sensorium.features.extractors.commands import nearest_command, plain_words
from sensorium.features.extractors.grammar import commands_grammar
from sensorium.features.extractors.recognition import SpokenSegment, SpokenText
from sensorium.features.extractors.transcript import Transcript
from sensorium.observations.base import Part

COMMANDS = (
    "turn left",
    "go to the red ball",
    "pick up the blue box",
    "stop",
    "open the green door",
    "move forward two meters",
    "drop the object on the table",
    "find the yellow key",
    "follow the wall on the right",
    "return to the start",
)


def spoken(text: str, voice: str = "en-us") -> Part:
    sound = synthesise(text, voice=voice, rate_wpm=130, pitch=50)
    return sound_part(sound.samples / 32768.0, sound.sample_rate_hz, text)


def not_speech() -> dict[str, NDArray[np.float64]]:
    time = np.arange(32_000) / 16_000
    generator = np.random.default_rng(0)
    return {
        "silence": np.zeros(32_000),
        "nothing": np.zeros(0),
        "hiss": 0.0005 * generator.normal(size=32_000),
        "noise": 0.1 * generator.normal(size=32_000),
        "tone": 0.3 * np.sin(2 * np.pi * 440 * time),
    }


class Scripted:
    """A recogniser that hears what it is told to."""

    version = "scripted"

    def __init__(self, *texts: str) -> None:
        self.texts, self.heard = list(texts), 0

    def recognise(self, waveform: NDArray[np.float32]) -> SpokenText:
        self.heard += 1
        return SpokenText((SpokenSegment(0.1, 0.5, self.texts.pop(0)),), "en")


def scripted(*texts: str, **settings: Any) -> tuple[Transcript, Scripted]:
    transcript, recogniser = Transcript(TranscriptConfig(**settings)), Scripted(*texts)
    transcript._recogniser = recogniser
    return transcript, recogniser


def test_silence_is_never_handed_to_a_recogniser() -> None:
    transcript, recogniser = scripted("thank you for watching")
    sounds = not_speech()
    for name in ("silence", "nothing", "hiss"):
        (features,) = transcript([sound_part(sounds[name])])
        assert features.data == {"text": "", "segments": [], "language": None}
        assert features.summary == ""
        assert features.unavailable is None
    assert recogniser.heard == 0


def test_what_was_heard_is_told() -> None:
    transcript, _ = scripted("Hello there.")
    (features,) = transcript([sound_part(not_speech()["tone"])])
    assert features.data["segments"] == [{"start_s": 0.1, "end_s": 0.5, "text": "Hello there."}]
    assert features.summary == features.data["text"] == "Hello there."
    assert "command" not in features.data


def test_it_is_snapped_to_the_nearest_command() -> None:
    tone = sound_part(not_speech()["tone"])
    transcript, _ = scripted("Drop the knob, get on the table.", "The weather is fine.", commands=COMMANDS)
    first, second = transcript([tone]), transcript([tone])
    assert first[0].data["command"] == first[0].summary == "drop the object on the table"
    assert first[0].data["text"] == "Drop the knob, get on the table."
    assert second[0].data["command"] is None
    assert second[0].summary == "The weather is fine."


def test_a_broken_file_does_not_hinder_the_others() -> None:
    transcript, _ = scripted("Hello.")
    results = transcript([sound_part(b"RIFF\x10nonsense"), sound_part(not_speech()["tone"])])
    assert "cannot be decoded" in str(results[0].unavailable)
    assert " at 0x" not in str(results[0].unavailable)
    assert results[1].summary == "Hello."


def test_the_protocol() -> None:
    transcript = Transcript()
    assert isinstance(transcript, Extractor)
    assert transcript.accepts(sound_part(np.zeros(10)))
    assert not transcript.accepts(picture_part(np.zeros((4, 4, 3), np.uint8)))
    assert not transcript.accepts(text_part())
    versions = [Transcript(TranscriptConfig(**one)).version for one in ({}, {"beam_size": 5}, {"threads": 2})]
    assert versions[0] == versions[2] != versions[1]


def test_similarity_by_hand() -> None:
    match = nearest_command("TURN, left!", ("turn right", "turn left"), min_similarity=0.7)
    assert match == ("turn left", 1.0)
    # "turn lift": words 2 * 1 / 4 = 0.5, letters 2 * 8 / 18 = 0.889; together 0.694.
    assert nearest_command("turn lift", ("turn left",), min_similarity=0.6) == ("turn left", 0.694)
    assert nearest_command("turn lift", ("turn left",), min_similarity=0.7) is None
    assert nearest_command("...", ("turn left",), min_similarity=0.0) is None
    assert nearest_command("go", (), min_similarity=0.0) is None
    assert nearest_command("move 2 meters", ("move two meters",), min_similarity=0.9) == (
        "move two meters",
        1.0,
    )
    assert plain_words("It's 12 o'clock, 3!") == ("it's", "12", "o'clock", "three")


def test_pocketsphinx_needs_sentences() -> None:
    with pytest.raises(ConfigError, match="grammar"):
        parse_config(TranscriptConfig, {"engine": "pocketsphinx"})


def by_grammar(**settings: Any) -> Transcript:
    pytest.importorskip("pocketsphinx", reason="pocketsphinx is not installed")
    return Transcript(TranscriptConfig(engine="pocketsphinx", **settings))


def test_a_grammar_hears_its_sentences() -> None:
    transcript = by_grammar(commands=COMMANDS)
    results = transcript([spoken(command) for command in COMMANDS])
    assert sum(one.data["command"] == one.part_id for one in results) >= 9
    heard = results[1].data
    assert heard["text"] == "go to the red ball"
    assert heard["language"] == "en"
    (segment,) = heard["segments"]
    assert 0.0 <= segment["start_s"] < 0.4 < 0.8 < segment["end_s"] < 2.0
    for name, waveform in not_speech().items():
        assert transcript([sound_part(waveform)])[0].summary == "", name


def test_a_grammar_of_ones_own() -> None:
    grammar = (
        "#JSGF V1.0; grammar moves; /* turns */ public <move> = <verb> (left | right) {side}; <verb> = turn;"
    )
    (features,) = by_grammar(grammar=grammar)([spoken("turn left")])
    assert features.data["text"] == "turn left"


def test_a_grammar_with_faults() -> None:
    (unknown,) = by_grammar(commands=("grab the zorblax",))([spoken("stop")])
    assert "zorblax" in str(unknown.unavailable)
    (broken,) = by_grammar(grammar="public <move> = (turn left;")([spoken("stop")])
    assert "JSGF" in str(broken.unavailable)


def test_a_grammar_of_commands() -> None:
    assert commands_grammar(("Turn left!", "Go 2 steps")) == (
        "#JSGF V1.0; grammar commands; public <command> = turn left | go two steps;"
    )


def whisper(**settings: Any) -> Transcript:
    pytest.importorskip("faster_whisper", reason="faster-whisper is not installed")
    weights("whisper-base")
    return Transcript(TranscriptConfig(language="en", **settings))


def _exact(features: Features) -> bool:
    return plain_words(features.data["text"]) == plain_words(features.part_id)


def test_whisper_hears_a_sentence_and_no_others() -> None:
    transcript = whisper()
    (features,) = transcript([spoken("pick up the blue box")])
    assert _exact(features)
    assert features.data["language"] == "en"
    (segment,) = features.data["segments"]
    assert 0.0 <= segment["start_s"] < segment["end_s"] <= 2.5
    for name, waveform in not_speech().items():
        assert transcript([sound_part(waveform)])[0].data["text"] == "", name


@pytest.mark.slow
def test_whisper_hears_ten_commands() -> None:
    results = whisper(commands=COMMANDS)([spoken(command) for command in COMMANDS])
    assert sum(_exact(one) for one in results) >= 9
    assert sum(one.data["command"] == one.part_id for one in results) == 10


def test_a_whisper_model_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("faster_whisper", reason="faster-whisper is not installed")
    (tmp_path / "model.bin").write_bytes(b"nonsense")
    with pytest.raises(MissingDependencyError, match="cannot be loaded"):
        Transcript(TranscriptConfig(model=str(tmp_path)))([sound_part(not_speech()["tone"])])
    with pytest.raises(MissingDependencyError, match="no such folder"):
        Transcript(TranscriptConfig(model="/nowhere"))([sound_part(not_speech()["tone"])])
