"""Brightness, contrast, saturation and hue of rgb frames, one set of factors per world."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.augment.config import ColorJitter
from sensorium.envs.embodied.compiled import compiled

_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114  # luma of ITU-R BT.601


class JitterState(NamedTuple):
    """What was drawn for the running episode of each world."""

    factors: NDArray[np.float32]
    """(N, 4): brightness, contrast, saturation; hue as a share of the circle."""
    order: NDArray[np.int64]
    """(N, 4): the order in which the four are applied."""


def no_jitter(num_envs: int) -> JitterState:
    """Factors that change nothing."""
    factors = np.tile(np.array([1.0, 1.0, 1.0, 0.0], np.float32), (num_envs, 1))
    return JitterState(factors, np.tile(np.arange(4), (num_envs, 1)))


def draw_jitter(
    config: ColorJitter, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Factors and order of one episode."""
    strength = np.array([config.brightness, config.contrast, config.saturation, config.hue])
    centre = np.array([1.0, 1.0, 1.0, 0.0])
    return (centre + strength * rng.uniform(-1.0, 1.0, 4)).astype(np.float32), rng.permutation(4)


def jitter(frames: NDArray[np.uint8], state: JitterState) -> NDArray[np.uint8]:
    """Apply each world's factors to its frame.

    brightness b: x b;  contrast c: mean + (x - mean) c, with the frame's mean luma;  saturation s:
    luma + (x - luma) s per pixel;  hue h: chroma turned by 2 pi h at constant luma. Values are clipped to
    [0, 255] after each.

    Args:
        frames: (N, H, W, 3).
        state: Factors, (N, 4).

    Returns:
        New frames, (N, H, W, 3).
    """
    changed = np.empty_like(frames)
    num_pixels = frames.shape[1] * frames.shape[2]
    flat = (len(frames), num_pixels, 3)
    _jitter(frames.reshape(flat), state.factors, state.order, changed.reshape(flat))
    return changed


@compiled
def _jitter(
    frames: NDArray[np.uint8],
    factors: NDArray[np.float32],
    order: NDArray[np.int64],
    changed: NDArray[np.uint8],
) -> None:
    pixels = np.empty((frames.shape[1], 3), np.float32)
    low, high = np.float32(0.0), np.float32(255.0)
    for world in range(frames.shape[0]):
        pixels[:] = frames[world]
        for place in range(4):
            kind = order[world, place]
            factor = factors[world, kind]
            if kind == 3:
                if factor != 0.0:
                    _turn_hue(pixels, factor)
                continue
            if factor == 1.0:
                continue
            mean = np.float32(0.0)
            if kind == 1:
                for i in range(pixels.shape[0]):
                    mean += _RED * pixels[i, 0] + _GREEN * pixels[i, 1] + _BLUE * pixels[i, 2]
                mean /= pixels.shape[0]
            for i in range(pixels.shape[0]):
                anchor = mean
                if kind == 2:
                    anchor = np.float32(_RED * pixels[i, 0] + _GREEN * pixels[i, 1] + _BLUE * pixels[i, 2])
                for c in range(3):
                    pixels[i, c] = min(max(anchor + (pixels[i, c] - anchor) * factor, low), high)
        for i in range(pixels.shape[0]):
            for c in range(3):
                changed[world, i, c] = np.uint8(pixels[i, c] + 0.5)


@compiled
def _turn_hue(pixels: NDArray[np.float32], share: float) -> None:
    """Turn the chroma plane of YIQ, which keeps the luma."""
    cosine, sine = np.cos(2.0 * np.pi * share), np.sin(2.0 * np.pi * share)
    for p in range(pixels.shape[0]):
        red, green, blue = pixels[p, 0], pixels[p, 1], pixels[p, 2]
        y = _RED * red + _GREEN * green + _BLUE * blue
        i = 0.5959 * red - 0.2746 * green - 0.3213 * blue
        q = 0.2115 * red - 0.5227 * green + 0.3112 * blue
        turned_i, turned_q = cosine * i - sine * q, sine * i + cosine * q
        pixels[p, 0] = min(max(y + 0.956 * turned_i + 0.619 * turned_q, 0.0), 255.0)
        pixels[p, 1] = min(max(y - 0.272 * turned_i - 0.647 * turned_q, 0.0), 255.0)
        pixels[p, 2] = min(max(y - 1.106 * turned_i + 1.703 * turned_q, 0.0), 255.0)
