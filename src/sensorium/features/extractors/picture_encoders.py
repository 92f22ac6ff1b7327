"""Loaded vision models in torch: the packaged backbone, and whatever transformers can load."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from sensorium.core import FeatureError, MissingDependencyError
from sensorium.core.quiet import without_progress_bars
from sensorium.features.extractors.vision_backbone import IMAGE_SIDE, load_lite0


class Lite0Encoder:
    """EfficientNet-Lite0: the whole picture, squeezed into a square, to 1280 features.

    Args:
        path: File with its weights.
        device: Where torch computes.
    """

    def __init__(self, path: Path, device: str) -> None:
        self._device = device
        self._model = load_lite0(path, device)

    def encode_pictures(self, pictures: Sequence[Image.Image]) -> NDArray[np.float32]:
        """Encode pictures of mode RGB: (B, 1280)."""
        side = (IMAGE_SIDE, IMAGE_SIDE)
        squares = [np.asarray(picture.resize(side, Image.Resampling.BICUBIC)) for picture in pictures]
        pixels = (np.stack(squares).astype(np.float32) - 127.0) / 128.0
        with torch.inference_mode():
            features = self._model(torch.from_numpy(pixels).permute(0, 3, 1, 2).to(self._device))
        return _as_array(features)

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """It has never seen text.

        Raises:
            FeatureError: Always.
        """
        raise _no_text("efficientnet-lite0")


class TransformersEncoder:
    """A model that transformers loads: CLIP, SigLIP, BLIP and others with two towers, or one for vision only.

    Args:
        model: Folder in Hugging Face format, or name on the hub.
        device: Where torch computes.

    Raises:
        MissingDependencyError: The model cannot be loaded.
    """

    def __init__(self, model: Path | str, device: str) -> None:
        import transformers

        self._name, self._device = str(model), device
        is_local = isinstance(model, Path)
        try:
            with without_progress_bars(transformers):
                self._processor = transformers.AutoImageProcessor.from_pretrained(
                    model, backend="pil", local_files_only=is_local
                )
                loaded = transformers.AutoModel.from_pretrained(
                    model, local_files_only=is_local, use_safetensors=True, dtype=torch.float32
                )
        except Exception as error:
            reason = (str(error).strip().splitlines() or [""])[0]
            raise MissingDependencyError(
                f"Vision model {self._name} cannot be loaded ({type(error).__name__}: {reason}). Expected "
                f"a folder in Hugging Face format (config.json, preprocessor_config.json, *.safetensors), a "
                f"name on the hub, or the packaged efficientnet-lite0."
            ) from error
        self._model: Any = loaded.to(device).eval().requires_grad_(False)
        self._tokenizer: Any = None

    def encode_pictures(self, pictures: Sequence[Image.Image]) -> NDArray[np.float32]:
        """Encode pictures of mode RGB: (B, D)."""
        inputs = self._processor(images=list(pictures), return_tensors="pt").to(self._device)
        with torch.inference_mode():
            if hasattr(self._model, "get_image_features"):
                output = self._model.get_image_features(**inputs)
            else:
                output = self._model(**inputs)
        return _as_array(_pooled(output))

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts into the same space, cut to the length that the model reads: (B, D).

        Raises:
            FeatureError: The model has no tower for text.
        """
        if not hasattr(self._model, "get_text_features"):
            raise _no_text(self._name)
        tokenizer = self._loaded_tokenizer()
        limit = self._text_positions()
        # SigLIP was trained with padding to the full length, and so are its tokenizers' files.
        padding = "max_length" if "siglip" in self._model.config.model_type else True
        inputs = tokenizer(
            list(texts), padding=padding, truncation=True, max_length=limit, return_tensors="pt"
        )
        known = inspect.signature(self._model.get_text_features).parameters
        fitting = {key: value.to(self._device) for key, value in inputs.items() if key in known}
        with torch.inference_mode():
            output = self._model.get_text_features(**fitting)
        return _as_array(_pooled(output))

    def _loaded_tokenizer(self) -> Any:
        if self._tokenizer is None:
            import transformers

            with without_progress_bars(transformers):
                self._tokenizer = transformers.AutoTokenizer.from_pretrained(
                    self._name, local_files_only=Path(self._name).is_dir()
                )
        return self._tokenizer

    def _text_positions(self) -> int:
        text_config = getattr(self._model.config, "text_config", self._model.config)
        return int(getattr(text_config, "max_position_embeddings", 77))


def _pooled(output: Any) -> torch.Tensor:
    """One vector per item, from a tensor or from the outputs of a model."""
    if isinstance(output, torch.Tensor):
        return output
    pooled = getattr(output, "pooler_output", None)
    if pooled is None:
        hidden: torch.Tensor = output.last_hidden_state
        # (B, tokens, D) of a transformer, or (B, D, H, W) of a convolutional network.
        pooled = hidden.mean(dim=1) if hidden.ndim == 3 else hidden
    result: torch.Tensor = pooled.mean(dim=(2, 3)) if pooled.ndim == 4 else pooled
    return result


def _as_array(vectors: torch.Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = vectors.float().cpu().numpy()
    return array


def _no_text(model: str) -> FeatureError:
    return FeatureError(
        f"Model {model} cannot compare pictures with texts; set model to a CLIP, SigLIP or BLIP one."
    )
