"""What every encoder returns: tokens to attend to, and a summary of them."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor


class Tokens(NamedTuple):
    """One sensor's readings, encoded."""

    values: Float[Tensor, "batch tokens channels"]
    """Tokens that other senses may attend to, in the encoder's own width, without position."""
    mask: Bool[Tensor, "batch tokens"] | None
    """True where a token exists, for texts and the like; None: all of them."""
    summary: Float[Tensor, "batch dim"]
    """The whole reading in one vector of the fusion's width; position is not pooled away."""

    def at(self, rows: Tensor) -> "Tokens":
        """Gather rows, e.g. one per step from one per episode."""
        # index_select: its gradient adds whole rows, that of indexing adds single elements
        return Tokens(
            self.values.index_select(0, rows),
            None if self.mask is None else self.mask.index_select(0, rows),
            self.summary.index_select(0, rows),
        )


class TokenShape(NamedTuple):
    """Number and width of the tokens that an encoder returns."""

    num_tokens: int
    channels: int


def scale_pixels(pixels: Shaped[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Bring uint8 pixels from 0 .. 255 to about -1 .. 1; float32 readings pass unchanged.

    Called after patches are cut, while a pixel is still one byte: cutting moves a quarter of the memory.
    """
    return (pixels.to(torch.float32) - 127.5).mul_(1.0 / 127.5) if pixels.dtype == torch.uint8 else pixels
