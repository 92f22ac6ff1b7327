"""Differences of arrays: the changed region, or the changed numbers where they are few and scattered."""

import math

import numpy as np
from numpy.typing import NDArray

from sensorium.observations.values import ArrayValue
from sensorium.representations.delta.base import ArrayDelta, FieldDelta
from sensorium.representations.delta.fields import apply_fields, field_delta

_PLACE = np.dtype("<u4")

Items = NDArray[np.uint8]


def array_delta(old: ArrayValue, new: ArrayValue) -> ArrayDelta | FieldDelta:
    """How an array changed; by its fields when shapes, types or sizes do not fit together."""
    before, after = _items(old), _items(new)
    if before is None or after is None or (old.dtype, old.shape) != (new.dtype, new.shape):
        return field_delta(old, new)
    fields = field_delta(old, new, frozenset({"data"})).changed
    if after.shape != before.shape:
        return field_delta(old, new)
    changed = (before != after).any(axis=-1)
    corners = np.argwhere(changed)
    if not len(corners):
        return ArrayDelta(fields=fields)
    start, end = corners.min(axis=0), corners.max(axis=0) + 1
    item, number = after.shape[-1], len(corners)
    if number * (item + _PLACE.itemsize) < math.prod((end - start).tolist()) * item:
        places = np.flatnonzero(changed).astype(_PLACE)
        return ArrayDelta(places=places.tobytes(), data=after[changed].tobytes(), fields=fields)
    region = tuple(slice(low, high) for low, high in zip(start.tolist(), end.tolist(), strict=True))
    shape = tuple((end - start).tolist())
    return ArrayDelta(start=tuple(start.tolist()), shape=shape, data=after[region].tobytes(), fields=fields)


def apply_array(old: ArrayValue, delta: ArrayDelta) -> ArrayValue:
    """The new array.

    Raises:
        ValueError, TypeError, KeyError, IndexError: The change does not fit.
    """
    if not delta.data:
        return apply_fields(old, delta.fields)
    items = _items(old)
    if items is None:
        raise ValueError(f"an array of shape {old.shape} has no numbers, or not as many as its shape says")
    items = items.copy()
    data = np.frombuffer(delta.data, np.uint8)
    if delta.places is not None:
        flat = items.reshape(-1, items.shape[-1])
        flat[np.frombuffer(delta.places, _PLACE)] = data.reshape(-1, items.shape[-1])
        items = flat
    else:
        if len(delta.start) != items.ndim - 1 or min(delta.start, default=0) < 0:
            raise ValueError(f"a region at {delta.start} of an array of shape {old.shape}")
        region = tuple(slice(low, low + size) for low, size in zip(delta.start, delta.shape, strict=True))
        items[region] = data.reshape(*delta.shape, items.shape[-1])
    return apply_fields(old, delta.fields, {"data": items.tobytes()})


def changed_places(old: ArrayValue, new: ArrayValue) -> NDArray[np.intp] | None:
    """Where numbers of an array differ, (N, dimensions); None when they cannot be compared one by one."""
    before, after = _items(old), _items(new)
    if before is None or after is None or old.dtype != new.dtype or before.shape != after.shape:
        return None
    return np.argwhere((before != after).any(axis=-1))


def _items(value: ArrayValue) -> Items | None:
    """The bytes of an array, (*shape, bytes per number) uint8; None when they are not there or do not fit."""
    count = math.prod(value.shape)
    if value.data is None or min(value.shape, default=1) < 0 or not 0 < count < 2**32:
        return None
    size, rest = divmod(len(value.data), count)
    if rest or not size:
        return None
    return np.frombuffer(value.data, np.uint8).reshape(*value.shape, size)
