"""Statistics worked out from their definitions: answers do not come from the libraries that agents use."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def as_numbers(values: Sequence[float]) -> Numbers:
    """Numbers as an array."""
    return np.array(values, dtype=np.float64)


def mean(values: Sequence[float] | Numbers) -> float:
    """Sum, exactly rounded, over n."""
    return math.fsum(values) / len(values)


def quantile(values: Numbers, share: float) -> float:
    """The quantile with linear interpolation between neighbours.

    Args:
        values: At least one.
        share: In [0, 1].
    """
    ordered = sorted(float(v) for v in values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def variance(values: Numbers) -> float:
    """Sum of squared deviations over n - 1."""
    centre = mean(values)
    return math.fsum((float(v) - centre) ** 2 for v in values) / (len(values) - 1)


def skewness(values: Numbers) -> float:
    """Third standardised moment, corrected for bias: n sqrt(n-1)/(n-2) * m3 / (n m2)^1.5 with sums m2, m3."""
    n, centre = len(values), mean(values)
    second = math.fsum((float(v) - centre) ** 2 for v in values)
    third = math.fsum((float(v) - centre) ** 3 for v in values)
    return float(n * math.sqrt(n - 1) / (n - 2) * third / second**1.5)


def pearson(x: Numbers, y: Numbers) -> float:
    """Covariance over the product of standard deviations."""
    dx, dy = x - mean(x), y - mean(y)
    return math.fsum(dx * dy) / math.sqrt(math.fsum(dx * dx) * math.fsum(dy * dy))


def ranks(values: Numbers) -> Numbers:
    """Ranks from 1; equal values share the mean of theirs."""
    order = np.argsort(values, kind="stable")
    result = np.empty(len(values))
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        result[order[start:end]] = (start + 1 + end) / 2
        start = end
    return result


def least_squares(columns: Sequence[Numbers], y: Numbers) -> tuple[Numbers, float]:
    """Coefficients of a linear model with intercept, and its R squared.

    Args:
        columns: Predictors, ``[rows]`` each.
        y: Response, ``[rows]``.

    Returns:
        Intercept and slopes, ``[1 + predictors]``; share of the variance of `y` that is explained.
    """
    x = np.column_stack([np.ones(len(y)), *columns])
    scale = np.sqrt((x * x).sum(axis=0))
    q, r = np.linalg.qr(x / scale)
    coefficients = np.linalg.solve(r, q.T @ y) / scale
    rest = y - x @ coefficients
    total = y - y.mean()
    return coefficients, float(1.0 - (rest @ rest) / (total @ total))


def logistic(columns: Sequence[Numbers], y: Numbers) -> Numbers | None:
    """Coefficients of a logistic regression with intercept by Newton's method.

    Args:
        columns: Predictors.
        y: 0 or 1.

    Returns:
        Intercept and slopes; None when the classes are separable, so that there is no finite solution.
    """
    scale = [float(np.std(c)) or 1.0 for c in columns]
    centre = [float(np.mean(c)) for c in columns]
    x = np.column_stack(
        [np.ones(len(y)), *((c - m) / s for c, m, s in zip(columns, centre, scale, strict=True))]
    )
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ beta, -500, 500)))
        hessian = (x * (p * (1 - p))[:, None]).T @ x
        if np.linalg.cond(hessian) > 1e10:
            return None
        step = np.linalg.solve(hessian, x.T @ (y - p))
        beta = beta + step
        if np.abs(step).max() < 1e-11:
            break
    else:
        return None
    if np.abs(beta).max() > 15:
        return None
    slopes = beta[1:] / scale
    return np.concatenate([[beta[0] - float(slopes @ centre)], slopes])


def welch(a: Numbers, b: Numbers) -> tuple[float, float, float]:
    """Welch's t-test.

    Returns:
        t, degrees of freedom and two-sided p.
    """
    va, vb = variance(a) / len(a), variance(b) / len(b)
    t = (mean(a) - mean(b)) / math.sqrt(va + vb)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return t, freedom, incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def anova(groups: Sequence[Numbers]) -> float:
    """F of a one-way analysis of variance."""
    everything = np.concatenate(list(groups))
    centre = mean(everything)
    between = math.fsum(len(g) * (mean(g) - centre) ** 2 for g in groups) / (len(groups) - 1)
    within = math.fsum(variance(g) * (len(g) - 1) for g in groups) / (len(everything) - len(groups))
    return between / within


def chi_square(counts: Numbers) -> float:
    """Pearson's statistic of independence of a table of counts, without correction."""
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz).

    Source: Press et al., Numerical Recipes, section 6.4.
    """
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x > (a + 1) / (a + b + 2):
        return 1.0 - front * _fraction(b, a, 1.0 - x) / b
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    result = d
    for m in range(1, 1000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + term * d
            c = 1.0 + term / c
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            result *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return result
