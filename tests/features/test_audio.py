import numpy as np
import pytest

from sensorium.core import FeatureError
from sensorium.features.audio import LOG_MEL_FLOOR, MEL_FLOOR, frame_count, log_mel, mel_filterbank

RATE = 16_000
SETTINGS = {"sample_rate_hz": RATE, "frame_rate_hz": 40.0, "n_mels": 20, "n_fft": 512}


def sine(frequency_hz: float, seconds: float = 1.0) -> np.ndarray:
    return np.sin(2 * np.pi * frequency_hz * np.arange(int(seconds * RATE)) / RATE).astype(np.float32)


@pytest.mark.parametrize(
    ("samples", "rate_hz", "frame_rate_hz", "frames"),
    [
        (1600, 16_000, 40.0, 4),
        (1599, 16_000, 40.0, 3),
        (0, 16_000, 40.0, 0),
        (630, 22_050, 35.0, 1),
        (6_400, 16_000, 12.5, 5),
    ],
)
def test_frame_count_is_the_exact_floor(
    samples: int, rate_hz: int, frame_rate_hz: float, frames: int
) -> None:
    assert frame_count(samples, sample_rate_hz=rate_hz, frame_rate_hz=frame_rate_hz) == frames
    silence = np.zeros(samples, np.float32)
    mel = log_mel(silence, sample_rate_hz=rate_hz, frame_rate_hz=frame_rate_hz, n_mels=1, n_fft=2048)
    assert mel.shape == (frames, 1)


def test_filters_cover_the_band_without_gaps() -> None:
    filters = mel_filterbank(RATE, 512, 20, 50.0, 7600.0)
    assert filters.shape == (20, 257)
    assert filters.dtype == np.float32
    assert filters.min() == 0.0
    assert filters.max() <= 1.0
    centres = filters.argmax(axis=1)
    assert (np.diff(centres) > 0).all()
    inside = slice(centres[0] + 1, centres[-1])
    np.testing.assert_allclose(filters.sum(axis=0)[inside], 1.0, atol=1e-5)  # neighbours add up to one


def test_filter_corners_follow_the_htk_scale() -> None:
    # One filter from 0 Hz to 8 kHz peaks at the HTK mel midpoint: 700 * (sqrt(1 + 8000/700) - 1) Hz.
    filters = mel_filterbank(RATE, 4096, 1, 0.0, 8000.0)
    peak_hz = filters[0].argmax() * RATE / 4096
    assert peak_hz == pytest.approx(700 * (np.sqrt(1 + 8000 / 700) - 1), abs=RATE / 4096)


def test_filterbank_is_shared_and_read_only() -> None:
    filters = mel_filterbank(RATE, 512, 20)
    assert mel_filterbank(RATE, 512, 20) is filters
    with pytest.raises(ValueError, match="read-only"):
        filters[0, 0] = 1.0


@pytest.mark.parametrize(
    ("n_fft", "n_mels", "f_min_hz", "f_max_hz"),
    [
        (512, 20, 50.0, 9000.0),
        (512, 20, 4000.0, 3000.0),
        (512, 20, -1.0, 8000.0),
        (512, 0, 50.0, 8000.0),
        (64, 40, 50.0, 8000.0),
    ],
)
def test_filters_that_do_not_fit_are_refused(
    n_fft: int, n_mels: int, f_min_hz: float, f_max_hz: float
) -> None:
    with pytest.raises(FeatureError, match="n_fft"):
        mel_filterbank(RATE, n_fft, n_mels, f_min_hz, f_max_hz)


@pytest.mark.parametrize("frequency_hz", [312.5, 1000.0, 4000.0])
def test_a_sine_lights_up_its_own_channel_at_about_zero(frequency_hz: float) -> None:
    mel = log_mel(sine(frequency_hz), **SETTINGS)
    assert mel.shape == (40, 20)
    filters = mel_filterbank(RATE, 512, 20)
    expected = filters[:, round(frequency_hz * 512 / RATE)].argmax()
    settled = mel[5:-1]
    assert (settled.argmax(axis=1) == expected).all()
    assert np.abs(settled.max(axis=1)).max() < 0.8


def test_power_is_quadratic_in_amplitude() -> None:
    loud, quiet = log_mel(sine(1000.0), **SETTINGS), log_mel(0.1 * sine(1000.0), **SETTINGS)
    np.testing.assert_allclose((loud - quiet)[5].max(), np.log(100.0), rtol=1e-3)


def test_silence_is_the_floor() -> None:
    mel = log_mel(np.zeros(RATE, np.float32), **SETTINGS)
    assert (mel == np.float32(LOG_MEL_FLOOR)).all()
    assert pytest.approx(np.log(MEL_FLOOR), abs=1e-5) == LOG_MEL_FLOOR


def test_frames_are_causal() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, RATE).astype(np.float32)
    whole = log_mel(noise, **SETTINGS)
    for frames in (1, 7, 23):
        np.testing.assert_array_equal(log_mel(noise[: frames * 400], **SETTINGS), whole[:frames])
    clicked = np.zeros(RATE, np.float32)
    clicked[4000 + 100] = 1.0  # in the time of frame 10
    audible = (log_mel(clicked, **SETTINGS) > LOG_MEL_FLOOR).any(axis=1)
    assert audible.argmax() == 10


def test_leading_axes_are_independent() -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, (3, 2, 1600)).astype(np.float32)
    mel = log_mel(noise, **SETTINGS)
    assert mel.shape == (3, 2, 4, 20)
    assert mel.dtype == np.float32
    np.testing.assert_array_equal(mel[2, 1], log_mel(noise[2, 1], **SETTINGS))


def test_integer_samples_and_short_windows_are_refused() -> None:
    with pytest.raises(FeatureError, match="32768"):
        log_mel(np.zeros(1600, np.int16), **SETTINGS)
    with pytest.raises(FeatureError, match="n_fft >= 1600"):
        log_mel(np.zeros(1600, np.float32), sample_rate_hz=RATE, frame_rate_hz=10.0, n_mels=20, n_fft=512)
    with pytest.raises(FeatureError, match="positive"):
        frame_count(10, sample_rate_hz=RATE, frame_rate_hz=0.0)
