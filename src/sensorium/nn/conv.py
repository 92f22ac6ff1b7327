"""A small convolutional encoder of images: fast where a transformer is not."""

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from sensorium.nn.config import ConvConfig
from sensorium.nn.tokens import Tokens, TokenShape, cut_patches, project_pixels


class ConvEncoder(nn.Module):
    """Convolutions whose stride is their size, so that each is one matrix product; a token per cell.

    Args:
        config: Channels, patch size and merging.
        image_size: (height, width) of a frame, pixels; multiples of `config.cell_size`.
        in_channels: 3 for rgb, 1 for depth.
        embed_dim: Width of the summary.
    """

    num_frames = 1

    def __init__(
        self, config: ConvConfig, image_size: tuple[int, int], in_channels: int, embed_dim: int
    ) -> None:
        super().__init__()
        first, *rest = config.channels
        self.patch_size, self.merge_size = config.patch_size, config.merge_size
        # No bias: its gradient would sum over every patch.
        self.patches = nn.Linear(in_channels * config.patch_size**2, first, bias=False)
        self.merges = nn.ModuleList(
            nn.Linear(before * config.merge_size**2, after)
            for before, after in zip(config.channels, rest, strict=False)
        )
        cells = (image_size[0] // config.cell_size) * (image_size[1] // config.cell_size)
        self.token_shape = TokenShape(cells, config.channels[-1])
        self.summarise = nn.Linear(cells * config.channels[-1], embed_dim)

    def forward(self, frames: Shaped[Tensor, "batch height width channels"]) -> Tokens:
        """Encode frames: uint8 as they come, or float32 about 0."""
        patches = cut_patches(frames, self.patch_size)
        cells = torch.relu(project_pixels(patches, self.patches.weight))
        for merge in self.merges:
            cells = torch.relu(merge(cut_patches(cells, self.merge_size)))
        values = cells.flatten(1, 2)
        return Tokens(values, None, self.summarise(values.flatten(1)))
