"""From what an environment offers to what a policy network is built for."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from sensorium.core import Modality, PolicyError
from sensorium.envs.embodied.base import SensorSpec
from sensorium.features.base import FrozenTextEncoder
from sensorium.representations.tensors import SensorInput

_SIGHT = (Modality.IMAGE, Modality.DEPTH)
_LAYOUTS: Mapping[Modality, tuple[tuple[int, ...], str]] = {
    Modality.IMAGE: ((3,), "(height, width, channels)"),
    Modality.DEPTH: ((3,), "(height, width, 1)"),
    Modality.AUDIO: ((2, 3), "log-mel frames (frames, mels) or (ears, frames, mels)"),
    Modality.PROPRIO: ((1,), "(dim,)"),
}
"""Dimensions that a reading may have, and the layout in words."""
_MOST_CHANNELS = 4
"""A frame whose first side is at most this, and whose last is not, has its channels first."""


def sensor_inputs(
    sensors: Mapping[str, SensorSpec], text_encoder: FrozenTextEncoder | None
) -> tuple[SensorInput, ...]:
    """Describe each sensor to the policy, canonical order.

    Texts become (tokens, dim) embeddings of `text_encoder`; texts and per-episode sounds and vectors are
    tabled. Pixels in 0 .. 255 are read as uint8, everything else as float32, whatever dtype the sensor has.

    Raises:
        PolicyError: A sensor is text and no text encoder was given, or has no fixed shape, or a shape that
            no encoder of its modality reads.
    """
    return tuple(_input(spec, text_encoder) for spec in sensors.values())


def _input(spec: SensorSpec, text_encoder: FrozenTextEncoder | None) -> SensorInput:
    is_text = spec.modality is Modality.TEXT
    if is_text and text_encoder is None:
        raise PolicyError(f"Sensor {spec.name!r} is text; choose a text encoder (setting `text`).")
    shape = (text_encoder.max_tokens, text_encoder.dim) if is_text and text_encoder else spec.space.shape
    if shape is None:
        raise PolicyError(f"Sensor {spec.name!r} has no fixed shape (its space is {spec.space}).")
    if not is_text:
        _check_layout(spec, tuple(shape))
    return SensorInput(
        name=spec.name,
        modality=spec.modality,
        shape=tuple(shape),
        dtype="uint8" if _has_byte_pixels(spec) else "float32",
        tabled=is_text or (spec.per_episode and spec.modality not in _SIGHT),
        normalise=spec.normalise and not is_text,
        encoder=text_encoder.identity if is_text and text_encoder else "",
    )


def _check_layout(spec: SensorSpec, shape: tuple[int, ...]) -> None:
    dimensions, layout = _LAYOUTS[spec.modality]
    if len(shape) not in dimensions:
        mend = "Add or merge dimensions in the backend's observe() and in the sensor's space."
        if spec.modality is Modality.AUDIO:
            mend = "Leave env.waveform off to train a policy."
    elif spec.modality in _SIGHT and shape[0] <= _MOST_CHANNELS < shape[-1]:
        mend = "Its channels seem to come first; move them to the end, np.moveaxis(frames, 1, -1)."
    else:
        return
    raise PolicyError(
        f"Sensor {spec.name!r} ({spec.modality}) has shape {shape}; a policy reads it as {layout}. {mend}"
    )


def _has_byte_pixels(spec: SensorSpec) -> bool:
    """Whether this is a picture of whole numbers from 0 to 255, which a byte holds without loss."""
    space = spec.space
    if spec.modality is not Modality.IMAGE or not isinstance(space, spaces.Box):
        return False
    whole = np.issubdtype(space.dtype, np.integer)
    return bool(whole and space.low.min() >= 0 and space.high.max() <= np.iinfo(np.uint8).max)
