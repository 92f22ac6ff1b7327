"""Intervals and robust means: what a figure from a few hundred episodes or a few seeds can claim."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core.intervals import Interval, normal_quantile
from sensorium.metrics.values import Numbers


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
    normal_quantile(confidence)
    random = np.random.default_rng(seed)
    measure = statistic or np.mean
    draws = [float(measure(sample[random.integers(0, sample.size, sample.size)])) for _ in range(resamples)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(float(low), float(high))


def stratified_bootstrap(
    strata: Sequence[Numbers],
    confidence: float = 0.95,
    *,
    statistic: Callable[[Sequence[NDArray[np.float64]]], float] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap in which every stratum is resampled by itself, so that each keeps its weight.

    Args:
        strata: One sample per task or condition, e.g. the scores of its seeds, or its episodes' outcomes.
        confidence: Within (0, 1).
        statistic: Function of the resampled strata; by default the interquartile mean of all their values.
        resamples: Number of samples drawn.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: There is no stratum, one is empty or not finite, or `confidence` is out of range.

    Source: Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice",
        arXiv:2108.13264, section 4.1.
    """
    samples = [_finite_sample(stratum) for stratum in strata]
    if not samples:
        raise ValueError("Expected at least one stratum, found none.")
    normal_quantile(confidence)
    measure = statistic or _pooled_interquartile_mean
    random = np.random.default_rng(seed)
    draws = [
        float(measure([sample[random.integers(0, sample.size, sample.size)] for sample in samples]))
        for _ in range(resamples)
    ]
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(float(low), float(high))


def interquartile_mean_of_rates(strata: Sequence[NDArray[np.float64]]) -> float:
    """Interquartile mean over the strata's means: a statistic for `stratified_bootstrap` of 0/1 outcomes."""
    return interquartile_mean([float(stratum.mean()) for stratum in strata])


def interquartile_rate_interval(
    strata: Sequence[Numbers], confidence: float = 0.95, *, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Interval of the interquartile mean of several success rates; episodes count within their stratum.

    A Bayesian bootstrap of success and failure in every stratum, with half a pseudo-episode each (Jeffreys'
    prior). Unlike the plain bootstrap it has a width when all episodes of all strata end alike; with many
    episodes the two are the same. It always holds the interquartile mean of the observed rates.

    Args:
        strata: 0 or 1 per episode, one sample per condition.
        confidence: Within (0, 1).
        resamples: Number of draws.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: There is no stratum, one is empty or not finite, or `confidence` is out of range.

    Source: Rubin 1981, "The Bayesian bootstrap", Ann. Statist. 9(1); the interquartile mean of Agarwal et al.
        2021, arXiv:2108.13264.
    """
    outcomes = [_finite_sample(stratum) > 0.5 for stratum in strata]
    if not outcomes:
        raise ValueError("Expected at least one stratum, found none.")
    normal_quantile(confidence)
    solved = np.array([stratum.sum() for stratum in outcomes], np.float64)
    failed = np.array([stratum.size for stratum in outcomes], np.float64) - solved
    rates = np.random.default_rng(seed).beta(solved + 0.5, failed + 0.5, (resamples, len(outcomes)))
    tail = (1 - confidence) / 2
    low, high = np.quantile([interquartile_mean(draw) for draw in rates], [tail, 1 - tail])
    value = interquartile_mean(solved / (solved + failed))
    return Interval(min(float(low), value), max(float(high), value))


class Ratio(NamedTuple):
    """A ratio of two success rates with its interval."""

    value: float
    low: float
    high: float


def paired_success_ratio(
    before: Numbers,
    after: Numbers,
    confidence: float = 0.95,
    *,
    resamples: int = 4000,
    seed: int = 0,
) -> Ratio | None:
    """Success rate `after` / success rate `before`, both over the same episodes.

    The interval is that of a Bayesian bootstrap over the four outcomes of a pair (both, only before, only
    after, neither) with half a pseudo-episode each (Jeffreys' prior). Unlike the plain bootstrap it has a
    width when all pairs agree; with many episodes the two are the same.

    Args:
        before: 0 or 1 per episode.
        after: 0 or 1 for the same episodes in the same order.
        confidence: Within (0, 1).
        resamples: Number of draws.
        seed: The same seed gives the same interval.

    Returns:
        None when no episode succeeded before: then there is nothing to lose.

    Raises:
        ValueError: The lengths differ, there are no values, or `confidence` is out of range.

    Source: Rubin 1981, "The Bayesian bootstrap", Ann. Statist. 9(1).
    """
    first, second = _finite_sample(before) > 0.5, _finite_sample(after) > 0.5
    if first.size != second.size:
        raise ValueError(f"Expected pairs of episodes, found {first.size} and {second.size}.")
    normal_quantile(confidence)
    if not first.any():
        return None
    counts = [
        np.sum(first & second),
        np.sum(first & ~second),
        np.sum(~first & second),
        np.sum(~first & ~second),
    ]
    shares = np.random.default_rng(seed).dirichlet(np.array(counts) + 0.5, resamples)
    draws = (shares[:, 0] + shares[:, 2]) / (shares[:, 0] + shares[:, 1])
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    value = float(second.sum() / first.sum())
    # An equal-tailed interval leaves out a ratio of exactly 0.
    return Ratio(value, min(float(low), value), max(float(high), value))


def _pooled_interquartile_mean(strata: Sequence[NDArray[np.float64]]) -> float:
    return interquartile_mean(np.concatenate(strata))


def _finite_sample(values: Numbers) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64).ravel()
    if sample.size == 0:
        raise ValueError("Expected at least one value, found none.")
    if not np.all(np.isfinite(sample)):
        raise ValueError(f"Expected finite values, found {int(np.sum(~np.isfinite(sample)))} that are not.")
    return sample
