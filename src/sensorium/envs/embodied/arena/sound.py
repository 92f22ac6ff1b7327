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

from sensorium.envs.embodied.arena.geometry import is_visible
from sensorium.envs.embodied.arena.state import CONTROL_HZ, Rules, State
from sensorium.envs.embodied.compiled import compiled
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
_NEGLIGIBLE = 1e-5
_PATTERN = np.array([[4, 2], [6, 4], [3, 2], [12, 10]])
"""Per shape: period and frames that sound. Every step has a sounding frame: gaps are shorter than a step."""


class Ears(NamedTuple):
    """Tables for hearing. Shares are of power, in nepers at full effect."""

    template: NDArray[np.float64]
    """(shapes, 2, 2, mels) mel power of a source one metre away before any loss, by whether it sounded in the
    frame before and sounds in this one; 0 where there is next to none."""
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


def _loss(hz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loss of power by frequency, (..., 3): lateral 3 to 16 dB, behind 1 to 8 dB, muffled 4 to 12 dB."""
    lateral = 3.0 + 13.0 * hz / (hz + 1500.0)
    behind = 1.0 + 7.0 * hz / (hz + 2000.0)
    muffled = 4.0 + 8.0 * hz / (hz + 1000.0)
    return np.stack([lateral, behind, muffled], axis=-1) * (math.log(10.0) / 10.0)


def _mel_centres_hz() -> NDArray[np.float64]:
    """Frequency at which each filter peaks, to the resolution of a fine filterbank."""
    fine = 16_384
    peaks = mel_filterbank(SOUND_SAMPLE_RATE_HZ, fine, SOUND_MELS).argmax(axis=1)
    return np.asarray(peaks * (SOUND_SAMPLE_RATE_HZ / fine), np.float64)


@functools.cache
def make_ears() -> Ears:
    """Prepare the tables: tones, losses, and the mel power of each shape, measured on its tones."""
    centres = _mel_centres_hz()
    most = max(len(bands) for bands in _BANDS)
    tone_hz, amplitude = np.zeros((len(_BANDS), most)), np.zeros((len(_BANDS), most))
    for shape, bands in enumerate(_BANDS):
        tone_hz[shape, : len(bands)] = centres[list(bands)]
        amplitude[shape, : len(bands)] = _AMPLITUDE / len(bands)
    template = np.stack([_measure(hz, height) for hz, height in zip(tone_hz, amplitude, strict=True)])
    return Ears(template, _loss(centres), tone_hz, amplitude, _loss(tone_hz), _PATTERN)


def _measure(tone_hz: NDArray[np.float64], amplitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean mel power of tones that sound for two frames and rest for two: (2, 2, mels) by before and now."""
    per_frame = round(SOUND_SAMPLE_RATE_HZ / SOUND_FRAME_RATE_HZ)
    num_frames = 400
    on = np.arange(num_frames) % 4 < 2
    before = np.roll(on, 1)
    ramp = np.minimum(np.arange(per_frame) / RAMP_SAMPLES, 1.0)
    envelope = (before[:, None] + (on.astype(float) - before)[:, None] * ramp).ravel()
    cycles = tone_hz[:, None] * np.arange(num_frames * per_frame) / SOUND_SAMPLE_RATE_HZ
    frames = log_mel(
        (np.sin(2 * np.pi * cycles) * amplitude[:, None]).sum(axis=0) * envelope,
        sample_rate_hz=SOUND_SAMPLE_RATE_HZ,
        frame_rate_hz=SOUND_FRAME_RATE_HZ,
        n_mels=SOUND_MELS,
        n_fft=SOUND_N_FFT,
    )
    power = np.zeros((2, 2, SOUND_MELS))
    for was in range(2):
        for now in range(2):
            chosen = (before == was) & (on == now)
            chosen[:2] = False  # the first window reaches back before the sound began
            power[was, now] = np.exp(frames[chosen].astype(np.float64)).mean(axis=0)
    power[0, 0] = 0.0
    return np.where(power > _NEGLIGIBLE * power.max(), power, 0.0)


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
def is_on(ears: Ears, shape: int, frame: int) -> int:
    """1 in the frames in which a shape sounds, 0 in the others."""
    return 1 if frame % ears.pattern[shape, 0] < ears.pattern[shape, 1] else 0


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
    start = FRAMES_PER_STEP * state.clock[world] + state.phase[world, item]
    for mel in range(SOUND_MELS):
        if ears.template[shape, 1, 1, mel] == 0.0 and ears.template[shape, 0, 1, mel] == 0.0:
            continue
        shared = (1.0 - cosine) / 2.0 * ears.band_loss[mel, 1] + blocked * ears.band_loss[mel, 2]
        for ear in range(2):
            lateral = (1.0 - sine) / 2.0 if ear == 0 else (1.0 + sine) / 2.0
            gain = math.exp(-(lateral * ears.band_loss[mel, 0] + shared)) / (distance * distance)
            for frame in range(FRAMES_PER_STEP):
                before, on = is_on(ears, shape, start + frame - 1), is_on(ears, shape, start + frame)
                power[ear, frame, mel] += gain * ears.template[shape, before, on, mel]
