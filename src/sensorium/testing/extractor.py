"""Whether an extractor keeps the contract: one check for own and foreign extractors."""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sensorium.features.extractors.base import Extractor, Features
from sensorium.observations.base import Part


def check_extractor(
    extractor: Extractor, parts: Sequence[Part], *, tolerance: float = 1e-4
) -> list[Features]:
    """Check that an extractor keeps the contract that the runner and its cache rely on.

    It has a name and a version that stay the same; gives one result per part, in order; a part's features
    depend neither on the batch around it, nor on its id, time or weight, nor on how often it is asked; data
    is plain JSON, vectors are finite, flat, all of one width; and every result survives a JSON round trip.
    Parts are not changed, and no parts at all are fine.

    Args:
        extractor: The extractor.
        parts: Parts of many kinds, some of which it accepts; at least two of those.
        tolerance: Largest difference between numbers of a vector that two batches may make.

    Returns:
        Its features of the parts it accepts, in order.

    Raises:
        AssertionError: A rule is broken; the message says which one, and for which part.
    """
    _expect(isinstance(extractor, Extractor), "it needs name, version, accepts(part) and __call__(parts)")
    name, version = extractor.name, extractor.version
    _expect(isinstance(name, str) and bool(name), f"its name is {name!r}, expected text that is not empty")
    _expect(isinstance(version, str) and bool(version), f"its version is {version!r}, expected text")
    accepted = [part for part in parts if extractor.accepts(part)]
    _expect(len(accepted) >= 2, f"it accepts {len(accepted)} of the parts; give at least two that it reads")
    before = [part.model_dump_json() for part in parts]
    batch = list(extractor(accepted))
    _check_results(extractor, accepted, batch)
    _expect(len(list(extractor([]))) == 0, "it gives results for no parts")
    backwards = list(extractor(accepted[::-1]))
    _check_results(extractor, accepted[::-1], backwards)
    for part, features, again in zip(accepted, batch, backwards[::-1], strict=True):
        _check_same(features, again, tolerance, f"part {part.id!r} in another order")
        renamed = part.model_copy(update={"id": f"renamed/{part.id}", "importance": 7.0, "timestamp_s": 1.5})
        (alone,) = extractor([renamed])
        _expect(
            alone.part_id == renamed.id, f"it answers for {alone.part_id!r} where {renamed.id!r} was asked"
        )
        _check_same(features, alone, tolerance, f"part {part.id!r} alone, with another id, weight and time")
    after = [part.model_dump_json() for part in parts]
    _expect(before == after, "it changed a part")
    _expect(extractor.version == version, f"its version changed from {version!r} to {extractor.version!r}")
    widths = {len(found.vector) for found in batch if found.vector is not None}
    _expect(len(widths) <= 1, f"its vectors have different widths: {sorted(widths)}")
    return batch


def _check_results(extractor: Extractor, parts: Sequence[Part], results: Sequence[Features]) -> None:
    _expect(len(results) == len(parts), f"it gives {len(results)} results for {len(parts)} parts")
    for part, found in zip(parts, results, strict=True):
        where = f"for part {part.id!r}"
        _expect(isinstance(found, Features), f"{where} it gives {type(found).__name__}, expected Features")
        _expect(found.part_id == part.id, f"results are not in order: {found.part_id!r} {where}")
        _expect(found.extractor == extractor.name, f"{where} it calls itself {found.extractor!r}")
        _expect(found.version == extractor.version, f"{where} it gives version {found.version!r}")
        _expect(not found.is_cached, f"{where} it says that the result is cached; that is the runner's word")
        _check_plain(found, where)


def _check_plain(found: Features, where: str) -> None:
    try:
        text = json.dumps(found.data, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"Extractor {found.extractor!r}: data {where} is not plain JSON: {error}"
        ) from error
    _expect(
        json.loads(text) == found.data, f"data {where} changes in JSON (tuples, or keys that are not text)"
    )
    if found.vector is not None:
        _expect(found.vector.ndim == 1, f"the vector {where} has shape {found.vector.shape}, expected (D,)")
        _expect(bool(np.isfinite(found.vector).all()), f"the vector {where} holds NaN or infinity")
    again = Features.model_validate_json(found.model_dump_json())
    _expect(again.data == found.data, f"data {where} does not survive model_dump_json")
    same = np.array_equal(_numbers(again), _numbers(found))
    _expect(same and (again.vector is None) == (found.vector is None), f"the vector {where} changes in JSON")


def _numbers(features: Features) -> NDArray[np.float32]:
    return np.zeros(0, np.float32) if features.vector is None else features.vector


def _check_same(one: Features, other: Features, tolerance: float, what: str) -> None:
    _expect(one.data == other.data, f"data differ: {what}")
    _expect(one.summary == other.summary, f"summaries differ: {what}")
    _expect(one.unavailable == other.unavailable, f"it is unavailable only once: {what}")
    _expect((one.vector is None) == (other.vector is None), f"there is a vector only once: {what}")
    if one.vector is not None and other.vector is not None:
        difference = float(np.max(np.abs(one.vector - other.vector), initial=0.0))
        _expect(
            difference <= tolerance, f"vectors differ by {difference:.2g}, more than {tolerance:g}: {what}"
        )


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(f"The extractor breaks the contract: {message}.")
