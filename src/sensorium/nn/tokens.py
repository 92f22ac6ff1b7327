"""What every encoder returns: tokens to attend to, and a summary of them."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor


class Tokens(NamedTuple):
    """One sensor's readings, encoded."""

    values: Float[Tensor, "batch tokens dim"]
    """Tokens that other senses may attend to."""
    mask: Bool[Tensor, "batch tokens"]
    """True where a token exists; padding and empty texts are False."""
    summary: Float[Tensor, "batch dim"]
    """The whole reading in one vector; position is not pooled away."""

    def at(self, rows: Tensor) -> "Tokens":
        """Gather rows, e.g. one per step from one per episode."""
        return Tokens(
            # index_select: its gradient adds whole rows, that of indexing adds single elements
            self.values.index_select(0, rows),
            self.mask.index_select(0, rows),
            self.summary.index_select(0, rows),
        )
