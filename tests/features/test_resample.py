import numpy as np
import pytest

from sensorium.core import FeatureError
from sensorium.features.resample import resample


@pytest.mark.parametrize(("from_hz", "to_hz"), [(22_050, 16_000), (16_000, 22_050), (48_000, 16_000)])
def test_a_tone_keeps_frequency_and_amplitude(from_hz: int, to_hz: int) -> None:
    time_s = np.arange(from_hz) / from_hz
    fade = np.hanning(from_hz)
    resampled = resample(
        (fade * np.sin(2 * np.pi * 440 * time_s)).astype(np.float32), from_hz=from_hz, to_hz=to_hz
    )
    assert resampled.shape == (to_hz,)
    assert resampled.dtype == np.float32
    expected = np.hanning(to_hz) * np.sin(2 * np.pi * 440 * np.arange(to_hz) / to_hz)
    np.testing.assert_allclose(resampled, expected, atol=2e-3)


def test_what_the_lower_rate_cannot_hold_is_removed() -> None:
    time_s = np.arange(22_050) / 22_050
    tone = (np.hanning(22_050) * np.sin(2 * np.pi * 9_500 * time_s)).astype(np.float32)
    assert np.abs(resample(tone, from_hz=22_050, to_hz=16_000)).max() < 1e-3


def test_length_is_rounded_up_and_edges_are_allowed() -> None:
    assert resample(np.ones(442, np.float32), from_hz=22_050, to_hz=16_000).shape == (321,)
    assert resample(np.zeros(0, np.float32), from_hz=22_050, to_hz=16_000).shape == (0,)
    with pytest.raises(FeatureError, match="positive"):
        resample(np.ones(3, np.float32), from_hz=0, to_hz=16_000)
