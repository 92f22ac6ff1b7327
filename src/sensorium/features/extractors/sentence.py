"""Sentence embeddings: what a part is about, as one vector of length 1."""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sensorium.core import Config, FeatureError, MissingDependencyError, require
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.words import has_words, words_of
from sensorium.features.text_encoder import TextEncoder
from sensorium.observations.base import Part

_RULES = "1"
"""Changes when the way from text to vector does."""


class SentenceConfig(Config):
    """Settings of the extractor ``sentence``."""

    model: str = "minilm"
    """Packaged model, folder in Hugging Face format, or name on the hub, of a sentence encoder whose vectors
    are the mean over tokens."""
    max_tokens: int = Field(default=256, ge=8)
    """Tokens that the model sees at once; a longer text is taken apart."""
    max_chunks: int = Field(default=16, ge=1)
    """Pieces of one text that are read; of a longer text as many, spread evenly from beginning to end."""
    batch_size: int = Field(default=16, ge=1)
    """Pieces that are computed together."""
    device: str = "cpu"
    """Where torch computes, e.g. ``cuda``."""


class _Pieces(NamedTuple):
    """One text as token ids."""

    ids: list[list[int]]
    """Each with the marks of beginning and end."""
    num_tokens: int
    """Of the whole text, estimated where not all of it was read; marks not counted."""
    is_partial: bool


class Sentence:
    """Mean of the token vectors of a sentence encoder, normalised to length 1.

    A text longer than the model's window is taken apart: ``normalise(sum_i n_i v_i)``, where v_i is the unit
    vector of piece i and n_i its number of tokens, so that every token counts alike.

    Args:
        config: Settings.

    Source: Reimers, Gurevych 2019, "Sentence-BERT", section 3 (mean pooling).
    """

    name = "sentence"

    def __init__(self, config: SentenceConfig | None = None) -> None:
        self.config = config or SentenceConfig()
        self._encoder: TextEncoder | None = None
        self._marks: tuple[list[int], list[int]] | None = None
        self._lock = threading.RLock()

    @property
    def version(self) -> str:
        """Model, hash of its weights, and limits.

        Raises:
            MissingDependencyError: The model is not on this machine and cannot be fetched.
        """
        config = self.config
        return f"{_RULES}-{self._model().identity}-{config.max_tokens}-{config.max_chunks}"

    @property
    def dim(self) -> int:
        """Width of the vectors, e.g. 384 of MiniLM."""
        return self._model().dim

    def accepts(self, part: Part) -> bool:
        """Whether the part says something in words."""
        return has_words(part)

    def __call__(self, parts: Sequence[Part]) -> list[Features]:
        """Embed parts.

        Raises:
            MissingDependencyError: torch, transformers or the model is missing.
            FeatureError: The model could not be read.
        """
        texts = [words_of(part) or "" for part in parts]
        pieces = [self._pieces(text) for text in texts]
        vectors = self._vectors(pieces)
        version = self.version
        found = []
        for part, (ids, num_tokens, is_partial), vector in zip(parts, pieces, vectors, strict=True):
            data: dict[str, Any] = {"tokens": num_tokens, "pieces": len(ids)}
            if is_partial:
                data["is_partial"] = True
            is_empty = not ids
            found.append(
                Features(
                    part_id=part.id,
                    extractor=self.name,
                    version=version,
                    vector=None if is_empty else vector,
                    data=data,
                )
            )
        return found

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts, e.g. a task to compare parts with.

        Returns:
            (N, D) float32 of length 1; a text without words is all zeros.

        Raises:
            MissingDependencyError: torch, transformers or the model is missing.
            FeatureError: The model could not be read.
        """
        return self._vectors([self._pieces(text) for text in texts])

    def _model(self) -> TextEncoder:
        with self._lock:
            if self._encoder is None:
                try:
                    self._encoder = TextEncoder(
                        self.config.model, max_tokens=self.config.max_tokens, device=self.config.device
                    )
                except FeatureError as error:
                    raise MissingDependencyError(f"sentence embeddings need a model. {error}") from error
            return self._encoder

    def _pieces(self, text: str) -> _Pieces:
        """Token ids of a text in pieces that the model can read; none of white space."""
        if not text.strip():
            return _Pieces([], 0, False)
        with self._lock:
            tokenizer, _ = self._model().load()
            self._marks = self._marks or _marks(tokenizer)
            before, after = self._marks
            size = self.config.max_tokens - len(before) - len(after)
            most = size * self.config.max_chunks
            windows = _windows(text, most * 4)
            kept = tokenizer(windows, add_special_tokens=False, verbose=False)["input_ids"]
            ids = [token for window in kept for token in window]
            read = sum(map(len, windows))
            is_partial = read < len(text) or len(ids) > most
            num_tokens = round(len(ids) * len(text) / read)
            chunks = [ids[start : start + size] for start in range(0, len(ids), size)]
            if len(chunks) > self.config.max_chunks:
                places = np.linspace(0, len(chunks) - 1, self.config.max_chunks).round().astype(int)
                chunks = [chunks[place] for place in places]
            return _Pieces([before + chunk + after for chunk in chunks], num_tokens, is_partial)

    def _vectors(self, texts: Sequence[_Pieces]) -> NDArray[np.float32]:
        """(N, D): every text's vector from those of its pieces, (piece, D), weighted by their tokens."""
        vectors = np.zeros((len(texts), self.dim), np.float32)
        owners = [(row, ids) for row, text in enumerate(texts) for ids in text.ids]
        owners.sort(key=lambda owner: len(owner[1]))  # equally long pieces together: little padding
        size = self.config.batch_size
        for start in range(0, len(owners), size):
            batch = owners[start : start + size]
            for (row, ids), vector in zip(batch, self._compute([ids for _, ids in batch]), strict=True):
                vectors[row] += len(ids) * vector
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        normalised: NDArray[np.float32] = vectors / np.maximum(lengths, 1e-12)
        return normalised

    def _compute(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """(B, D) float32 unit vectors of pieces."""
        torch = require("torch", extra="rl", purpose="sentence embeddings")
        tokenizer, model = self._model().load()
        longest = max(map(len, batch))
        ids = torch.full((len(batch), longest), tokenizer.pad_token_id or 0, dtype=torch.long)
        mask = torch.zeros((len(batch), longest), dtype=torch.long)
        for row, piece in enumerate(batch):
            ids[row, : len(piece)] = torch.as_tensor(piece)
            mask[row, : len(piece)] = 1
        ids, mask = ids.to(self.config.device), mask.to(self.config.device)
        with torch.inference_mode():
            hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            pooled = torch.nn.functional.normalize(pooled, dim=1)
        vectors: NDArray[np.float32] = pooled.cpu().numpy()
        return vectors


def _marks(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Token ids that the model expects before and behind a text."""
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    for start in range(len(whole) - len(plain) + 1):
        if whole[start : start + len(plain)] == plain:
            return whole[:start], whole[start + len(plain) :]
    return [], []


def _windows(text: str, max_chars: int) -> list[str]:
    """The text, or eight stretches of it from beginning to end with so many characters together."""
    if len(text) <= max_chars:
        return [text]
    size = max_chars // 8
    starts = np.linspace(0, len(text) - size, 8).astype(int)
    return [text[start : start + size] for start in starts]
