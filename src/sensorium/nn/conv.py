"""A small convolutional encoder of images: fast where a transformer is not."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from sensorium.nn.config import ConvConfig
from sensorium.nn.tokens import Tokens


class ConvEncoder(nn.Module):
    """Patches, strided 3x3 convolutions, one token per remaining cell with a learned position.

    Args:
        config: Channels and patch size.
        image_size: (height, width) of a frame, pixels; multiples of `config.patch_size`.
        in_channels: 3 for rgb, 1 for depth.
        embed_dim: Width of a token.
    """

    num_frames = 1

    def __init__(
        self, config: ConvConfig, image_size: tuple[int, int], in_channels: int, embed_dim: int
    ) -> None:
        super().__init__()
        first, *rest = config.channels
        patch = config.patch_size
        self.patch_size = patch
        self.patches = nn.Linear(in_channels * patch**2, first)
        layers: list[nn.Module] = []
        height, width = image_size[0] // patch, image_size[1] // patch
        for before, after in zip(config.channels, rest, strict=False):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
            height, width = (height + 1) // 2, (width + 1) // 2
        self.layers = nn.Sequential(*layers)
        self.project = nn.Linear(config.channels[-1], embed_dim)
        self.position = nn.Parameter(torch.randn(height * width, embed_dim) * 0.02)
        self.summarise = nn.Linear(height * width * config.channels[-1], embed_dim)

    def forward(self, frames: Float[Tensor, "batch channels height width"]) -> Tokens:
        """Encode frames, values about [0, 1] (rgb) or normalised (depth)."""
        p = self.patch_size
        patches = rearrange(frames, "b c (h p) (w q) -> b h w (c p q)", p=p, q=p)
        cells = self.layers(torch.relu(self.patches(patches)).permute(0, 3, 1, 2))
        cells = rearrange(cells, "b c h w -> b (h w) c")
        values = self.project(cells) + self.position
        mask = torch.ones(values.shape[:2], dtype=torch.bool, device=values.device)
        return Tokens(values, mask, self.summarise(cells.flatten(1)))
