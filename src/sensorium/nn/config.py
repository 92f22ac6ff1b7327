"""Sizes and alternatives of the networks."""

from typing import Annotated, Literal

from pydantic import Field

from sensorium.core import Config


class ConvConfig(Config):
    """A small convolutional encoder: patches, then layers that may merge neighbours."""

    type: Literal["conv"] = "conv"
    channels: tuple[int, ...] = Field(default=(24, 48), min_length=1)
    """Channels of the patch layer and of each layer after it."""
    patch_size: int = Field(default=4, ge=1)
    """Side of the patches of the first layer, pixels."""
    merge_size: int = Field(default=2, ge=1)
    """Side of the square of neighbours that each later layer merges into one; 1 merges none."""

    @property
    def cell_size(self) -> int:
        """Side of the square that one token stands for, pixels."""
        return int(self.patch_size * self.merge_size ** (len(self.channels) - 1))


class SpaceTimeConfig(Config):
    """A vision transformer with divided space-time attention over the last frames (TimeSformer)."""

    type: Literal["space_time"] = "space_time"
    patch_size: int = Field(default=8, ge=1)
    """Side of a patch, pixels."""
    num_frames: int = Field(default=4, ge=1)
    """Frames of a clip: the current one and those before it in the same episode."""
    depth: int = Field(default=2, ge=1)
    """Number of blocks."""
    embed_dim: int = Field(default=64, ge=8)
    """Width of a token."""
    num_heads: int = Field(default=4, ge=1)
    """Attention heads; must divide `embed_dim`."""
    mlp_ratio: float = Field(default=2.0, gt=0)
    """Hidden width of a block's MLP over `embed_dim`."""

    @property
    def cell_size(self) -> int:
        """Side of the square that one token stands for, pixels."""
        return self.patch_size


VisionConfig = Annotated[ConvConfig | SpaceTimeConfig, Field(discriminator="type")]


class SoundConfig(Config):
    """Temporal convolutions over log-mel frames."""

    channels: tuple[int, ...] = Field(default=(48, 48, 48, 48), min_length=1)
    """Channels of each layer; a layer halves the number of frames while there are more than 8."""


class FusionConfig(Config):
    """Cross-modal attention, then gates, then an LSTM."""

    embed_dim: int = Field(default=64, ge=8)
    """Width of every sensor's tokens."""
    num_heads: int = Field(default=4, ge=1)
    """Attention heads."""
    hidden_dim: int = Field(default=128, ge=8)
    """Width of the LSTM, which is what the heads read."""


class NetworkConfig(Config):
    """All encoders, the fusion and the memory. The defaults are the size `tiny`: minutes on two cores."""

    vision: VisionConfig = ConvConfig()
    """Encoder of rgb frames."""
    depth: VisionConfig = ConvConfig(channels=(16, 16), patch_size=8, merge_size=1)
    """Encoder of depth frames."""
    sound: SoundConfig = SoundConfig()
    """Encoder of speech and environment sounds."""
    fusion: FusionConfig = FusionConfig()
    """How the senses come together."""
