"""Where a single source is, told from two ears: the nearest of many predicted log-mel spectra."""

import functools

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.config import SHAPES
from sensorium.envs.embodied.arena.sound import make_ears

_AZIMUTHS = np.linspace(-np.pi, np.pi, 120, endpoint=False)
_FAINT = 1.0  # a reading whose values differ by less than this (nepers) is silence
_UNHEARD = 0.05  # bands this far below the loudest are not compared


@functools.cache
def _predictions() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Spectra of every shape, blocking and azimuth at one metre, and weights; (predictions, 2 * mels)."""
    ears = make_ears()
    spectra, weights = [], []
    for shape in range(len(SHAPES)):
        template = ears.template[shape, 1, 1]
        loud = template > _UNHEARD * template.max()
        level = np.log(np.where(loud, template, 1.0))
        for blocked in (0.0, 1.0):
            for azimuth in _AZIMUTHS:
                shared = (1 - np.cos(azimuth)) / 2 * ears.band_loss[:, 1] + blocked * ears.band_loss[:, 2]
                sides = ((1 - np.sin(azimuth)) / 2, (1 + np.sin(azimuth)) / 2)
                spectra.append(
                    np.concatenate([level - shared - side * ears.band_loss[:, 0] for side in sides])
                )
                weights.append(np.concatenate([loud, loud]) / (2 * loud.sum()))
    return np.array(spectra), np.array(weights)


def locate_source(env_sound: NDArray[np.float32]) -> NDArray[np.float64]:
    """Estimate where the only source is.

    Args:
        env_sound: (N, 2, frames, mels) log-mel frames.

    Returns:
        (N, 2) metres ahead and to the left; NaN where nothing is heard.
    """
    heard = env_sound.max(axis=2).reshape(len(env_sound), -1).astype(np.float64)
    place = np.full((len(heard), 2), np.nan)
    sounds = np.ptp(heard, axis=1) >= _FAINT
    place[sounds] = _nearest(heard[sounds])
    return place


def _nearest(heard: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, 2) place whose predicted spectrum is nearest to each (N, 2 * mels) spectrum, whatever its level."""
    spectra, weights = _predictions()
    # Weighted variance of (heard - spectrum) about its mean: the mean is the level, that is the distance.
    mean = heard @ weights.T - (weights * spectra).sum(axis=1)
    square = (heard**2) @ weights.T - 2 * heard @ (weights * spectra).T + (weights * spectra**2).sum(axis=1)
    # A loud band that is predicted but not heard, or heard but not predicted, shows as a large difference.
    shapes = weights[:: len(weights) // len(SHAPES)]
    unexplained = ((heard[:, None, :] - heard.min(axis=1)[:, None, None]) * (shapes[None] == 0)).max(axis=2)
    unexplained = unexplained.repeat(len(weights) // len(SHAPES), axis=1)
    best = (square - mean**2 + 1e-3 * unexplained).argmin(axis=1)
    rows = np.arange(len(heard))
    distance = np.exp(-mean[rows, best] / 2.0)
    azimuth = _AZIMUTHS[best % len(_AZIMUTHS)]
    return np.stack([distance * np.cos(azimuth), distance * np.sin(azimuth)], axis=1)
