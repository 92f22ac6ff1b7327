"""A frozen, pretrained text encoder; every sentence is computed once and then read from a cache."""

import contextlib
import json
import os
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ConfigError, FeatureError, boundary, require
from sensorium.core.errors import unknown_name
from sensorium.core.quiet import without_progress_bars
from sensorium.features.base import FrozenTextEncoder, TextEmbedding
from sensorium.features.config import HashedTextConfig, PretrainedTextConfig
from sensorium.features.disk_cache import ArrayCache, cache_folder
from sensorium.features.fingerprint import model_fingerprint
from sensorium.features.hashed_text import HashedTextEncoder
from sensorium.features.models import PACKAGED_MODELS, find_model
from sensorium.features.precision import PrecisionTrial, choose_precision

_MEMORY_ENTRIES = 4096
_DTYPES = ("auto", "float32", "bfloat16", "float16")
_HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")


class TextEncoder:
    """The last hidden states of a pretrained BERT-class model or causal LM.

    Vectors are kept in memory and under ``cache_folder("text")``, by weights, precision and sentence. torch
    and transformers are imported, and the weights loaded, only when a sentence is met for the first time.
    Sentences are computed one by one, so that a vector does not depend on which others were asked for with
    it. The model is never trained: no gradients, no dropout.

    Args:
        model: Packaged model such as ``"minilm"`` (fetched when it is not on this machine), folder in Hugging
            Face format, or name on the hub.
        max_tokens: Tokens per sentence, marks of beginning and end included; the rest is cut, with a warning.
        device: Where torch computes, e.g. ``"cpu"`` or ``"cuda"``.
        dtype: ``"float32"``, ``"bfloat16"``, ``"float16"``, or ``"auto"``: bfloat16 where a trial on this
            machine shows that it is faster and says the same, see `choose_precision`.

    Attributes:
        dtype: Precision in which the model computes, never ``"auto"``.
        trial: Figures behind the choice; None unless it was ``"auto"``.
        weights_sha256: Hash of weights, tokenizer and config.

    Raises:
        FeatureError: The model cannot be found, fetched or read, or is no text encoder.
        ConfigError: max_tokens is not positive, or more than the model has positions for; an unknown dtype.
    """

    def __init__(
        self, model: str = "minilm", *, max_tokens: int = 24, device: str = "cpu", dtype: str = "float32"
    ) -> None:
        self.max_tokens = max_tokens
        self._device = device
        found = find_model(model)
        self._folder = found if isinstance(found, Path) else _hub_folder(found)
        self.weights_sha256 = model_fingerprint(self._folder)
        self._name = model if model in PACKAGED_MODELS or found == model else self._folder.resolve().name
        sizes = _read_sizes(self._folder)
        self.dim: int = sizes["dim"]
        if not 1 <= max_tokens <= sizes["positions"]:
            raise ConfigError(
                f"max_tokens must be between 1 and {sizes['positions']}, the positions that {model!r} has; "
                f"found {max_tokens}."
            )
        self._memory: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._cache = ArrayCache(cache_folder("text"))
        self._loaded: tuple[Any, Any] | None = None
        self._warned = False
        if dtype not in _DTYPES:
            raise unknown_name("dtype", dtype, _DTYPES)
        self.dtype: str = dtype
        self.trial: PrecisionTrial | None = None
        if dtype == "auto":
            self.trial = self._try_precisions()
            self.dtype = self.trial.choice

    @property
    def identity(self) -> str:
        """Name, first eight digits of the hash of the weights, and a precision that is not float32.

        For instance ``"minilm-1a2b3c4d"`` or ``"minilm-1a2b3c4d-bfloat16"``.
        """
        precision = "" if self.dtype == "float32" else f"-{self.dtype}"
        return f"{self._name}-{self.weights_sha256[:8]}{precision}"

    def encode(self, texts: Sequence[str]) -> TextEmbedding:
        """Encode sentences; text of nothing but white space has no tokens.

        Returns:
            tokens (B, max_tokens, dim) float32 and mask (B, max_tokens) bool, fresh arrays.

        Raises:
            FeatureError: The model could not be loaded or run.
            MissingDependencyError: A sentence is new, and torch or transformers is not installed.
        """
        tokens = np.zeros((len(texts), self.max_tokens, self.dim), np.float32)
        mask = np.zeros((len(texts), self.max_tokens), np.bool_)
        for row, text in enumerate(texts):
            vectors = self._vectors(text)
            tokens[row, : len(vectors)] = vectors
            mask[row, : len(vectors)] = True
        return TextEmbedding(tokens, mask)

    def _vectors(self, text: str) -> NDArray[np.float32]:
        """Vectors of one sentence without padding, (tokens, dim), from the nearest place that has them."""
        vectors = self._memory.get(text)
        if vectors is not None:
            self._memory.move_to_end(text)
            return vectors
        if not text.strip():
            return np.zeros((0, self.dim), np.float32)
        key = f"{self.weights_sha256}\x1f{self.dtype}\x1f{self.max_tokens}\x1f{text}"
        vectors = self._cache.load(key)
        if vectors is None or not self._fits(vectors):
            with boundary(FeatureError, f"Text encoder {self.identity} failed on {text!r}"):
                vectors = self._compute(text)
            self._cache.store(key, vectors)
        self._memory[text] = vectors
        if len(self._memory) > _MEMORY_ENTRIES:
            self._memory.popitem(last=False)
        return vectors

    def _fits(self, vectors: NDArray[Any]) -> bool:
        is_shape = vectors.ndim == 2 and vectors.shape[1] == self.dim and len(vectors) <= self.max_tokens
        return is_shape and vectors.dtype == np.float32

    def _compute(self, text: str) -> NDArray[np.float32]:
        torch = require("torch", extra="rl", purpose="the pretrained text encoder")
        tokenizer, model = self._load()
        full_length = len(tokenizer(text)["input_ids"])
        if full_length == 0:
            return np.zeros((0, self.dim), np.float32)
        if full_length > self.max_tokens and not self._warned:
            self._warned = True  # once: an environment may have thousands of such texts
            warnings.warn(
                f"A text of {full_length} tokens was cut to {self.max_tokens}, and so will be others; "
                f"raise max_tokens: {text!r}",
                stacklevel=4,
            )
        inputs = tokenizer(text, truncation=True, max_length=self.max_tokens, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**inputs.to(self._device)).last_hidden_state[0]
        vectors: NDArray[np.float32] = hidden.float().cpu().numpy()
        return vectors

    def load(self) -> tuple[Any, Any]:
        """Tokenizer and frozen model, for those who batch or pool by themselves; read at the first call.

        Raises:
            FeatureError: The files of the model cannot be read.
            MissingDependencyError: torch or transformers is not installed.
        """
        with boundary(FeatureError, f"Text encoder {self.identity} could not be read"):
            return self._load()

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            self._loaded = self._read(self.dtype)
        return self._loaded

    def _read(self, dtype: str) -> tuple[Any, Any]:
        """Tokenizer and model, frozen."""
        torch = require("torch", extra="rl", purpose="the pretrained text encoder")
        transformers = require("transformers", extra="language", purpose="the pretrained text encoder")
        # Threads of a tokenizer that meets one sentence at a time only bring a warning when a worker forks.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        with without_progress_bars(transformers):
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._folder, local_files_only=True)
            model = transformers.AutoModel.from_pretrained(
                self._folder, local_files_only=True, use_safetensors=True, dtype=getattr(torch, dtype)
            )
        return tokenizer, model.to(self._device).eval().requires_grad_(False)

    def _try_precisions(self) -> PrecisionTrial:
        with boundary(FeatureError, f"Text encoder {self._name} failed in the trial of its precisions"):
            return choose_precision(self._name, self.weights_sha256, self._device, self._read)


def build_text_encoder(
    config: PretrainedTextConfig | HashedTextConfig, *, device: str = "cpu"
) -> FrozenTextEncoder:
    """Build the encoder that a config describes.

    Args:
        config: A `TextEncoderConfig`.
        device: Where a pretrained model computes.

    Raises:
        FeatureError: A pretrained model cannot be found, fetched or read.
    """
    if isinstance(config, HashedTextConfig):
        return HashedTextEncoder(config.dim, max_tokens=config.max_tokens)
    return TextEncoder(config.model, max_tokens=config.max_tokens, device=device, dtype=config.dtype)


def _hub_folder(name: str) -> Path:
    """Folder of a hub model: as it was downloaded before, else downloaded now."""
    hub = require("huggingface_hub", extra="language", purpose=f"model {name!r} from the Hugging Face hub")
    with contextlib.suppress(Exception):  # not downloaded yet
        return Path(hub.snapshot_download(name, allow_patterns=_HUB_FILES, local_files_only=True))
    try:
        return Path(hub.snapshot_download(name, allow_patterns=_HUB_FILES))
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FeatureError(
            f"Model {name!r} is neither a local folder nor a packaged model ({', '.join(PACKAGED_MODELS)}), "
            f"and the Hugging Face hub did not give it: {reason} Check the name and the network, or use a "
            f"packaged model."
        ) from error


def _read_sizes(folder: Path) -> dict[str, int]:
    try:
        config = json.loads((folder / "config.json").read_text())
        dim = next(config[key] for key in ("hidden_size", "n_embd", "d_model", "dim") if key in config)
        positions = next(
            (config[key] for key in ("max_position_embeddings", "n_positions") if key in config), 512
        )
        sizes = {"dim": int(dim), "positions": int(positions)}
    except (OSError, ValueError, StopIteration) as error:
        raise FeatureError(
            f"{folder / 'config.json'} does not tell the width of a text model (hidden_size, n_embd, d_model "
            f"or dim); expected a BERT-class model or a causal LM."
        ) from error
    if config.get("is_encoder_decoder"):
        raise FeatureError(
            f"{folder} holds an encoder-decoder ({config.get('model_type')}); expected a BERT-class model or "
            f"a causal LM."
        )
    return sizes
