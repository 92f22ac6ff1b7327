"""A text encoder without weights: every word has its own fixed, pseudo-random vector."""

import functools
import hashlib
import re
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ConfigError
from sensorium.features.base import TextEmbedding

_WORD = re.compile(r"\w+")


class HashedTextEncoder:
    """One vector per word, uniform in [-sqrt(3), sqrt(3)] (variance 1), drawn from the word's own hash.

    The same word has the same vector on every machine; different words are nearly orthogonal when `dim` is
    large. Case and punctuation do not count, and a vector knows nothing of its position or neighbours.

    Args:
        dim: Width of a word vector.
        max_tokens: Words per sentence; the rest is cut, with a warning.

    Raises:
        ConfigError: A size is not positive.
    """

    def __init__(self, dim: int = 64, *, max_tokens: int = 24) -> None:
        if dim < 1 or max_tokens < 1:
            raise ConfigError(f"dim and max_tokens are at least 1, found {dim} and {max_tokens}.")
        self.dim = dim
        self.max_tokens = max_tokens
        self._warned = False

    @property
    def identity(self) -> str:
        """Name and width; there are no weights that could differ."""
        return f"hashed-{self.dim}"

    def encode(self, texts: Sequence[str]) -> TextEmbedding:
        """Encode sentences word by word; text without a letter or digit has no tokens.

        Returns:
            tokens (B, max_tokens, dim) float32 and mask (B, max_tokens) bool, fresh arrays.
        """
        tokens = np.zeros((len(texts), self.max_tokens, self.dim), np.float32)
        mask = np.zeros((len(texts), self.max_tokens), np.bool_)
        for row, text in enumerate(texts):
            words = _WORD.findall(text.lower())
            if len(words) > self.max_tokens and not self._warned:
                self._warned = True  # once: an environment may have thousands of such texts
                warnings.warn(
                    f"A text of {len(words)} words was cut to {self.max_tokens}, and so will be others; "
                    f"raise max_tokens: {text!r}",
                    stacklevel=2,
                )
            for column, word in enumerate(words[: self.max_tokens]):
                tokens[row, column] = _word_vector(word, self.dim)
                mask[row, column] = True
        return TextEmbedding(tokens, mask)


@functools.lru_cache(maxsize=65_536)
def _word_vector(word: str, dim: int) -> NDArray[np.float32]:
    # The hash is the generator: NumPy may change the stream of its own between versions.
    bits = np.frombuffer(hashlib.shake_256(word.encode()).digest(4 * dim), "<u4")
    vector: NDArray[np.float32] = ((bits / 2**31 - 1.0) * np.sqrt(3.0)).astype(np.float32)
    return vector
