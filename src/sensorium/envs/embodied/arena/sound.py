"""What the worlds sound like, in closed form: mel power of each shape's tones times the gains of each ear.

A source at distance d and azimuth a (0 ahead, positive to the left) reaches an ear with the power

    d^-2 * exp(-(s(a) * lateral(f) + (1 - cos a) / 2 * behind(f) + blocked * muffled(f)))

where s is (1 - sin a) / 2 at the left ear and (1 + sin a) / 2 at the right one (the head's shadow), and
`blocked` is 1 when a wall stands between. `waveform.py` synthesises the same sound; log-mel frames of it
agree with these.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.compiled import compiled
from sensorium.envs.embodied.arena.geometry import is_visible
from sensorium.envs.embodied.arena.state import CONTROL_HZ, Rules, State
from sensorium.features.audio import MEL_FLOOR, log_mel, mel_filterbank

SOUND_SAMPLE_RATE_HZ = 16_000
SOUND_FRAME_RATE_HZ = 40.0
SOUND_MELS = 16
SOUND_N_FFT = 512
FRAMES_PER_STEP = round(SOUND_FRAME_RATE_HZ / CONTROL_HZ)
RAMP_SAMPLES = 64
"""Length of the fade between two frames of an on/off pattern, 4 ms."""

NEAREST_SOURCE_M = 0.5
"""Nearer than this, a source grows no louder."""

_BANDS = ((2, 5, 8, 12), (1, 4, 9), (6, 10, 13, 15), (3, 7, 11, 14))
"""Per shape: the mel bands at whose centres its tones lie; no two shapes share one."""
_AMPLITUDE = 0.28
"""Sum of the amplitudes of one source's tones at one metre."""
_PATTERN = np.array([[4, 2], [6, 4], [3, 2], [12, 10]])
"""Per shape: period and frames that sound. Every step has a sounding frame: gaps are shorter than a step."""


class Ears(NamedTuple):
    """Tables for hearing. Shares are of power, in nepers at full effect."""

    template: NDArray[np.float64]
    """(shapes, mels) mel power of a source one metre ahead; 0 where there is next to none."""
    band_loss: NDArray[np.float64]
    """(mels, 3) loss of power at each band: lateral, behind, muffled."""
    tone_hz: NDArray[np.float64]
    """(shapes, tones)."""
    tone_amplitude: NDArray[np.float64]
    """(shapes, tones); 0 fills up."""
    tone_loss: NDArray[np.float64]
    """(shapes, tones, 3) as `band_loss`."""
    pattern: NDArray[np.int64]
    """(shapes, 2) period and sounding frames."""
    carry: float
    """Share of a frame's window that still hears the frame before."""


def _loss(hz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loss of power by frequency, (..., 3): lateral 3 to 20 dB, behind 1 to 10 dB, muffled 6 to 18 dB."""
    lateral = 3.0 + 17.0 * hz / (hz + 1500.0)
    behind = 1.0 + 9.0 * hz / (hz + 2000.0)
    muffled = 6.0 + 12.0 * hz / (hz + 1000.0)
    return np.stack([lateral, behind, muffled], axis=-1) * (math.log(10.0) / 10.0)


def _mel_centres_hz() -> NDArray[np.float64]:
    """Frequency at which each filter peaks, to the resolution of a fine filterbank."""
    fine = 16_384
    peaks = mel_filterbank(SOUND_SAMPLE_RATE_HZ, fine, SOUND_MELS).argmax(axis=1)
    return np.asarray(peaks * (SOUND_SAMPLE_RATE_HZ / fine), np.float64)


@functools.cache
def make_ears() -> Ears:
    """Prepare the tables: tones, losses, and each shape's mel power, measured on its steady sound."""
    centres = _mel_centres_hz()
    most = max(len(bands) for bands in _BANDS)
    tone_hz, amplitude = np.zeros((len(_BANDS), most)), np.zeros((len(_BANDS), most))
    template = np.zeros((len(_BANDS), SOUND_MELS))
    seconds = np.arange(SOUND_SAMPLE_RATE_HZ) / SOUND_SAMPLE_RATE_HZ
    for shape, bands in enumerate(_BANDS):
        count = len(bands)
        tone_hz[shape, :count] = centres[list(bands)]
        amplitude[shape, :count] = _AMPLITUDE / count
        steady = (np.sin(2 * np.pi * tone_hz[shape, :, None] * seconds) * amplitude[shape, :, None]).sum(
            axis=0
        )
        frames = log_mel(
            steady,
            sample_rate_hz=SOUND_SAMPLE_RATE_HZ,
            frame_rate_hz=SOUND_FRAME_RATE_HZ,
            n_mels=SOUND_MELS,
            n_fft=SOUND_N_FFT,
        )
        power = np.exp(frames[2:].astype(np.float64)).mean(axis=0)
        template[shape] = np.where(power > 1e-4 * power.max(), power, 0.0)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(SOUND_N_FFT) / SOUND_N_FFT)
    hop = round(SOUND_SAMPLE_RATE_HZ / SOUND_FRAME_RATE_HZ)
    carry = float(hann[: SOUND_N_FFT - hop + RAMP_SAMPLES // 2].sum() / hann.sum())
    return Ears(template, _loss(centres), tone_hz, amplitude, _loss(tone_hz), _PATTERN, carry)


@compiled
def source_at(
    state: State, rules: Rules, world: int, item: int, pose: NDArray[np.float64]
) -> tuple[float, float, float, float]:
    """Distance (NEAREST_SOURCE_M at least), sine and cosine of azimuth, and blocked (0 or 1) of a source."""
    dx = state.objects[world, item, 0] - pose[0]
    dy = state.objects[world, item, 1] - pose[1]
    gap = max(math.hypot(dx, dy), 1e-9)
    ahead_x, ahead_y = math.cos(pose[2]), math.sin(pose[2])
    cosine, sine = (dx * ahead_x + dy * ahead_y) / gap, (dy * ahead_x - dx * ahead_y) / gap
    blocked = 0.0
    if rules.num_walls > 0:
        to = (state.objects[world, item, 0], state.objects[world, item, 1])
        blocked = 0.0 if is_visible(state.walls[world], rules.cell_m, pose[0], pose[1], to) else 1.0
    return max(gap, NEAREST_SOURCE_M), sine, cosine, blocked


@compiled
def is_on(ears: Ears, shape: int, frame: int) -> float:
    """1 in the frames in which a shape sounds, 0 in the others."""
    return 1.0 if frame % ears.pattern[shape, 0] < ears.pattern[shape, 1] else 0.0


@compiled
def hear_worlds(
    state: State, rules: Rules, ears: Ears, heard: NDArray[np.float32], first: int, last: int
) -> None:
    """Fill in the log-mel frames of the latest step of worlds `first` to `last` (excluded).

    Args:
        state: The worlds.
        rules: What they share.
        ears: Prepared by `make_ears`.
        heard: (N, 2, FRAMES_PER_STEP, SOUND_MELS) filled in; left ear first.
        first: First world.
        last: World after the last.
    """
    power = np.zeros((2, FRAMES_PER_STEP, SOUND_MELS))
    floor = np.float32(math.log(MEL_FLOOR))
    for world in range(first, last):
        power[:] = 0.0
        for item in range(rules.num_objects):
            if state.sounding[world, item]:
                _add_source(state, rules, ears, (world, item), power)
        for ear in range(2):
            for frame in range(FRAMES_PER_STEP):
                for mel in range(SOUND_MELS):
                    value = power[ear, frame, mel]
                    heard[world, ear, frame, mel] = math.log(value) if value > MEL_FLOOR else floor


@compiled
def _add_source(
    state: State, rules: Rules, ears: Ears, which: tuple[int, int], power: NDArray[np.float64]
) -> None:
    world, item = which
    shape = state.shape[world, item]
    distance, sine, cosine, blocked = source_at(state, rules, world, item, state.pose[world])
    envelope = np.empty(FRAMES_PER_STEP)
    start = FRAMES_PER_STEP * state.clock[world] + state.phase[world, item]
    for frame in range(FRAMES_PER_STEP):
        on, before = is_on(ears, shape, start + frame), is_on(ears, shape, start + frame - 1)
        level = (1.0 - ears.carry) * on + ears.carry * before
        envelope[frame] = level * level
    for mel in range(SOUND_MELS):
        loudness = ears.template[shape, mel] / (distance * distance)
        if loudness == 0.0:
            continue
        shared = (1.0 - cosine) / 2.0 * ears.band_loss[mel, 1] + blocked * ears.band_loss[mel, 2]
        for ear in range(2):
            lateral = (1.0 - sine) / 2.0 if ear == 0 else (1.0 + sine) / 2.0
            gain = loudness * math.exp(-(lateral * ears.band_loss[mel, 0] + shared))
            for frame in range(FRAMES_PER_STEP):
                power[ear, frame, mel] += gain * envelope[frame]
