"""Vectors of pictures: by a packaged backbone, or by CLIP, SigLIP, BLIP or another vision model."""

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sensorium.core import FeatureError, MissingDependencyError, SensoriumError, boundary, require
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.model_stamp import model_stamp
from sensorium.features.extractors.pixels import decode_picture, has_picture
from sensorium.features.extractors.vision_config import ImageEmbeddingConfig
from sensorium.features.models import PACKAGED_MODELS, find_model
from sensorium.observations.base import Part

if TYPE_CHECKING:
    from PIL import Image


@runtime_checkable
class PictureEncoder(Protocol):
    """A loaded model."""

    def encode_pictures(self, pictures: Sequence["Image.Image"]) -> NDArray[np.float32]:
        """Encode pictures of mode RGB: (B, D)."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts into the same space: (B, D).

        Raises:
            FeatureError: The model has no tower for text.
        """
        ...


class ImageEmbedding:
    """A vector of length 1 per picture; pictures of similar things have a cosine near 1.

    ``vector`` is what counts; ``data`` says ``model`` and ``dim``, ``summary`` is empty.

    Args:
        config: Model, batch size, device.
    """

    name = "image_embedding"

    def __init__(self, config: ImageEmbeddingConfig | None = None) -> None:
        self.config = config or ImageEmbeddingConfig()
        self._lock = threading.Lock()
        self._encoder: PictureEncoder | None = None

    @functools.cached_property
    def version(self) -> str:
        """Changes with code, settings and weights; not with batch size and device."""
        settings = self.config.digest(exclude={"batch_size", "device"})
        return f"1-{settings}-{model_stamp(self.config.model)}"

    def accepts(self, part: Part) -> bool:
        """Pictures whose bytes are there."""
        return has_picture(part)

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """See `Extractor`; `batch_size` pictures are computed at once."""
        self._loaded()
        size = self.config.batch_size
        batches = [parts[start : start + size] for start in range(0, len(parts), size)]
        return tuple(features for batch in batches for features in self._batch(batch))

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts whose cosine with a picture's vector says how well they describe it.

        Args:
            texts: For instance ``["a photo of a cat", "a bar chart"]``.

        Returns:
            (B, D) float32, each of length 1.

        Raises:
            FeatureError: The model has no tower for text (only CLIP, SigLIP and the like have).
            MissingDependencyError: torch, transformers or the model is not installed.
        """
        encoder = self._loaded()
        with boundary(FeatureError, f"Model {self.config.model!r} failed on texts"):
            return _of_length_one(encoder.encode_texts(texts))

    def _batch(self, parts: Sequence[Part]) -> list[Features]:
        pictures: dict[int, Image.Image] = {}
        reasons: dict[int, str] = {}
        for number, part in enumerate(parts):
            try:
                pictures[number] = decode_picture(part, max_pixels=self.config.max_pixels)
            except MissingDependencyError:
                raise
            except SensoriumError as error:
                reasons[number] = str(error)
        vectors: dict[int, NDArray[np.float32]] = {}
        if pictures:
            with boundary(FeatureError, f"Model {self.config.model!r} failed on pictures"):
                encoded = _of_length_one(self._loaded().encode_pictures(list(pictures.values())))
            vectors = dict(zip(pictures, encoded, strict=True))
        return [
            Features(
                part_id=part.id,
                extractor=self.name,
                version=self.version,
                vector=vectors.get(number),
                data={"model": self.config.model, "dim": len(vectors[number])} if number in vectors else {},
                unavailable=reasons.get(number),
            )
            for number, part in enumerate(parts)
        ]

    def _loaded(self) -> PictureEncoder:
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load()
            return self._encoder

    def _load(self) -> PictureEncoder:
        require("torch", extra="rl", purpose="vectors of pictures")
        model, device = self.config.model, self.config.device
        found = find_model(model)
        packaged = PACKAGED_MODELS.get(model)
        if packaged is not None and isinstance(found, Path) and (found / packaged.marker).suffix == ".pth":
            from sensorium.features.extractors.picture_encoders import Lite0Encoder

            with boundary(FeatureError, f"Packaged model {model!r} cannot be loaded"):
                return Lite0Encoder(found / packaged.marker, device)
        require("transformers", extra="language", purpose=f"vectors of pictures by {model}")
        from sensorium.features.extractors.picture_encoders import TransformersEncoder

        return TransformersEncoder(found, device)


def _of_length_one(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.maximum(norms, 1e-12)).astype(np.float32)
    return scaled
