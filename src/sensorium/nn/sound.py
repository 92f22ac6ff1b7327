"""Encoders of log-mel frames, texts and vectors."""

from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sensorium.nn.config import SoundConfig
from sensorium.nn.tokens import Tokens, TokenShape

MAX_SOUND_TOKENS = 8
"""Layers halve the number of frames while there are more than this."""


class SoundEncoder(nn.Module):
    """Temporal convolutions over log-mel frames; one token per remaining frame.

    Args:
        config: Channels of the layers.
        shape: (ears, frames, mels) of a reading.
        embed_dim: Width of the summary.
    """

    def __init__(self, config: SoundConfig, shape: tuple[int, int, int], embed_dim: int) -> None:
        super().__init__()
        ears, frames, mels = shape
        layers: list[nn.Module] = []
        before = ears * mels
        for after in config.channels:
            stride = 2 if frames > MAX_SOUND_TOKENS else 1
            layers += [nn.Conv1d(before, after, 3, stride=stride, padding=1), nn.ReLU()]
            frames = (frames + stride - 1) // stride
            before = after
        self.layers = nn.Sequential(*layers)
        self.token_shape = TokenShape(frames, before)
        self.summarise = nn.Linear(frames * before, embed_dim)

    def forward(self, sound: Float[Tensor, "batch ears frames mels"]) -> Tokens:
        """Encode normalised log-mel frames."""
        values = self.layers(rearrange(sound, "b e f m -> b (e m) f")).transpose(1, 2)
        return Tokens(values, None, self.summarise(values.flatten(1)))


class TextProjection(nn.Module):
    """Projects a frozen language model's token embeddings; the summary is their masked mean, refined.

    Args:
        shape: (tokens, width) of an embedded text.
        embed_dim: Width of a token and of the summary.
    """

    def __init__(self, shape: tuple[int, int], embed_dim: int) -> None:
        super().__init__()
        tokens, in_dim = shape
        self.project = nn.Linear(in_dim, embed_dim)
        self.summarise = nn.Sequential(
            nn.Linear(in_dim, embed_dim), nn.ReLU(), nn.Linear(embed_dim, embed_dim)
        )
        self.token_shape = TokenShape(tokens, embed_dim)

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
        embed_dim: Width of the token and of the summary.
    """

    def __init__(self, in_dim: int, embed_dim: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(in_dim, embed_dim), nn.ReLU(), nn.Linear(embed_dim, embed_dim))
        self.token_shape = TokenShape(1, embed_dim)

    def forward(self, vector: Float[Tensor, "batch in_dim"]) -> Tokens:
        """Encode normalised vectors."""
        value = self.mlp(vector)
        return Tokens(value.unsqueeze(1), None, value)
