import base64
import io
import math
import wave
from typing import Any

import numpy as np
import pytest
import soundfile
from plain_counter import PlainCounter

from sensorium.core import Modality
from sensorium.features.extractors.base import Features
from sensorium.llm.messages import AudioBlock, TextBlock
from sensorium.observations.audio import read_audio
from sensorium.observations.base import Part
from sensorium.observations.values import AudioValue, TextValue
from sensorium.representations.base import Level, Variant
from sensorium.representations.config import AudioConfig
from sensorium.representations.media.audio import audio_variants, describe_sound, duration_text

RATE = 16_000
COUNTER = PlainCounter()
NATIVE = AudioConfig(encoding="native")


def part_of(seconds: float = 2.0, channels: int = 1, form: str = "WAV", subtype: str | None = None) -> Part:
    samples = 0.5 * np.sin(2 * np.pi * 440 * np.arange(int(seconds * RATE)) / RATE)
    buffer = io.BytesIO()
    soundfile.write(buffer, np.repeat(samples[:, None], channels, axis=1), RATE, format=form, subtype=subtype)
    (part,) = read_audio(buffer.getvalue(), part_id="speech")
    return part


def feature(name: str, unavailable: str | None = None, **data: Any) -> Features:
    return Features(part_id="speech", extractor=name, version="1", data=data, unavailable=unavailable)


HEARD = {
    "transcript": feature(
        "transcript",
        text="turn left then stop",
        segments=[
            {"start_s": 0.0, "end_s": 0.8, "text": " turn left "},
            {"start_s": 1.2, "end_s": 2.0, "text": "then stop"},
        ],
    ),
    "sound_events": feature(
        "sound_events", events=[{"start_s": 0.9, "end_s": 1.1, "label": "knock", "loudness_dbfs": -12.3}]
    ),
}


def text_of(variant: Variant) -> str:
    (block,) = variant.blocks
    assert isinstance(block, TextBlock)
    assert variant.tokens == COUNTER.text(block.text)
    return block.text


@pytest.mark.parametrize(
    ("channels", "form", "subtype", "sent"),
    [(1, "WAV", "PCM_24", 1), (2, "FLAC", None, 2), (6, "WAV", "FLOAT", 1), (1, "MP3", None, 1)],
)
def test_the_waveform_is_sent_as_16_bit_wav(channels: int, form: str, subtype: str | None, sent: int) -> None:
    full, line = audio_variants(part_of(2.0, channels, form, subtype), NATIVE, COUNTER, {})
    block = full.blocks[-1]
    assert isinstance(block, AudioBlock)
    with wave.open(io.BytesIO(base64.b64decode(block.data))) as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (RATE, 2, sent)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert np.abs(samples).max() == pytest.approx(2**14, rel=0.1)
    assert block.duration_s == pytest.approx(2.0, abs=0.1)
    assert (full.level, full.retained) == (Level.FULL, 1.0)
    assert ("mixed" in full.why) == (channels == 6)
    assert line.level is Level.SUMMARY


def test_a_long_waveform_is_cut_and_that_is_said() -> None:
    config = AudioConfig(encoding="native", max_seconds=0.5)
    full = audio_variants(part_of(2.0), config, COUNTER, {})[0]
    note, block = full.blocks
    assert note == TextBlock(text="[the first 0.5 s of 2 s]")
    assert isinstance(block, AudioBlock)
    assert block.duration_s == 0.5
    assert full.retained == 0.25
    assert full.tokens == 5 + COUNTER.text("[the first 0.5 s of 2 s]")


def test_what_was_heard_is_told_in_the_order_of_time() -> None:
    full, line = audio_variants(part_of(), AudioConfig(), COUNTER, HEARD)
    assert text_of(full).splitlines() == [
        "sound, 2 s, mono, 16,000 Hz, loudness -9 dBFS, peak -6 dBFS, 0 % silence",
        "[0.0-0.8 s] says: turn left",
        "[0.9-1.1 s] sound: knock (-12 dBFS)",
        "[1.2-2.0 s] says: then stop",
    ]
    assert (full.level, full.retained) == (Level.FULL, 1.0)
    assert text_of(line) == text_of(full).splitlines()[0]
    native = audio_variants(part_of(), NATIVE, COUNTER, HEARD)
    assert [v.level for v in native] == [Level.FULL, Level.SUMMARY, Level.SUMMARY]
    assert text_of(native[1]) == text_of(full)
    assert 1.0 > native[1].retained > native[2].retained
    only_text = {"transcript": feature("transcript", text="hello")}
    assert text_of(audio_variants(part_of(), AudioConfig(), COUNTER, only_text)[0]).endswith("says: hello")


def test_where_nothing_was_heard_the_measures_and_the_reason_are_told() -> None:
    missing = {"transcript": feature("transcript", unavailable="faster-whisper is not installed")}
    (line,) = audio_variants(part_of(), AudioConfig(), COUNTER, missing)
    assert "faster-whisper is not installed" in text_of(line)
    assert "faster-whisper" in line.why
    (silent,) = read_audio((np.zeros(RATE), RATE), part_id="speech")
    (line,) = audio_variants(silent, AudioConfig(), COUNTER, {})
    assert text_of(line) == "sound, 1 s, mono, 16,000 Hz, silent throughout"


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ({"peak_dbfs": -math.inf, "loudness_dbfs": -math.inf, "silence_share": 1.0}, ", silent throughout"),
        ({"peak_dbfs": -3.2, "loudness_dbfs": -math.inf}, ", peak -3 dBFS"),
        ({"peak_dbfs": -math.inf, "loudness_dbfs": None}, ""),
    ],
)
def test_levels_that_others_write_as_infinite_are_left_out(levels: dict[str, float], said: str) -> None:
    value = AudioValue(data=b"", rate_hz=16_000, channels=1, duration_s=1.0, **levels)
    assert describe_sound(value) == f"sound, 1 s, mono, 16,000 Hz{said}"


@pytest.mark.parametrize(
    "data",
    [
        {"segments": None},
        {"segments": [None, 3, {"start_s": "x", "text": None}]},
        {"text": 5, "segments": "abc"},
        {},
    ],
)
def test_features_of_another_form_never_raise(data: dict[str, Any]) -> None:
    for name in ("transcript", "sound_events"):
        assert audio_variants(part_of(0.1), AudioConfig(), COUNTER, {name: feature(name, **data)})


def test_a_sound_that_cannot_be_decoded_is_told_by_its_measures() -> None:
    value = AudioValue(data=b"nothing", rate_hz=8_000, channels=1, duration_s=1.0)
    (line,) = audio_variants(Part(id="s", modality=Modality.AUDIO, value=value), NATIVE, COUNTER, {})
    assert "no sound that can be read" in text_of(line)
    with pytest.raises(TypeError, match="not a sound"):
        audio_variants(Part(id="s", modality=Modality.TEXT, value=TextValue(text="x")), NATIVE, COUNTER, {})


def test_durations_in_words() -> None:
    assert [duration_text(s) for s in (0.5, 12.43, 187, 3729, 59.999)] == [
        "0.5 s",
        "12.4 s",
        "3:07 min",
        "1:02:09 h",
        "60 s",
    ]


def test_what_must_be_known_of_a_sound_is_said() -> None:
    part = read_audio((np.zeros(800, np.float32), 8_000), part_id="a")[0]
    part = part.model_copy(update={"notes": ("the first 10 of 20 bytes were read",)})
    (variant,) = audio_variants(part, AudioConfig(), COUNTER, {})
    (block,) = variant.blocks
    assert isinstance(block, TextBlock)
    assert "the first 10 of 20 bytes were read" in block.text
