"""What each sense is worth, computed from the missing-modality test."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
