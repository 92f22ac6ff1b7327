from typing import Any

import numpy as np
import pytest
from media_parts import picture_part, sound_part
from numpy.typing import NDArray

from sensorium.features.espeak import synthesise
from sensorium.features.extractors.audio_config import SoundEventsConfig
from sensorium.features.extractors.base import Extractor, Features
from sensorium.features.extractors.sound_events import SoundEvents, active_stretches, onsets
from sensorium.features.extractors.sound_frames import sound_frames
from sensorium.features.extractors.waveform import decode_sound, frame_levels

RATE = 16_000


def tone(hz: float, seconds: float = 1.0, amplitude: float = 0.3) -> NDArray[np.float64]:
    return amplitude * np.sin(2 * np.pi * hz * np.arange(round(seconds * RATE)) / RATE)


def noise(seconds: float = 1.0, amplitude: float = 0.1) -> NDArray[np.float64]:
    return amplitude * np.random.default_rng(0).normal(size=round(seconds * RATE))


def silence(seconds: float) -> NDArray[np.float64]:
    return np.zeros(round(seconds * RATE))


def listen(waveform: NDArray[Any], rate_hz: int = RATE, **settings: Any) -> Features:
    (features,) = SoundEvents(SoundEventsConfig(**settings))([sound_part(waveform, rate_hz)])
    assert features.unavailable is None
    return features


def labels(features: Features) -> list[str]:
    return [event["label"] for event in features.data["events"]]


@pytest.mark.parametrize("hz", [100, 220, 440, 880, 3000, 6000])
def test_a_tone_has_its_pitch_and_loudness(hz: int) -> None:
    features = listen(np.concatenate([silence(0.5), tone(hz), silence(0.5)]))
    (event,) = features.data["events"]
    assert event["label"] == "tone"
    assert event["pitch_hz"] == pytest.approx(hz, rel=0.01)
    assert event["start_s"] == pytest.approx(0.5, abs=0.04)
    assert event["end_s"] == pytest.approx(1.5, abs=0.04)
    assert event["loudness_dbfs"] == pytest.approx(20 * np.log10(0.3 / np.sqrt(2)), abs=0.3)
    assert f"tone of {event['pitch_hz']:.0f} Hz" in features.summary
    assert features.data["onsets_s"] == [pytest.approx(0.5, abs=0.04)]


def test_a_rich_tone_has_its_fundamental_as_pitch() -> None:
    (event,) = listen(np.sign(tone(220)) * 0.2).data["events"]
    assert (event["label"], round(event["pitch_hz"])) == ("tone", 220)


def test_a_changing_pitch_is_tonal_with_a_range() -> None:
    notes = [tone(hz, 0.25) * np.hanning(4000) for hz in (262, 330, 392, 523, 392, 330)]
    (event,) = listen(np.concatenate(notes)).data["events"]
    assert event["label"] == "tonal"
    low, high = event["pitch_range_hz"]
    assert low == pytest.approx(262, rel=0.03)
    assert high == pytest.approx(523, rel=0.03)


def test_a_chord_has_no_single_pitch() -> None:
    (event,) = listen(tone(262) / 3 + tone(330) / 3 + tone(392) / 3).data["events"]
    assert (event["label"], event["pitch_hz"]) == ("tonal", None)


@pytest.mark.parametrize("colour", ["white", "pink", "in waves"])
def test_noise_is_noise(colour: str) -> None:
    sound = noise(2.0)
    if colour == "pink":
        spectrum = np.fft.rfft(sound)
        sound = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), 1)))
        sound *= 0.1 / sound.std()
    if colour == "in waves":
        sound = sound * (1 + np.sin(2 * np.pi * 4 * np.arange(len(sound)) / RATE)) / 2
    assert labels(listen(sound)) == ["noise"]


def test_clicks_are_clicks() -> None:
    click = np.random.default_rng(0).normal(size=200) * 0.5
    features = listen(np.concatenate([silence(0.5), click, silence(0.7), click, silence(0.5)]))
    assert labels(features) == ["click", "click"]
    assert features.data["onsets_s"] == [pytest.approx(0.5, abs=0.03), pytest.approx(1.21, abs=0.03)]


def test_a_stretch_is_cut_where_its_texture_changes() -> None:
    events = listen(np.concatenate([silence(0.3), tone(880), noise(), silence(0.3)])).data["events"]
    assert [event["label"] for event in events] == ["tone", "noise"]
    assert events[0]["end_s"] == events[1]["start_s"] == pytest.approx(1.3, abs=0.06)


def test_a_tone_stands_out_of_noise() -> None:
    (event,) = listen(np.concatenate([silence(1), tone(880), silence(1)]) + noise(3.0, 0.003)).data["events"]
    assert event["label"] == "tone"
    assert event["start_s"] == pytest.approx(1.0, abs=0.04)


def test_pauses_longer_than_max_gap_part_events() -> None:
    beeps = np.concatenate([tone(1000, 0.2), silence(0.3), tone(1000, 0.2)])
    assert labels(listen(beeps)) == ["tone", "tone"]
    assert len(labels(listen(beeps, max_gap_s=0.4))) == 1
    assert labels(listen(beeps, max_events=1)) == ["tone"]
    assert labels(listen(beeps, min_duration_s=0.3)) == []


@pytest.mark.parametrize("voice", ["en-us", "en-gb+m7", "en-us+f3"])
def test_speech_is_like_speech(voice: str) -> None:
    for text in ("go to the red ball", "move forward two meters", "drop the object on the table"):
        sound = synthesise(text, voice=voice, rate_wpm=150, pitch=50)
        assert labels(listen(sound.samples / 32768.0, sound.sample_rate_hz)) == ["speech-like"]


@pytest.mark.parametrize("waveform", [np.zeros(0), np.zeros(3), np.zeros(RATE), np.full(RATE, 1e-5)])
def test_silence_has_no_events(waveform: NDArray[np.float64]) -> None:
    features = listen(waveform)
    assert features.data["events"] == features.data["onsets_s"] == []
    assert features.data["active_s"] == 0.0
    assert features.summary.endswith("of silence")


@pytest.mark.parametrize("count", [1, 5, 319, 321, 1023, 20_001])
def test_odd_lengths_and_values_that_are_no_numbers(count: int) -> None:
    sound = noise(2.0)[:count]
    sound[0] = np.nan
    features = listen(sound)
    assert features.data["duration_s"] == pytest.approx(count / RATE, abs=1e-3)
    assert all(np.isfinite(event["loudness_dbfs"]) for event in features.data["events"])


def test_a_broken_file_does_not_hinder_the_others() -> None:
    results = SoundEvents()([sound_part(b"RIFFnonsense"), sound_part(b""), sound_part(tone(440))])
    assert "cannot be decoded" in str(results[0].unavailable)
    assert results[1].data["events"] == []
    assert labels(results[2]) == ["tone"]


def test_the_protocol() -> None:
    extractor = SoundEvents()
    assert isinstance(extractor, Extractor)
    assert extractor.accepts(sound_part(tone(440)))
    assert not extractor.accepts(picture_part(np.zeros((4, 4, 3), np.uint8)))
    assert SoundEvents(SoundEventsConfig(max_gap_s=0.5)).version != extractor.version


def test_levels_by_hand() -> None:
    levels = frame_levels(np.full(40, 0.1, np.float32), rate_hz=1000, frame_s=0.02)
    np.testing.assert_allclose(levels, [-20.0, -20.0], atol=1e-4)
    assert frame_levels(np.zeros(0, np.float32), rate_hz=1000, frame_s=0.02).size == 0
    assert frame_levels(np.zeros(30, np.float32), rate_hz=1000, frame_s=0.02).tolist() == [-120.0]


def test_stretches_by_hand() -> None:
    config = SoundEventsConfig(max_gap_s=0.04, min_duration_s=0.04)
    levels = np.full(50, -70.0, np.float32)
    levels[10:20] = -20.0
    levels[22:24] = -20.0  # two frames later: joined
    levels[30] = -20.0  # one frame of 20 ms: too short
    assert active_stretches(levels, config) == [(10, 24)]
    assert active_stretches(np.full(20, -30.0, np.float32), config) == [(0, 20)]
    assert active_stretches(np.full(20, -61.0, np.float32), config) == []
    assert active_stretches(np.zeros(0, np.float32), config) == []


def test_onsets_by_hand() -> None:
    levels = np.full(40, -80.0, np.float32)
    levels[10:20] = -30.0
    levels[30:] = -55.0  # 5 dB above the floor: not 12
    assert onsets(levels, floor_dbfs=-60.0) == [0.2]


def test_frames_have_one_length() -> None:
    for count in (0, 1, 320, 321, 5000):
        frames = sound_frames(noise(1.0)[:count].astype(np.float32))
        assert {len(measure) for measure in frames} == {-(-count // 320)}


def test_channels_are_mixed_and_the_rate_is_changed() -> None:
    left = tone(440)
    both = np.stack([left, np.zeros_like(left)], axis=1)
    mono = decode_sound(sound_part(both), rate_hz=8000, max_duration_s=0.5)
    assert mono.shape == (4000,)
    assert mono.dtype == np.float32
    expected = 0.15 * np.sin(2 * np.pi * 440 * np.arange(4000) / 8000)
    np.testing.assert_allclose(mono[200:-200], expected[200:-200], atol=2e-3)


def test_long_sounds_are_resampled_without_seams() -> None:
    seconds = 125
    sound = 0.5 * np.sin(2 * np.pi * 50 * np.arange(seconds * 1000) / 1000)
    found = decode_sound(sound_part(sound, 1000), rate_hz=500, max_duration_s=1000.0)
    expected = 0.5 * np.sin(2 * np.pi * 50 * np.arange(seconds * 500) / 500)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found[100:-100], expected[100:-100], atol=2e-3)
