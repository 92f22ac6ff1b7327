"""Intervals and robust means: what a figure from a few hundred episodes or a few seeds can claim."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.metrics.values import Numbers


class Interval(NamedTuple):
    """Bounds of a confidence interval."""

    low: float
    high: float


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Interval of a success rate: (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), p = k/n.

    Unlike p +- z sqrt(p(1-p)/n) it stays within [0, 1] and has a width at 0 and at n successes.

    Args:
        successes: k, 0 to `trials`.
        trials: n, number of independent episodes; with none the interval is [0, 1].
        confidence: Share of such intervals that hold the true rate, within (0, 1).

    Raises:
        ValueError: An argument is out of range.

    Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference", J. Am.
        Stat. Assoc. 22; Brown, Cai, DasGupta 2001, Statistical Science 16(2), eq. 4.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"Expected 0 <= successes <= trials, found {successes} of {trials}.")
    z = _normal_quantile(confidence)
    if trials == 0:
        return Interval(0.0, 1.0)
    rate, scale = successes / trials, z * z / trials
    centre = (rate + scale / 2) / (1 + scale)
    half = math.sqrt(rate * (1 - rate) * scale + scale * scale / 4) / (1 + scale)
    # At the ends the formula gives the bound exactly; rounding must not move it out of [0, 1].
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low, high)


def interquartile_mean(values: Numbers) -> float:
    """Mean of the middle half; a value that a quartile cuts through counts in part.

    Args:
        values: Any shape, finite; usually one score per seed and task.

    Raises:
        ValueError: There are no values, or one is not finite.

    Source: Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice",
        arXiv:2108.13264, section 4.3.
    """
    sample = np.sort(_finite_sample(values))
    edges = np.arange(sample.size + 1) / sample.size
    inside = np.clip(edges[1:], 0.25, 0.75) - np.clip(edges[:-1], 0.25, 0.75)
    return float(np.sum(sample * inside) / np.sum(inside))


def bootstrap_interval(
    values: Numbers,
    confidence: float = 0.95,
    *,
    statistic: Callable[[NDArray[np.float64]], float] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap: quantiles of the statistic over samples drawn with replacement.

    Args:
        values: Independent values of any shape, finite, e.g. the returns of the episodes.
        confidence: Within (0, 1).
        statistic: Function of a flat sample; the mean by default. `interquartile_mean` suits few seeds.
        resamples: Number of samples drawn.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: There are no values, one is not finite, or `confidence` is out of range.

    Source: Efron 1979, "Bootstrap methods: another look at the jackknife", Ann. Statist. 7(1).
    """
    sample = _finite_sample(values)
    _normal_quantile(confidence)
    random = np.random.default_rng(seed)
    measure = statistic or np.mean
    draws = [float(measure(sample[random.integers(0, sample.size, sample.size)])) for _ in range(resamples)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(float(low), float(high))


def _normal_quantile(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"Expected a confidence between 0 and 1, such as 0.95, found {confidence}.")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def _finite_sample(values: Numbers) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64).ravel()
    if sample.size == 0:
        raise ValueError("Expected at least one value, found none.")
    if not np.all(np.isfinite(sample)):
        raise ValueError(f"Expected finite values, found {int(np.sum(~np.isfinite(sample)))} that are not.")
    return sample
