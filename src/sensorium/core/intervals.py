"""What a success rate from a few hundred episodes can claim."""

import math
from statistics import NormalDist
from typing import NamedTuple


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
    z = normal_quantile(confidence)
    if trials == 0:
        return Interval(0.0, 1.0)
    rate, scale = successes / trials, z * z / trials
    centre = (rate + scale / 2) / (1 + scale)
    half = math.sqrt(rate * (1 - rate) * scale + scale * scale / 4) / (1 + scale)
    # At the ends the formula gives the bound exactly; rounding must not move it out of [0, 1].
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low, high)


def normal_quantile(confidence: float) -> float:
    """Return z with P(|N(0, 1)| <= z) = confidence, e.g. 1.96 for 0.95.

    Raises:
        ValueError: `confidence` is not within (0, 1).
    """
    if not 0 < confidence < 1:
        raise ValueError(f"Expected a confidence between 0 and 1, such as 0.95, found {confidence}.")
    return NormalDist().inv_cdf(0.5 + confidence / 2)
