import io
import math
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.core import Modality
from sensorium.observations import audio
from sensorium.observations.audio import decode_samples, encode_wav, read_audio
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.values import AudioValue, ProblemValue

RATE = 16_000


def tone(seconds: float = 0.5, channels: int = 1, amplitude: float = 0.5) -> np.ndarray:
    """(frames, channels) of 440 Hz."""
    wave_ = amplitude * np.sin(2 * np.pi * 440 * np.arange(int(seconds * RATE)) / RATE)
    return np.repeat(wave_[:, None], channels, axis=1).astype(np.float32)


def file_of(samples: np.ndarray, form: str = "WAV", subtype: str | None = None, rate: int = RATE) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=form, subtype=subtype)
    return buffer.getvalue()


def read(raw: Any, **settings_: Any) -> tuple[AudioValue, Part]:
    (part,) = read_audio(raw, part_id="speech", **settings_)
    assert isinstance(part.value, AudioValue), part.value
    assert (part.id, part.modality) == ("speech", Modality.AUDIO)
    return part.value, part


def refused(raw: Any, **settings_: Any) -> ProblemValue:
    (part,) = read_audio(raw, part_id="speech", **settings_)
    assert isinstance(part.value, ProblemValue), part.value
    return part.value


@pytest.mark.parametrize(
    ("form", "subtype", "mime"),
    [
        ("WAV", "PCM_U8", "audio/wav"),
        ("WAV", "PCM_16", "audio/wav"),
        ("WAV", "PCM_24", "audio/wav"),
        ("WAV", "PCM_32", "audio/wav"),
        ("WAV", "FLOAT", "audio/wav"),
        ("WAV", "DOUBLE", "audio/wav"),
        ("WAVEX", "PCM_24", "audio/wav"),
        ("FLAC", "PCM_16", "audio/flac"),
        ("OGG", "VORBIS", "audio/ogg"),
        ("OGG", "OPUS", "audio/ogg"),
        ("MP3", "MPEG_LAYER_III", "audio/mpeg"),
    ],
)
def test_a_file_in_order_keeps_its_bytes_and_is_measured(form: str, subtype: str, mime: str) -> None:
    data = file_of(tone(channels=2), form, subtype)
    value, part = read(data)
    assert value.data == data
    assert part.notes == ()
    assert (value.mime, value.rate_hz, value.channels) == (mime, RATE, 2)
    assert value.duration_s == pytest.approx(0.5, abs=0.1 if form == "MP3" else 1e-6)
    # A sine of amplitude 0.5: peak -6.02 dBFS, root mean square 3.01 dB below.
    assert value.peak_dbfs == pytest.approx(-6.02, abs=2.5 if subtype == "OPUS" else 0.8)
    assert value.loudness_dbfs == pytest.approx(-9.03, abs=0.8)
    assert value.silence_share == pytest.approx(0.0, abs=0.25)
    assert Part.model_validate_json(part.model_dump_json()) == part
    assert np.abs(decode_samples(value)[1_000:7_000] - tone(channels=2)[1_000:7_000]).max() < 0.2 or form in (
        "OGG",
        "MP3",
    )


def test_measures_worked_out_by_hand() -> None:
    # A second of full scale, a second of nothing.
    samples = np.concatenate([np.ones(RATE), np.zeros(RATE)])
    value, _ = read((samples, RATE))
    assert value.peak_dbfs == 0.0
    assert value.loudness_dbfs == pytest.approx(10 * math.log10(0.5))
    assert value.silence_share == 0.5
    assert value.duration_s == 2.0
    value, _ = read((np.zeros(RATE), RATE))
    assert (value.peak_dbfs, value.loudness_dbfs, value.silence_share) == (None, None, 1.0)
    # 0.001 is -60 dBFS: silent; 0.01 is -40 dBFS: not.
    assert read((np.full(RATE, 0.001), RATE))[0].silence_share == 1.0
    assert read((np.full(RATE, 0.01), RATE))[0].silence_share == 0.0


@pytest.mark.parametrize(
    "samples",
    [
        np.full(100, 0.5),
        np.full((100, 1), 0.5, np.float32),
        np.full((100, 3), 0.5),
        np.full((3, 100), 0.5),
        np.full(100, 2**14, np.int16),
        np.full(100, 2**30, np.int32),
        np.full(100, 192, np.uint8),
        np.full(100, 64, np.int8),
    ],
)
def test_arrays_of_every_shape_and_type(samples: np.ndarray) -> None:
    value, part = read((samples, 8_000))
    assert value.channels == (1 if samples.size == 100 else 3)
    assert value.duration_s == 100 / 8_000
    assert part.notes == ()
    np.testing.assert_allclose(decode_samples(value), 0.5, atol=1e-4)
    with wave.open(io.BytesIO(value.data)) as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnframes()) == (8_000, 2, 100)


def test_odd_arrays_are_mended_and_noted() -> None:
    value, part = read((np.array([0.5, np.nan, np.inf, 0.5]), RATE))
    np.testing.assert_allclose(decode_samples(value)[:, 0], [0.5, 0, 0, 0.5], atol=1e-4)
    assert "2 samples were not finite" in part.notes[0]
    value, part = read((np.array([1.5, -0.5]), RATE))
    np.testing.assert_allclose(decode_samples(value)[:, 0], [1, -0.5], atol=1e-4)
    assert "clipped" in part.notes[0]
    value, part = read((np.array([16384.0, -32768.0]), RATE))
    np.testing.assert_allclose(decode_samples(value)[:, 0], [0.5, -1.0], atol=1e-4)
    assert "divided" in part.notes[0]
    value, part = read((np.zeros(1_000), RATE), config=ReadConfig(max_bytes=1_000))
    assert value.duration_s == 500 / RATE
    assert "only the first" in part.notes[0]
    import torch

    assert read((torch.zeros(2, 100), RATE))[0].channels == 2
    for bad in (
        (np.zeros(0), RATE),
        (np.zeros(3), 0),
        (np.zeros(3), -8_000),
        (np.zeros(3), 8_000.5),
        (np.zeros(3), "fast"),
        (np.zeros((2, 2, 2)), RATE),
        (np.zeros((100, 100)), RATE),
        (np.array(["a"]), RATE),
        (None, RATE),
        None,
        3,
        "sound.wav",
    ):
        assert refused(bad).what


def test_zero_length_and_foreign_files_are_problems() -> None:
    assert "no samples" in refused(file_of(np.zeros((0, 1)))).what
    assert "empty" in refused(b"").what
    assert "no sound" in refused(b"this is no sound at all, only words").what
    assert "rb" in refused(io.StringIO("x")).what
    assert refused(Path("/nowhere.wav")).what


def test_samples_that_are_not_finite_in_a_file_are_silenced() -> None:
    samples = tone()
    samples[10:20] = np.nan
    value, part = read(file_of(samples, subtype="FLOAT"))
    assert "10 samples were not finite" in part.notes[0]
    assert value.mime == "audio/wav"
    shown = decode_samples(value)[:, 0]
    assert np.all(shown[10:20] == 0.0)
    np.testing.assert_allclose(shown[20:], samples[20:, 0], atol=1e-4)


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 10**8])
def test_a_wrong_size_in_the_header_is_mended(size: int) -> None:
    data = bytearray(file_of(tone(), subtype="PCM_16"))
    at = data.index(b"data") + 4
    data[at : at + 4] = size.to_bytes(4, "little")
    value, part = read(bytes(data))
    assert len(part.notes) == 1
    assert value.duration_s == pytest.approx(0.5)
    with wave.open(io.BytesIO(value.data)) as file:
        assert file.getnframes() == 8_000


@pytest.mark.parametrize("form", ["WAV", "FLAC", "OGG", "MP3"])
def test_of_a_file_that_is_cut_off_the_beginning_is_kept(form: str) -> None:
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, (4 * RATE, 1))
    data = file_of(noise, form)
    value, part = read(data[: len(data) // 2])
    assert any("cut off" in note or "promised" in note for note in part.notes) or form == "OGG"
    assert 0.8 < value.duration_s < 3.0
    assert len(decode_samples(value)) == pytest.approx(value.duration_s * RATE, abs=1)


def test_long_sounds_are_measured_and_kept_within_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    data = file_of(tone(4.0))
    value, part = read(data, config=ReadConfig(max_bytes=len(data) // 2))
    assert "bytes of the file were read" in part.notes[0]
    assert value.duration_s == pytest.approx(2.0, abs=0.01)
    monkeypatch.setattr(audio, "MAX_SAMPLES", RATE)
    value, part = read(data)
    assert value.data == data
    assert value.duration_s == 4.0
    assert "those of the first 1 s" in part.notes[0]
    value, part = read((tone(4.0), RATE))
    assert value.duration_s == 1.0


def test_many_channels_and_rare_formats() -> None:
    assert read(file_of(tone(channels=24)))[0].channels == 24
    value, part = read(file_of(tone(), "AIFF"))
    assert (value.mime, value.duration_s) == ("audio/wav", 0.5)
    assert part.notes == ("converted from AIFF",)
    assert read(io.BytesIO(file_of(tone())))[0].duration_s == 0.5


def test_a_stretch_is_decoded() -> None:
    ramp = np.linspace(-1, 1, RATE)
    value, _ = read((ramp, RATE))
    part = decode_samples(value, start_s=0.25, max_seconds=0.5)
    assert part.shape == (RATE // 2, 1)
    whole, _ = read(file_of(tone(2.0), "MP3"))
    samples = decode_samples(whole)
    np.testing.assert_array_equal(
        decode_samples(whole, start_s=1.0, max_seconds=0.5)[:, 0], samples[RATE:24_000, 0]
    )
    assert np.abs(samples[2_000:30_000] - tone(2.0)[2_000:30_000]).max() < 0.1
    np.testing.assert_allclose(part[:, 0], ramp[RATE // 4 : RATE * 3 // 4], atol=1e-4)
    assert np.frombuffer(encode_wav(np.array([1.0, -1.0, 2.0]), RATE)[-6:], "<i2").tolist() == [
        32767,
        -32768,
        32767,
    ]


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["", "WAV", "FLAC", "OGG", "AIFF", "MP3"]), st.randoms())
def test_arbitrary_and_damaged_bytes_never_raise(noise: bytes, form: str, random: Any) -> None:
    data = noise
    if form:
        good = bytearray(file_of(tone(0.05), form))
        for byte in noise[:8]:
            good[random.randrange(min(len(good), 200))] = byte
        data = bytes(good[: random.randrange(len(good) + 1)])
    (part,) = read_audio(data, part_id="speech")
    assert Part.model_validate_json(part.model_dump_json()) == part
    if isinstance(part.value, AudioValue):
        assert part.value.duration_s > 0
