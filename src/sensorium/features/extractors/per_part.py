"""Extraction part by part: what fails in one part is told there, and the others go on."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core import MissingDependencyError, SensoriumError
from sensorium.features.extractors.base import Extractor, Features
from sensorium.observations.base import Part


class Found(NamedTuple):
    """What an extractor found in one part."""

    data: dict[str, Any]
    summary: str = ""
    vector: NDArray[np.float32] | None = None


def extract_each(
    extractor: Extractor, parts: Sequence[Part], find: Callable[[Part], Found]
) -> tuple[Features, ...]:
    """Call `find` for every part.

    Args:
        extractor: Gives its name and version.
        parts: Parts that it accepts.
        find: Finds something in one part.

    Returns:
        One result per part; where `find` raised, the reason is in `unavailable`.

    Raises:
        MissingDependencyError: `find` lacks a package: no part can be read.
    """
    name, version = extractor.name, extractor.version
    results = []
    for part in parts:
        try:
            found, reason = find(part), None
        except MissingDependencyError:
            raise
        except SensoriumError as error:
            found, reason = Found({}), str(error)
        except Exception as error:
            found, reason = Found({}), f"{name} failed ({type(error).__name__}: {error})"
        results.append(
            Features(
                part_id=part.id,
                extractor=name,
                version=version,
                vector=found.vector,
                data=found.data,
                summary=found.summary,
                unavailable=reason,
            )
        )
    return tuple(results)
