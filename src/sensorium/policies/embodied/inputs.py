"""From what an environment offers to what a policy network is built for."""

from collections.abc import Mapping

import numpy as np

from sensorium.core import Modality, PolicyError
from sensorium.envs.embodied.base import SensorSpec
from sensorium.features.base import FrozenTextEncoder
from sensorium.representations.tensors import SensorInput


def sensor_inputs(
    sensors: Mapping[str, SensorSpec], text_encoder: FrozenTextEncoder | None
) -> tuple[SensorInput, ...]:
    """Describe each sensor to the policy, canonical order.

    Texts become (tokens, dim) embeddings of `text_encoder`; texts and per-episode readings are tabled.

    Raises:
        PolicyError: A sensor is text and no text encoder was given, or has no fixed shape.
    """
    return tuple(_input(spec, text_encoder) for spec in sensors.values())


def _input(spec: SensorSpec, text_encoder: FrozenTextEncoder | None) -> SensorInput:
    is_text = spec.modality is Modality.TEXT
    if is_text and text_encoder is None:
        raise PolicyError(f"Sensor {spec.name!r} is text; choose a text encoder (setting `text`).")
    shape = (text_encoder.max_tokens, text_encoder.dim) if is_text and text_encoder else spec.space.shape
    if shape is None:
        raise PolicyError(f"Sensor {spec.name!r} has no fixed shape (its space is {spec.space}).")
    tabled = is_text or spec.per_episode
    return SensorInput(
        name=spec.name,
        modality=spec.modality,
        shape=tuple(shape),
        dtype="float32" if tabled else np.dtype(spec.space.dtype).name,
        tabled=tabled,
        normalise=spec.normalise and not is_text,
        encoder=text_encoder.identity if is_text and text_encoder else "",
    )
