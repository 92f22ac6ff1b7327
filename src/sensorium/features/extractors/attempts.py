"""Calling an extractor so that one bad part does not take the others of its batch along."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from sensorium.core import FeatureError, MissingDependencyError, SensoriumError
from sensorium.features.extractors.base import Extractor, Features
from sensorium.observations.base import Part

_MAX_SAME_FAILURES = 4
"""So many parts in a row that fail alone for the same reason, and none that works: the rest is not tried."""


class Attempt(NamedTuple):
    """What came of one part."""

    features: Features | None
    """None when the extractor raised."""
    reason: str = ""
    """Why there is nothing."""
    seconds: float = 0.0
    """Its share of the call."""


def attempt_each(extractor: Extractor, parts: Sequence[Part]) -> list[Attempt]:
    """Extract from parts; a batch that fails is halved until the parts that make it fail are alone.

    Returns:
        One attempt per part, in order.

    Raises:
        MissingDependencyError: The extractor needs something that is not installed.
    """
    found: list[Attempt | None] = [None] * len(parts)
    failures: list[str] = []
    stack = [(0, len(parts))] if parts else []
    while stack:
        start, stop = stack.pop()
        if len(failures) >= _MAX_SAME_FAILURES and len(set(failures)) == 1:
            found[start:stop] = [Attempt(None, failures[0])] * (stop - start)
            continue
        began = time.perf_counter()
        try:
            results = _checked(extractor, parts[start:stop])
        except MissingDependencyError:
            raise
        except (Exception, SystemExit) as error:  # whatever third-party code raises becomes a reason
            if stop - start == 1:
                reason = reason_of(error)
                found[start] = Attempt(None, reason, time.perf_counter() - began)
                failures.append(reason)
            else:
                middle = (start + stop) // 2
                stack += [(middle, stop), (start, middle)]
            continue
        seconds = (time.perf_counter() - began) / (stop - start)
        found[start:stop] = [Attempt(features, seconds=seconds) for features in results]
        failures.append("")  # something works: go on to the last part
    return [attempt for attempt in found if attempt is not None]


def reason_of(error: BaseException) -> str:
    """One line that says what went wrong; the name of the exception where it is not one of ours."""
    text = " ".join(str(error).split())
    if len(text) > 600:
        text = text[:600] + "..."
    if isinstance(error, SensoriumError) and text:
        return text
    return f"{type(error).__name__}: {text}".rstrip(": ")


def _checked(extractor: Extractor, parts: Sequence[Part]) -> list[Features]:
    results = list(extractor(parts))
    if len(results) != len(parts):
        raise FeatureError(
            f"extractor {extractor.name!r} returned {len(results)} results for {len(parts)} parts; expected "
            f"one per part, in order"
        )
    for part, features in zip(parts, results, strict=True):
        if not isinstance(features, Features):
            raise FeatureError(
                f"extractor {extractor.name!r} returned {type(features).__name__}; expected Features"
            )
        if features.part_id != part.id:
            raise FeatureError(
                f"extractor {extractor.name!r} answered for part {features.part_id!r} where {part.id!r} was "
                f"asked; results must be in the order of the parts"
            )
    return results
