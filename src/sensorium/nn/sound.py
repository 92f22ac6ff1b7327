"""Encoders of log-mel frames, texts and vectors."""

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sensorium.nn.config import SoundConfig
from sensorium.nn.tokens import Tokens


class SoundEncoder(nn.Module):
    """Temporal convolutions over log-mel frames; one token per remaining frame.

    Args:
        config: Channels of the layers.
        shape: (channels, frames, mels) of a reading; channels are ears.
        embed_dim: Width of a token.
    """

    def __init__(self, config: SoundConfig, shape: tuple[int, int, int], embed_dim: int) -> None:
        super().__init__()
        ears, frames, mels = shape
        layers: list[nn.Module] = []
        before = ears * mels
        for after in config.channels:
            stride = 2 if frames > 8 else 1
            layers += [nn.Conv1d(before, after, 3, stride=stride, padding=1), nn.ReLU()]
            frames = (frames + stride - 1) // stride
            before = after
        self.layers = nn.Sequential(*layers)
        self.project = nn.Linear(before, embed_dim)
        self.position = nn.Parameter(torch.randn(frames, embed_dim) * 0.02)
        self.summarise = nn.Linear(frames * before, embed_dim)

    def forward(self, sound: Float[Tensor, "batch ears frames mels"]) -> Tokens:
        """Encode normalised log-mel frames."""
        cells = self.layers(rearrange(sound, "b e f m -> b (e m) f")).transpose(1, 2)
        values = self.project(cells) + self.position
        mask = torch.ones(values.shape[:2], dtype=torch.bool, device=values.device)
        return Tokens(values, mask, self.summarise(cells.flatten(1)))


class TextProjection(nn.Module):
    """Projects a frozen language model's token embeddings; the summary is their masked mean, refined.

    Args:
        in_dim: Width of the language model's embeddings.
        embed_dim: Width of a token.
    """

    def __init__(self, in_dim: int, embed_dim: int) -> None:
        super().__init__()
        self.project = nn.Linear(in_dim, embed_dim)
        self.summarise = nn.Sequential(
            nn.Linear(in_dim, embed_dim), nn.ReLU(), nn.Linear(embed_dim, embed_dim)
        )

    def forward(
        self, embeddings: Float[Tensor, "batch tokens in_dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Tokens:
        """Encode texts; an empty text has no token and the summary of a zero vector."""
        weight = mask.unsqueeze(-1).to(embeddings.dtype)
        mean = (embeddings * weight).sum(1) / weight.sum(1).clamp(min=1.0)
        return Tokens(self.project(embeddings), mask, self.summarise(mean))


class VectorEncoder(nn.Module):
    """A vector (proprioception, game variables) as a single token.

    Args:
        in_dim: Length of the vector.
        embed_dim: Width of the token.
    """

    def __init__(self, in_dim: int, embed_dim: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(in_dim, embed_dim), nn.ReLU(), nn.Linear(embed_dim, embed_dim))

    def forward(self, vector: Float[Tensor, "batch in_dim"]) -> Tokens:
        """Encode normalised vectors."""
        value = self.mlp(vector)
        mask = torch.ones(value.shape[0], 1, dtype=torch.bool, device=value.device)
        return Tokens(value.unsqueeze(1), mask, value)
