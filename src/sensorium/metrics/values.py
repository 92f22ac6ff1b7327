"""Metric values that know how they are reduced and merged.

A worker measures, a trainer merges, a sink writes `value`. Because the type carries the rule, nobody has to
guess whether `return` of two workers is averaged, added up or overwritten.

NaN and infinity are counted, not hidden: they are left out of the reduction, so that one bad number does not
erase the others, and `non_finite` says how many there were. Sinks write that count beside the metric. A
metric that saw no finite value at all has the value NaN.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

MetricT = TypeVar("MetricT", bound="Metric")

Numbers = float | int | np.generic | Sequence[float | int] | NDArray[Any]
"""A scalar, a flat list or an array of any shape and number type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(ABC):
    """One measured quantity: immutable, picklable, mergeable."""

    non_finite: int = 0
    """How many NaN or infinite values were met and left out."""

    @property
    @abstractmethod
    def value(self) -> float | dict[str, float]:
        """The reduced value; NaN when there was nothing finite to reduce."""

    @abstractmethod
    def merge(self, other: "Metric") -> "Metric":
        """Return the metric of both samples together; where order matters, `other` is the later one.

        Raises:
            TypeError: `other` is of another type, and there is no rule to reduce both.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Metric):
    """Weighted mean: total / weight."""

    total: float = 0.0
    """Sum of value times weight."""
    weight: float = 0.0
    """Sum of the weights."""

    @staticmethod
    def of(values: Numbers, weights: Numbers | None = None) -> "Mean":
        """Mean of one number, a list or an array.

        Args:
            values: Numbers.
            weights: One non-negative weight per value, or one for all; 1 by default. A batch mean over n
                samples is merged correctly as ``Mean.of(batch_mean, n)``.

        Raises:
            ValueError: A weight is negative or not finite, or the shapes do not fit.
        """
        if weights is None and isinstance(values, float | int) and math.isfinite(values):
            return Mean(total=float(values), weight=1.0)
        array = np.asarray(values, dtype=np.float64)
        weight = np.broadcast_to(np.asarray(1.0 if weights is None else weights, np.float64), array.shape)
        if not np.all(np.isfinite(weight) & (weight >= 0)):
            raise ValueError("Weights of a Mean must be finite and at least 0.")
        finite = np.isfinite(array)
        return Mean(
            total=float(np.sum(array[finite] * weight[finite])),
            weight=float(np.sum(weight[finite])),
            non_finite=int(np.sum(~finite)),
        )

    @property
    def value(self) -> float:
        """Total / weight; NaN without weight."""
        return self.total / self.weight if self.weight > 0 else math.nan

    def merge(self, other: Metric) -> "Mean":
        """Add totals and weights."""
        other = _same_type(Mean, other)
        return Mean(
            total=self.total + other.total,
            weight=self.weight + other.weight,
            non_finite=self.non_finite + other.non_finite,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(Metric):
    """Total over everything that was measured; 0 when there was nothing."""

    total: float = 0.0

    @staticmethod
    def of(values: Numbers) -> "Sum":
        """Sum of one number, a list or an array."""
        finite, non_finite = _split(values)
        return Sum(total=float(finite.sum()), non_finite=non_finite)

    @property
    def value(self) -> float:
        """The total."""
        return self.total

    def merge(self, other: Metric) -> "Sum":
        """Add the totals."""
        other = _same_type(Sum, other)
        return Sum(total=self.total + other.total, non_finite=self.non_finite + other.non_finite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Max(Metric):
    """Largest value."""

    largest: float = -math.inf

    @staticmethod
    def of(values: Numbers) -> "Max":
        """Largest of one number, a list or an array."""
        finite, non_finite = _split(values)
        return Max(largest=float(finite.max(initial=-math.inf)), non_finite=non_finite)

    @property
    def value(self) -> float:
        """The largest value; NaN when there was none."""
        return self.largest if math.isfinite(self.largest) else math.nan

    def merge(self, other: Metric) -> "Max":
        """Keep the larger one."""
        other = _same_type(Max, other)
        return Max(largest=max(self.largest, other.largest), non_finite=self.non_finite + other.non_finite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Min(Metric):
    """Smallest value."""

    smallest: float = math.inf

    @staticmethod
    def of(values: Numbers) -> "Min":
        """Smallest of one number, a list or an array."""
        finite, non_finite = _split(values)
        return Min(smallest=float(finite.min(initial=math.inf)), non_finite=non_finite)

    @property
    def value(self) -> float:
        """The smallest value; NaN when there was none."""
        return self.smallest if math.isfinite(self.smallest) else math.nan

    def merge(self, other: Metric) -> "Min":
        """Keep the smaller one."""
        other = _same_type(Min, other)
        return Min(smallest=min(self.smallest, other.smallest), non_finite=self.non_finite + other.non_finite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Std(Metric):
    """Standard deviation of a sample: sqrt(sum((x - mean)^2) / (n - 1)); NaN below two values.

    Source: Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample
        variances", eq. 2.1.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """Sum of the squared distances from the mean."""

    @staticmethod
    def of(values: Numbers) -> "Std":
        """Spread of one number, a list or an array."""
        finite, non_finite = _split(values)
        if finite.size == 0:
            return Std(non_finite=non_finite)
        mean = float(finite.mean())
        return Std(
            count=finite.size,
            mean=mean,
            squares=float(np.sum((finite - mean) ** 2)),
            non_finite=non_finite,
        )

    @property
    def value(self) -> float:
        """The standard deviation; NaN below two values."""
        return math.sqrt(self.squares / (self.count - 1)) if self.count > 1 else math.nan

    def merge(self, other: Metric) -> "Std":
        """Pool both samples without losing digits to large means."""
        other = _same_type(Std, other)
        count = self.count + other.count
        if count == 0:
            return Std(non_finite=self.non_finite + other.non_finite)
        delta = other.mean - self.mean
        return Std(
            count=count,
            mean=self.mean + delta * other.count / count,
            squares=self.squares + other.squares + delta**2 * self.count * other.count / count,
            non_finite=self.non_finite + other.non_finite,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(Metric):
    """Counts of values between fixed edges, with exact total and total of squares."""

    edges: tuple[float, ...]
    """Strictly rising, at least two."""
    counts: tuple[int, ...]
    """len(edges) + 1: below the first edge, in [edge i, edge i + 1) for each i, from the last edge on."""
    total: float = 0.0
    total_squares: float = 0.0

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise ValueError(f"A Histogram needs at least two strictly rising edges, found {self.edges}.")
        if len(self.counts) != len(self.edges) + 1:
            raise ValueError(
                f"{len(self.edges)} edges need {len(self.edges) + 1} counts (one below, one above), "
                f"found {len(self.counts)}."
            )

    @staticmethod
    def of(values: Numbers, edges: Sequence[float | int] | NDArray[Any]) -> "Histogram":
        """Count one number, a list or an array; values outside the edges are counted at the ends.

        Raises:
            ValueError: There are fewer than two edges or they do not rise.
        """
        limits = tuple(float(edge) for edge in np.asarray(edges, dtype=np.float64))
        finite, non_finite = _split(values)
        bins = np.searchsorted(np.asarray(limits), finite, side="right")
        counts = np.bincount(bins, minlength=len(limits) + 1)
        return Histogram(
            edges=limits,
            counts=tuple(int(count) for count in counts),
            total=float(finite.sum()),
            total_squares=float(np.sum(finite**2)),
            non_finite=non_finite,
        )

    @property
    def count(self) -> int:
        """Number of finite values."""
        return sum(self.counts)

    @property
    def value(self) -> dict[str, float]:
        """Count, mean (exact) and the 5th, 50th and 95th percentile (interpolated within a bin)."""
        mean = self.total / self.count if self.count else math.nan
        percentiles = {f"p{round(100 * q):02d}": self.quantile(q) for q in (0.05, 0.5, 0.95)}
        return {"count": float(self.count), "mean": mean, **percentiles}

    def quantile(self, q: float) -> float:
        """Value below which a share `q` in [0, 1] lies; beyond the outer edges, the edge. NaN when empty."""
        if not self.count:
            return math.nan
        cumulative = np.concatenate([[0.0], np.cumsum(self.counts)])
        limits = np.asarray([self.edges[0], *self.edges, self.edges[-1]])
        wanted = q * self.count
        index = min(max(int(np.searchsorted(cumulative, wanted, side="left")) - 1, 0), len(self.counts) - 1)
        share = (wanted - cumulative[index]) / max(self.counts[index], 1)
        return float(limits[index] + share * (limits[index + 1] - limits[index]))

    def merge(self, other: Metric) -> "Histogram":
        """Add the counts.

        Raises:
            ValueError: The edges differ.
        """
        other = _same_type(Histogram, other)
        if self.edges != other.edges:
            raise ValueError(
                "Cannot merge histograms with different edges; fix the edges where it is recorded."
            )
        return Histogram(
            edges=self.edges,
            counts=tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
            total=self.total + other.total,
            total_squares=self.total_squares + other.total_squares,
            non_finite=self.non_finite + other.non_finite,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest(Metric):
    """The most recent value, such as a learning rate; NaN or infinity is kept, and counted."""

    latest: float

    @staticmethod
    def of(value: Numbers) -> "Latest":
        """Wrap one number.

        Raises:
            ValueError: `value` holds more or fewer than one number.
        """
        array = np.asarray(value, dtype=np.float64)
        if array.size != 1:
            raise ValueError(f"Latest takes one number, found {array.size}.")
        number = float(array.reshape(()))
        return Latest(latest=number, non_finite=int(not math.isfinite(number)))

    @property
    def value(self) -> float:
        """The value itself."""
        return self.latest

    def merge(self, other: Metric) -> "Latest":
        """Keep the later one, `other`."""
        other = _same_type(Latest, other)
        return Latest(latest=other.latest, non_finite=self.non_finite + other.non_finite)


def merge_metrics(parts: Iterable[Mapping[str, Metric]]) -> dict[str, Metric]:
    """Merge what several workers or steps recorded; a name needs not be in every part.

    Args:
        parts: In order of time; matters for `Latest` only.

    Raises:
        TypeError: A name has different types; the message says which name.
        ValueError: A histogram has different edges; the message says which name.
    """
    merged: dict[str, Metric] = {}
    for part in parts:
        for name, metric in part.items():
            try:
                merged[name] = merged[name].merge(metric) if name in merged else metric
            except (TypeError, ValueError) as error:
                raise type(error)(f"Metric {name!r}: {error}") from error
    return merged


def _same_type(kind: type[MetricT], other: Metric) -> MetricT:
    if type(other) is not kind:
        raise TypeError(
            f"Cannot merge {kind.__name__} with {type(other).__name__}: "
            "a metric must be recorded with the same type everywhere."
        )
    return other


def _split(values: Numbers) -> tuple[NDArray[np.float64], int]:
    """Flat finite values, and how many others there were."""
    array = np.asarray(values, dtype=np.float64).ravel()
    finite = np.isfinite(array)
    return array[finite], int(array.size - finite.sum())
