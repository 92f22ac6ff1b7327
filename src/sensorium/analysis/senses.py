"""What each sense is worth, computed from the missing-modality test."""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sensorium.analysis.run_directory import SubsetResult


class SubsetRow(NamedTuple):
    """One subset of the senses and its result."""

    senses: tuple[str, ...]
    """In the order in which the complete set names them."""
    result: SubsetResult


class SenseWorth(NamedTuple):
    """What is lost when one sense is taken away and all others stay."""

    sense: str
    without: SubsetResult
    change: float
    """Success without it minus success with all, in shares; below 0 when the sense helps."""


class Robustness(NamedTuple):
    """How success falls as senses are taken away."""

    curve: tuple[float, ...]
    """Mean success over the subsets that lack 0, 1, 2, ... senses."""
    relative_robustness: float | None
    """Area under the curve, its horizontal axis scaled to 0 .. 1; None when there is one sense."""
    worst: SenseWorth | None
    """The single sense whose loss costs most; None when no such subset was tested."""


def robustness(results: Mapping[str, SubsetResult]) -> Robustness:
    """Area under success against the number of senses removed (trapezoids), and the worst single drop.

    Args:
        results: Names joined by ``+`` -> result; every size of subset that is there counts.

    Source: relative robustness after Liang et al. 2021, "MultiBench", arXiv:2107.07502: the area under
        performance against imperfection.
    """
    total = len(_senses(results))
    by_size: dict[int, list[float]] = {}
    for key, result in results.items():
        by_size.setdefault(total - len(key.split("+")), []).append(result.success_rate)
    curve = tuple(float(np.mean(by_size[removed])) for removed in sorted(by_size))
    area = float(np.mean([(a + b) / 2 for a, b in itertools.pairwise(curve)])) if len(curve) > 1 else None
    worth = worth_of_senses(results)
    return Robustness(curve, area, worth[0] if worth else None)


def subset_rows(results: Mapping[str, SubsetResult]) -> list[SubsetRow]:
    """Subsets in the order of the chart: most senses first, then highest success.

    Args:
        results: Names joined by ``+`` -> result, as in `Summary.missing_modality`.
    """
    order = _senses(results)
    rows = [
        SubsetRow(tuple(sorted(key.split("+"), key=order.index)), result) for key, result in results.items()
    ]
    return sorted(rows, key=lambda row: (-len(row.senses), -row.result.success_rate, row.senses))


def worth_of_senses(results: Mapping[str, SubsetResult]) -> list[SenseWorth]:
    """What each sense adds to all others together, most valuable first.

    Empty when the complete set, or every set that lacks exactly one sense, was not tested.
    """
    by_set = {frozenset(key.split("+")): result for key, result in results.items()}
    everything = frozenset(_senses(results))
    complete = by_set.get(everything)
    if complete is None:
        return []
    worth = []
    for sense in _senses(results):
        without = by_set.get(everything - {sense})
        if without is not None:
            worth.append(SenseWorth(sense, without, without.success_rate - complete.success_rate))
    return sorted(worth, key=lambda entry: entry.change)


def _senses(results: Mapping[str, SubsetResult]) -> Sequence[str]:
    """All senses, in the order of the largest subset."""
    keys = sorted((key.split("+") for key in results), key=len, reverse=True)
    return list(dict.fromkeys(sense for key in keys for sense in key))
