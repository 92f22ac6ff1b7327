"""The sound of `sound.py` as samples: tones that reach each ear with its gain and its delay."""

import math

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.sound import (
    FRAMES_PER_STEP,
    RAMP_SAMPLES,
    SOUND_SAMPLE_RATE_HZ,
    Ears,
    is_on,
    source_at,
)
from sensorium.envs.embodied.arena.state import CONTROL_HZ, Rules, State
from sensorium.envs.embodied.compiled import compiled

SAMPLES_PER_STEP = round(SOUND_SAMPLE_RATE_HZ / CONTROL_HZ)
HEAD_RADIUS_M = 0.0875
SPEED_OF_SOUND_M_S = 343.0

_SAMPLES_PER_FRAME = SAMPLES_PER_STEP // FRAMES_PER_STEP


@compiled
def synthesise_worlds(
    state: State, rules: Rules, ears: Ears, heard: NDArray[np.float32], first: int, last: int
) -> None:
    """Fill in the samples of the latest step of worlds `first` to `last` (excluded).

    Gains and delays are those of the present pose; the first RAMP_SAMPLES fade over from the pose before, so
    that readings that follow each other join without a click.

    Args:
        state: The worlds.
        rules: What they share.
        ears: Prepared by `make_ears`.
        heard: (N, 2, SAMPLES_PER_STEP) filled in, in [-1, 1]; left ear first.
        first: First world.
        last: World after the last.
    """
    sound = np.zeros((2, SAMPLES_PER_STEP))
    for world in range(first, last):
        sound[:] = 0.0
        for item in range(rules.num_objects):
            if state.sounding[world, item]:
                _add_source(state, rules, ears, (world, item), sound)
        for ear in range(2):
            for sample in range(SAMPLES_PER_STEP):
                heard[world, ear, sample] = min(max(sound[ear, sample], -1.0), 1.0)


@compiled
def _add_source(
    state: State, rules: Rules, ears: Ears, which: tuple[int, int], sound: NDArray[np.float64]
) -> None:
    world, item = which
    fade_out = 1.0 - np.minimum(np.arange(SAMPLES_PER_STEP) / RAMP_SAMPLES, 1.0)
    envelope = _envelope(state, ears, world, item)
    for now in range(2):
        pose = state.pose[world] if now == 1 else state.last_pose[world]
        weight = envelope * ((1.0 - fade_out) if now == 1 else fade_out)
        count = SAMPLES_PER_STEP if now == 1 else RAMP_SAMPLES
        distance, sine, cosine, blocked = source_at(state, rules, world, item, pose)
        for ear in range(2):
            side = sine if ear == 0 else -sine
            delay_s = -HEAD_RADIUS_M * side / SPEED_OF_SOUND_M_S
            shares = ((1.0 - side) / 2.0, (1.0 - cosine) / 2.0, blocked)
            _add_tones(state, ears, which, (delay_s, distance, shares), (sound[ear, :count], weight))


@compiled
def _envelope(state: State, ears: Ears, world: int, item: int) -> NDArray[np.float64]:
    """(samples,) on/off pattern with its fades."""
    shape = state.shape[world, item]
    start = FRAMES_PER_STEP * state.clock[world] + state.phase[world, item]
    envelope = np.empty(SAMPLES_PER_STEP)
    for sample in range(SAMPLES_PER_STEP):
        frame = sample // _SAMPLES_PER_FRAME
        on, before = is_on(ears, shape, start + frame), is_on(ears, shape, start + frame - 1)
        envelope[sample] = before + (on - before) * min((sample % _SAMPLES_PER_FRAME) / RAMP_SAMPLES, 1.0)
    return envelope


@compiled
def _add_tones(
    state: State,
    ears: Ears,
    which: tuple[int, int],
    path: tuple[float, float, tuple[float, float, float]],
    output: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    """Add a source's tones as they reach one ear; each sine is turned on by a rotation per sample."""
    world, item = which
    delay_s, distance, shares = path
    sound, weight = output
    shape = state.shape[world, item]
    for tone in range(ears.tone_hz.shape[1]):
        amplitude = ears.tone_amplitude[shape, tone]
        if amplitude == 0.0:
            continue
        loss = ears.tone_loss[shape, tone]
        nepers = shares[0] * loss[0] + shares[1] * loss[1] + shares[2] * loss[2]
        amplitude *= math.exp(-0.5 * nepers) / distance
        hz = ears.tone_hz[shape, tone]
        cycles = (hz * (state.clock[world] / CONTROL_HZ) + tone * 0.37 + item * 0.61) % 1.0 - hz * delay_s
        angle, turn = 2.0 * math.pi * cycles, 2.0 * math.pi * hz / SOUND_SAMPLE_RATE_HZ
        sine, cosine = math.sin(angle), math.cos(angle)
        turn_sine, turn_cosine = math.sin(turn), math.cos(turn)
        for sample in range(sound.size):
            sound[sample] += amplitude * weight[sample] * sine
            sine, cosine = sine * turn_cosine + cosine * turn_sine, cosine * turn_cosine - sine * turn_sine
