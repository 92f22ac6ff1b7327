"""Pictures, sounds and messages: from what the engine gives to what the agent gets."""

import numpy as np
import pytest

from sensorium.envs.embodied.doom.images import DEPTH_M_PER_COUNT, Shrinker
from sensorium.envs.embodied.doom.memory import attach_shared, create_shared
from sensorium.envs.embodied.doom.messages import clean_notifications
from sensorium.envs.embodied.doom.settings import GameSettings
from sensorium.envs.embodied.doom.sound import StepSound
from sensorium.features.audio import log_mel


def settings(*, sample_rate_hz: int = 22050, frame_skip: int = 4, waveform: bool = False) -> GameSettings:
    return GameSettings(
        scenario="basic",
        buttons=("ATTACK",),
        sensors=frozenset(("rgb", "env_sound")),
        image_size=8,
        frame_skip=frame_skip,
        resolution=(160, 120),
        sample_rate_hz=sample_rate_hz,
        n_mels=16,
        waveform=waveform,
        objects=False,
    )


def test_rgb_is_the_exact_mean_where_the_factor_is_whole() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (120, 160, 3)).astype(np.uint8)
    out = np.zeros((40, 40, 3), np.uint8)
    Shrinker((160, 120), 40).rgb(picture, out)
    mean = picture.reshape(40, 3, 40, 4, 3).mean(axis=(1, 3))
    assert np.abs(out - mean).max() <= 0.5


@pytest.mark.parametrize("size", [8, 48, 100, 200])
def test_shrinking_keeps_a_uniform_picture_and_left_from_right(size: int) -> None:
    picture = np.full((120, 160, 3), 255, np.uint8)
    picture[:, 80:] = 10
    out = np.zeros((size, size, 3), np.uint8)
    Shrinker((160, 120), size).rgb(picture, out)
    assert (out[:, : size // 2 - 1] == 255).all()
    assert (out[:, size // 2 + 1 :] == 10).all()


def test_depth_is_a_real_pixel_in_metres() -> None:
    picture = np.zeros((120, 160), np.uint8)
    picture[:, 80:] = 60
    out = np.full((48, 48, 1), np.nan, np.float32)
    Shrinker((160, 120), 48).depth(picture, out)
    assert np.unique(out).tolist() == pytest.approx([0.0, 60 * DEPTH_M_PER_COUNT])


@pytest.mark.parametrize("sample_rate_hz", [11025, 22050, 44100])
@pytest.mark.parametrize("frame_skip", [1, 4])
def test_step_sound_equals_the_general_log_mel(sample_rate_hz: int, frame_skip: int) -> None:
    game = settings(sample_rate_hz=sample_rate_hz, frame_skip=frame_skip)
    samples = np.random.default_rng(0).normal(0, 6000, (game.samples_per_tic * (frame_skip + 1), 2))
    samples = samples.astype(np.int16)
    out = np.zeros(game.sound_shape, np.float32)
    StepSound(game).read(samples, out)
    expected = log_mel(
        np.ascontiguousarray(samples.T) / np.float32(32768),
        sample_rate_hz=sample_rate_hz,
        frame_rate_hz=35.0,
        n_mels=16,
        n_fft=game.n_fft,
    )
    np.testing.assert_allclose(out, expected[:, 1:], atol=1e-5)


def test_waveform_is_the_step_alone_left_first() -> None:
    game = settings(waveform=True)
    samples = np.zeros((630 * 5, 2), np.int16)
    samples[:630, 0] = 9999
    samples[630:, 1] = 16384
    out = np.ones(game.sound_shape, np.float32)
    StepSound(game).read(samples, out)
    assert out.shape == (2, 2520)
    assert not out[0].any()
    assert (out[1] == 0.5).all()


def test_notifications_lose_the_engines_chatter() -> None:
    ruler = "\x1d" + "\x1e" * 30 + "\x1f"
    buffer = f"\n{ruler}\n\n\x1c+map01 - Hydroelectric Plant\n\nStarting MIDI playback failed\n"
    assert clean_notifications(buffer, 256) == ""
    assert clean_notifications(buffer + "Picked up a \x1c[Gold]medikit.\n", 256) == "Picked up a medikit."
    assert clean_notifications("", 256) == ""


def test_long_notifications_keep_the_newest() -> None:
    assert clean_notifications("a" * 300 + "\nShoot: Demon\n", 20).endswith("Shoot: Demon")
    assert len(clean_notifications("a" * 300, 20)) == 20


def test_shared_arrays_are_the_same_memory() -> None:
    import os

    layout = settings().layout(3, 2)
    descriptor, ours = create_shared(layout)
    theirs = attach_shared(descriptor, layout)
    os.close(descriptor)
    assert ours["rgb"].shape == (3, 8, 8, 3)
    assert "depth" not in ours
    for name in ours:
        assert not ours[name].any(), name
    ours["reward"][:] = [1.0, 2.0, 3.0]
    theirs["buttons"][2] = 7.0
    assert theirs["reward"].tolist() == [1.0, 2.0, 3.0]
    assert ours["buttons"].ravel().tolist() == [0.0, 0.0, 7.0]
