"""What the ears hear, and that the closed form agrees with a synthesised waveform."""

import numpy as np
import pytest

from sensorium.envs.embodied.arena.config import SHAPES
from sensorium.envs.embodied.arena.hearing import locate_source
from sensorium.envs.embodied.arena.sound import (
    FRAMES_PER_STEP,
    SOUND_FRAME_RATE_HZ,
    SOUND_MELS,
    SOUND_N_FFT,
    SOUND_SAMPLE_RATE_HZ,
)
from sensorium.envs.embodied.arena.tasks import build
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.features.audio import LOG_MEL_FLOOR, log_mel

MEAN_TOLERANCE, MAX_TOLERANCE = 0.12, 0.4
"""Difference between the closed form and the waveform's log-mel, in nepers of power: 0.5 dB and 1.7 dB."""


def room(waveform: bool = False, task: str = "arena/listen"):
    config = EmbodiedEnvConfig(task=task, visual_obs=(), audio_obs=("env_sound",), waveform=waveform)
    backend = build(config, 1)
    backend.reset(np.zeros(1, np.uint64), np.ones(1, np.bool_))
    backend.state.walls[0, 1:-1, 1:-1] = 0
    return backend


def hear(backend, azimuth_deg: float, distance: float, shape: int = 0):
    """Readings of one step, with the source at an azimuth (positive to the left)."""
    angle = np.radians(azimuth_deg)
    backend.state.pose[0] = backend.state.last_pose[0] = (3.0, 3.0, 0.0)
    target = backend.state.target[0]
    backend.state.shape[0] = shape
    backend.state.objects[0] = [-50.0, -50.0]
    backend.state.objects[0, target] = (3.0 + distance * np.cos(angle), 3.0 + distance * np.sin(angle))
    return backend.observe()["env_sound"][0]


def loudest(heard):
    return heard.max(axis=1)


def test_nearer_ear_is_louder_and_more_so_at_high_frequencies():
    left, right = loudest(hear(room(), 70.0, 2.0))
    louder = (left - right)[left > LOG_MEL_FLOOR + 5.0]
    assert (louder > 0.5).all()
    assert louder[-1] > louder[0] + 0.5
    mirrored = loudest(hear(room(), -70.0, 2.0))
    np.testing.assert_allclose(mirrored[0], right, atol=1e-5)
    np.testing.assert_allclose(mirrored[1], left, atol=1e-5)


def test_doubling_the_distance_quarters_the_power():
    near, far = loudest(hear(room(), 20.0, 1.0)), loudest(hear(room(), 20.0, 2.0))
    audible = far > LOG_MEL_FLOOR + 1.0
    np.testing.assert_allclose((near - far)[audible], np.log(4.0), atol=1e-4)


def test_front_and_back_differ_in_colour():
    front, back = loudest(hear(room(), 0.0, 2.0)), loudest(hear(room(), 180.0, 2.0))
    drop = (front - back)[0][back[0] > LOG_MEL_FLOOR + 1.0]
    assert drop[0] > 0.2
    assert drop[-1] > drop[0] + 0.4


def test_walls_muffle():
    backend = room()
    clear = loudest(hear(backend, 0.0, 2.0))
    backend.state.walls[0, 4, 5] = 1  # the cell from (4, 3) to (5, 4)
    muffled = loudest(hear(backend, 10.0, 2.5))
    audible = muffled > LOG_MEL_FLOOR + 1.0
    drop = (clear - muffled)[audible]
    assert (drop > 0.8).all()
    assert drop.max() > 1.8


def test_shapes_have_spectra_and_rhythms_of_their_own():
    peaks = {frozenset(np.flatnonzero(loudest(hear(room(), 0.0, 1.0, k))[0] > -9.0)) for k in range(4)}
    assert len(peaks) == len(SHAPES)
    backend = room()
    rhythms = set()
    for shape in range(4):
        frames = []
        backend.state.phase[0] = 0
        for clock in range(6):
            backend.state.clock[0] = clock
            heard = hear(backend, 0.0, 1.0, shape)
            assert heard.max() > -8.0, "every step has a frame that sounds"
            frames += list(heard[0].max(axis=1) > -8.0)
        rhythms.add(tuple(frames))
    assert len(rhythms) == len(SHAPES)


def test_silence_is_the_floor():
    heard = room(task="arena/senses")
    heard.state.sounding[0] = False
    assert (heard.observe()["env_sound"] == np.float32(LOG_MEL_FLOOR)).all()
    loud = room(waveform=True)
    loud.state.sounding[0] = False
    assert (loud.observe()["env_sound"] == 0.0).all()


@pytest.mark.parametrize("shape", range(4))
@pytest.mark.parametrize("azimuth_deg", [0.0, 60.0, -120.0])
def test_closed_form_agrees_with_the_waveform(shape, azimuth_deg):
    closed, sampled = room(), room(waveform=True)
    frames, samples = [], []
    for clock in range(1, 7):
        for backend in (closed, sampled):
            backend.state.phase[0] = 1
            backend.state.clock[0] = clock
        frames.append(hear(closed, azimuth_deg, 1.5, shape))
        samples.append(hear(sampled, azimuth_deg, 1.5, shape))
    expected = np.concatenate(frames, axis=1)[:, FRAMES_PER_STEP:]
    waveform = np.concatenate(samples, axis=1)
    assert 0.05 < np.abs(waveform).max() <= 1.0
    measured = log_mel(
        waveform,
        sample_rate_hz=SOUND_SAMPLE_RATE_HZ,
        frame_rate_hz=SOUND_FRAME_RATE_HZ,
        n_mels=SOUND_MELS,
        n_fft=SOUND_N_FFT,
    )[:, FRAMES_PER_STEP:]
    sounding = expected > expected.max(axis=(1, 2), keepdims=True) - 5.0
    assert sounding.sum() > 20
    difference = np.abs(measured - expected)[sounding]
    assert difference.mean() < MEAN_TOLERANCE
    assert difference.max() < MAX_TOLERANCE


def test_nearer_ear_hears_first():
    heard = hear(room(waveform=True), 90.0, 2.0)[:, 200:1500]
    lags = range(-20, 21)
    match = [np.corrcoef(heard[0, 30:-30], np.roll(heard[1], -lag)[30:-30])[0, 1] for lag in lags]
    expected = 2 * 0.0875 / 343 * SOUND_SAMPLE_RATE_HZ
    assert lags[int(np.argmax(match))] == pytest.approx(expected, abs=1.0)


def test_readings_join_without_clicks():
    backend = room(waveform=True)
    backend.state.phase[0] = 2
    parts = []
    for step in range(4):
        hear(backend, 40.0, 1.0, SHAPES.index("pillar"))
        backend.state.clock[0] = 10 + step
        backend.state.last_pose[0] = (3.0, 3.0, 0.1 * (step - 1))
        backend.state.pose[0] = (3.0, 3.0, 0.1 * step)
        parts.append(backend.observe()["env_sound"][0])
    joined = np.concatenate(parts, axis=1)
    steps = np.abs(np.diff(joined, axis=1))
    seams = steps[:, [1599, 3199, 4799]]
    assert seams.max() <= steps.max() * 1.0
    assert steps.max() < 1.0


def test_a_listener_can_tell_where_a_source_is():
    backend = room()
    for azimuth_deg in (-150.0, -45.0, 0.0, 80.0, 170.0):
        ahead, left = locate_source(hear(backend, azimuth_deg, 2.0)[None])[0]
        assert np.hypot(ahead, left) == pytest.approx(2.0, abs=0.1)
        gap = (np.degrees(np.arctan2(left, ahead)) - azimuth_deg + 180.0) % 360.0 - 180.0
        assert abs(gap) < 6.0
