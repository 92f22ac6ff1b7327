"""What every encoder returns: tokens to attend to, and a summary of them."""

from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.nn import functional


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

    def joined(self, other: "Tokens") -> "Tokens":
        """Rows of both, these first."""
        masks = None if self.mask is None or other.mask is None else torch.cat([self.mask, other.mask])
        return Tokens(torch.cat([self.values, other.values]), masks, torch.cat([self.summary, other.summary]))


class TokenShape(NamedTuple):
    """Number and width of the tokens that an encoder returns."""

    num_tokens: int
    channels: int


def cut_patches(
    frames: Shaped[Tensor, "*batch height width channels"], patch_size: int
) -> Shaped[Tensor, "*batch rows columns values"]:
    """Cut frames into patches, row by row; uint8 pixels are cut while they are still one byte."""
    return rearrange(frames, "... (h p) (w q) c -> ... h w (p q c)", p=patch_size, q=patch_size)


def project_pixels(
    patches: Shaped[Tensor, "*batch values"], weight: Float[Tensor, "channels values"]
) -> Float[Tensor, "*batch channels"]:
    """Linear map of patches; uint8 pixels count as (x - 127.5) / 127.5, float32 readings as they are.

    Scaling the weights costs nothing; scaling the pixels would go twice over the largest tensor there is.
    """
    if patches.dtype == torch.uint8:
        return functional.linear(patches.to(torch.float32), weight / 127.5, -weight.sum(-1))
    return functional.linear(patches, weight)
