"""Quantiles of Student's t distribution, without SciPy."""

import math
from functools import lru_cache

from sensorium.core import Interval

_TINY = 1e-300
_EPSILON = 1e-16
_MAX_TERMS = 10_000


def t_interval(mean: float, standard_error: float, count: int, confidence: float = 0.95) -> Interval:
    """Confidence interval of a mean: mean +- t(n - 1) * standard error.

    Args:
        mean: Of the sample.
        standard_error: Sample standard deviation / sqrt(n); with 0 the interval is the mean alone.
        count: n, at least 2.
        confidence: Within (0, 1).

    Raises:
        ValueError: `count` or `confidence` is out of range.
    """
    if standard_error == 0.0:
        return Interval(mean, mean)
    half = t_quantile(0.5 + confidence / 2, count - 1) * standard_error
    return Interval(mean - half, mean + half)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, degrees: int) -> float:
    """The t with P(T <= t) = probability.

    Found by bisection of the tail I_x(df / 2, 1 / 2) / 2 with x = df / (df + t^2).

    Args:
        probability: Within (0, 1).
        degrees: Degrees of freedom, at least 1.

    Raises:
        ValueError: An argument is out of range.

    Source: Abramowitz and Stegun 1964, "Handbook of Mathematical Functions", 26.7.1 and 26.5.27.
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"Expected a probability between 0 and 1, found {probability}.")
    if degrees < 1:
        raise ValueError(f"Expected at least 1 degree of freedom, found {degrees}.")
    tail = min(probability, 1.0 - probability)
    if tail == 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while _tail(high, degrees) > tail:
        low, high = high, high * 2.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _tail(middle, degrees) > tail:
            low = middle
        else:
            high = middle
    value = (low + high) / 2
    return value if probability > 0.5 else -value


def _tail(t: float, degrees: int) -> float:
    """P(T > t) for t >= 0."""
    return 0.5 * _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (A&S 26.5.8)."""
    if x <= 0.0 or x >= 1.0:
        return min(1.0, max(0.0, x))
    if x > (a + 1.0) / (a + b + 2.0):  # the fraction converges fast only on the other side
        return 1.0 - _incomplete_beta(1.0 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)), evaluated with Lentz's method."""
    value = numerators = 1.0
    denominators = 0.0
    for term in range(1, _MAX_TERMS):
        m = term // 2
        if term % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominators = 1.0 / _nonzero(1.0 + d * denominators)
        numerators = _nonzero(1.0 + d / numerators)
        factor = denominators * numerators
        value *= factor
        if abs(factor - 1.0) < _EPSILON:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
