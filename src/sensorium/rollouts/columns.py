"""The numbers in rows, as columns, and their statistics; missing values are left out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sensorium.rollouts import row_names as names
from sensorium.rollouts.student_t import t_interval

Columns = dict[str, list[float]]
"""Name -> its values; NaN where a row has none."""


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """What of a row is measured: its top-level numbers and those of ``response.usage``; true counts as 1."""
    merged = {**row, **names.section(names.section(row, names.RESPONSE), "usage")}
    return {
        name: int(value) if isinstance(value, bool) else value
        for name, value in merged.items()
        if isinstance(value, int | float) and not name.startswith("_") and name != names.MASK
    }


def columns_of(rows: Sequence[Mapping[str, float]], columns: Iterable[str] | None = None) -> Columns:
    """Rows of numbers as columns, in the order in which names come up.

    Args:
        rows: As `numbers_of` gives them.
        columns: Which; all by default.
    """
    wanted = (
        list(columns) if columns is not None else list(dict.fromkeys(name for row in rows for name in row))
    )
    return {name: [float(row.get(name, math.nan)) for row in rows] for name in wanted}


def present(values: Sequence[float]) -> list[float]:
    """The values that are there."""
    return [value for value in values if not math.isnan(value)]


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; infinite values make it infinite, or NaN where they cancel."""
    try:
        return math.fsum(values) / len(values)
    except (ValueError, OverflowError):  # infinities of both signs, or a sum beyond all floats
        return sum(values) / len(values)


def sample_std(values: Sequence[float]) -> float:
    """Sample standard deviation (divided by n - 1); NaN for fewer than two values."""
    if len(values) < 2:
        return math.nan
    centre = mean(values)
    if not math.isfinite(centre):
        return math.nan
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def quantile(values: Sequence[float], share: float) -> float:
    """Quantile with linear interpolation between the two values around it."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def describe(columns: Columns) -> dict[str, float]:
    """``mean|max|min|median|std/<column>`` of a group of rows.

    The deviation of a single row is 0 where all its columns are filled; what cannot be computed is left out.
    """
    filled = {name: present(values) for name, values in columns.items()}
    deviations = {name: sample_std(values) for name, values in filled.items()}
    if all(math.isnan(value) for value in deviations.values()):
        for name, values in columns.items():
            if len(filled[name]) == len(values):
                deviations[name] = 0.0
    made: dict[str, float] = {}
    for stat in ("mean", "max", "min", "median", "std"):
        for name, values in filled.items():
            if not values:
                continue
            match stat:
                case "mean":
                    value = mean(values)
                case "max":
                    value = max(values)
                case "min":
                    value = min(values)
                case "median":
                    value = quantile(values, 0.5)
                case _:
                    value = deviations[name]
            if not math.isnan(value):
                made[f"{stat}/{name}"] = value
    return made


def spread(values: Sequence[float], *, error_name: str, quartiles: bool) -> dict[str, float]:
    """Statistics of values with the confidence interval of their mean.

    Args:
        values: At least one.
        error_name: What the standard error is called.
        quartiles: Give them, too.
    """
    count = len(values)
    centre = mean(values)
    deviation = sample_std(values) if count > 1 else 0.0
    error = deviation / math.sqrt(count)
    made = {
        "mean": centre,
        "median": quantile(values, 0.5),
        "std": deviation,
        error_name: error,
        "min": min(values),
        "max": max(values),
    }
    if quartiles:
        made |= {"p25": quantile(values, 0.25), "p75": quantile(values, 0.75)}
    if count > 1 and not math.isnan(error):
        made["ci_low_95"], made["ci_high_95"] = t_interval(centre, error, count)
    return made
