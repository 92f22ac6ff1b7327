"""What a text encoder offers: sentences in, one vector per token and a mask out, never trained."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class TextEmbedding(NamedTuple):
    """Sentences as vectors; B sentences, L = `max_tokens` of the encoder, D = its `dim`."""

    tokens: NDArray[np.float32]
    """(B, L, D); rows behind the end of a sentence are zero."""
    mask: NDArray[np.bool_]
    """(B, L), True where there is a token; all False for an empty sentence, which is a normal value."""

    def pooled(self) -> NDArray[np.float32]:
        """Mean over the tokens of each sentence, (B, D); zero for an empty one."""
        counts = np.maximum(self.mask.sum(axis=1, keepdims=True), 1).astype(np.float32)
        mean: NDArray[np.float32] = self.tokens.sum(axis=1, dtype=np.float32) / counts
        return mean


@runtime_checkable
class FrozenTextEncoder(Protocol):
    """A text encoder whose output for a sentence never changes, so that it can be cached."""

    @property
    def dim(self) -> int:
        """Width D of a token vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens per sentence, L; longer sentences are cut, with a warning."""
        ...

    @property
    def identity(self) -> str:
        """Name and hash: two encoders with the same identity give the same vectors."""
        ...

    def encode(self, texts: Sequence[str]) -> TextEmbedding:
        """Encode sentences; text of nothing but white space has no tokens.

        Returns:
            tokens (B, L, D) float32 and mask (B, L) bool, fresh arrays.
        """
        ...
