"""Observations of OpenEnv as raw states: pictures are found in them, however an environment sends them."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np

from sensorium.core import Modality
from sensorium.observations import Source

_MAGIC = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
"""How PNG, JPEG, GIF and WebP begin in base64."""
_MIN_BASE64_CHARS = 64
_MIN_SIDE = 4
_PICTURE_NAMES = ("screen", "image", "img", "frame", "rgb", "pixel", "picture", "camera", "render")
_UNSEEN = ("done", "reward")


def raw_state(observation: Mapping[str, Any]) -> dict[str, Any] | None:
    """Name -> raw state of an observation; None when there is nothing in it.

    Pictures are: a ``data:`` URL; base64 of PNG, JPEG, GIF or WebP; numbers from 0 to 255 nested as height,
    width and 1, 3 or 4 channels; a flat list of them with its shape in the field ``<name>_shape``; and, for
    fields that are called like a picture, also two dimensions, or the channels in front.
    """
    seen: dict[str, Any] = {}
    shapes = set()
    for name, value in observation.items():
        if value is None or name in _UNSEEN or (name == "metadata" and not value):
            continue
        shape = observation.get(f"{name}_shape")
        picture = picture_of(name, value, shape)
        if picture is not None:
            shapes.add(f"{name}_shape")
        seen[name] = value if picture is None else picture
    return {name: value for name, value in seen.items() if name not in shapes} or None


def picture_of(name: str, value: Any, shape: Any = None) -> Source | None:
    """The picture in a field; None when it is none.

    Args:
        name: Of the field.
        value: As it came in JSON.
        shape: What another field says of its shape.
    """
    if isinstance(value, str):
        data = _decoded(value)
        return Source(data, modality=Modality.IMAGE) if data else None
    if not isinstance(value, list) or not value:
        return None
    named = any(word in name.lower() for word in _PICTURE_NAMES)
    pixels = _pixels(value, shape)
    if pixels is None:
        return None
    if pixels.ndim == 2 and named:
        pixels = pixels[:, :, None]
    elif pixels.ndim == 3 and pixels.shape[2] not in (1, 3, 4) and pixels.shape[0] in (1, 3, 4) and named:
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3, 4) or min(pixels.shape[:2]) < _MIN_SIDE:
        return None
    if pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    return Source(np.ascontiguousarray(pixels), modality=Modality.IMAGE)


def _pixels(value: list[Any], shape: Any) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    """Nested or flat numbers from 0 to 255 as an array; None for anything else."""
    first: Any = value
    depth = 0
    while isinstance(first, list) and first and depth < 4:
        first, depth = first[0], depth + 1
    if isinstance(first, bool) or not isinstance(first, int):
        return None
    if depth == 1 and not (isinstance(shape, list) and all(isinstance(n, int) and n > 0 for n in shape)):
        return None
    try:
        numbers = np.asarray(value)
        numbers = numbers.reshape(shape) if depth == 1 else numbers
    except (ValueError, OverflowError):  # rows of different lengths, or a shape that does not fit
        return None
    if numbers.dtype.kind != "i" or not numbers.size or numbers.min() < 0 or numbers.max() > 255:
        return None
    return numbers.astype(np.uint8)


def _decoded(text: str) -> bytes | None:
    if text.startswith("data:image/"):
        text = text.partition(",")[2]
    if len(text) < _MIN_BASE64_CHARS or not text.startswith(_MAGIC):
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
