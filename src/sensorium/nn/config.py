"""Sizes and alternatives of the networks."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

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
    layer_norm_eps: float = Field(default=1e-5, gt=0)
    """Added to the variance in every layer norm; pretrained weights come with their own."""
    cls_token: Literal["none", "frame", "clip"] = "none"
    """A token for the whole besides the patches: `frame`, one for each frame, as an image ViT has it;
    `clip`, one that all frames share, its spatial update averaged over them, as TimeSformer has it."""
    summary_channels: int | None = Field(default=None, ge=1)
    """Channels to which tokens are narrowed before all of them are read into the summary; null keeps all."""
    pretrained: str | None = None
    """Where the weights start: a folder in Hugging Face format, or a name on the hub, of a `vit` or
    `timesformer` model. Only a new run reads it; checkpoints hold all weights. null: random."""
    gradient_checkpointing: bool = False
    """Whether blocks are computed again on the way back instead of being kept: less memory, more time."""

    @property
    def cell_size(self) -> int:
        """Side of the square that one token stands for, pixels."""
        return self.patch_size

    @model_validator(mode="after")
    def _check(self) -> "SpaceTimeConfig":
        if self.embed_dim % self.num_heads:
            raise ValueError(f"num_heads {self.num_heads} does not divide embed_dim {self.embed_dim}")
        if self.pretrained is not None and self.cls_token == "none":
            raise ValueError(
                "pretrained weights attend to a CLS token; set cls_token to `clip` (TimeSformer, or a ViT "
                "taught time in TimeSformer's way) or `frame` (exactly a ViT in each frame at the start)"
            )
        return self


VisionConfig = Annotated[ConvConfig | SpaceTimeConfig, Field(discriminator="type")]


class SoundConfig(Config):
    """Temporal convolutions over log-mel frames."""

    channels: tuple[int, ...] = Field(default=(48, 48, 48, 48), min_length=1)
    """Channels of each layer; a layer halves the number of frames while there are more than 8."""


class _Fusion(Config):
    embed_dim: int = Field(default=64, ge=8)
    """Width of every sensor's summary."""
    hidden_dim: int = Field(default=128, ge=8)
    """Width of the LSTM, which is what the heads read."""
    feature_dim: int | None = Field(default=None, ge=8)
    """Width of the fused vector, which the LSTM reads; null: `hidden_dim`."""

    @property
    def features(self) -> int:
        """Width of the fused vector."""
        return self.feature_dim or self.hidden_dim


class _StreamedFusion(_Fusion):
    streams: Literal[1, 2] = 1
    """1: all senses are added into one vector. 2: sight (rgb, depth) and the other senses are added apart,
    and the fused vector is both, one behind the other, each half as wide."""

    @property
    def stream_width(self) -> int:
        """Width of what one sensor adds to the fused vector."""
        return self.features // self.streams

    @model_validator(mode="after")
    def _check(self) -> "_StreamedFusion":
        if self.features % self.streams:
            raise ValueError(f"{self.streams} streams do not divide a fused vector of {self.features}")
        return self


class CrossAttentionConfig(_StreamedFusion):
    """Every sensor asks every sensor's tokens; gates weigh the answers."""

    type: Literal["cross_attention"] = "cross_attention"
    num_heads: int = Field(default=4, ge=1)
    """Attention heads."""


class EarlyFusionConfig(_Fusion):
    """Plain concatenation: all summaries and presence bits go through one MLP."""

    type: Literal["early"] = "early"
    mlp_dim: int | None = Field(default=None, ge=1)
    """Hidden width of the MLP; null: about as many parameters as `cross_attention` with the same widths."""


class LateFusionConfig(_StreamedFusion):
    """Every sensor has its own MLP; the results are averaged over the present ones."""

    type: Literal["late"] = "late"
    mlp_dim: int | None = Field(default=None, ge=1)
    """Hidden width of each sensor's MLP; null: `hidden_dim`."""


class GatedFusionConfig(_StreamedFusion):
    """Gated multimodal unit: a gate for each feature of each sensor, from all summaries."""

    type: Literal["gated"] = "gated"


FusionConfig = Annotated[
    CrossAttentionConfig | EarlyFusionConfig | LateFusionConfig | GatedFusionConfig,
    Field(discriminator="type"),
]
"""How the senses come together; `type` selects the alternative."""


class Size(NamedTuple):
    """Defaults of a network; where there are alternatives, one of each type, the chosen one first."""

    vision: tuple[ConvConfig | SpaceTimeConfig, ...]
    depth: tuple[ConvConfig | SpaceTimeConfig, ...]
    sound: tuple[SoundConfig]
    fusion: tuple[CrossAttentionConfig | EarlyFusionConfig | LateFusionConfig | GatedFusionConfig, ...]
    image_sizes: tuple[int, int] | None
    """Smallest and largest side of the frames; None: any."""

    def completed(self, field: str, given: Any) -> Any:
        """Lay `given`, a mapping, over the defaults of the alternative that it names."""
        alternatives = getattr(self, field)
        if not isinstance(given, Mapping):
            return given
        kind = given.get("type", getattr(alternatives[0], "type", None))
        for alternative in alternatives:
            if getattr(alternative, "type", None) == kind:
                return {**alternative.model_dump(mode="json"), **given}
        return given


def _fusions(**widths: Any) -> tuple[Any, ...]:
    """All alternatives at the same widths; `streams` where an alternative has them."""
    mixed = {name: width for name, width in widths.items() if name != "streams"}
    return (
        CrossAttentionConfig(**widths),
        EarlyFusionConfig(**mixed),
        LateFusionConfig(**widths),
        GatedFusionConfig(**widths),
    )


_SMALL_VIT = SpaceTimeConfig(
    patch_size=8, num_frames=4, depth=4, embed_dim=192, num_heads=3, mlp_ratio=4.0, summary_channels=32
)
_BASE_VIT = SpaceTimeConfig(
    patch_size=16,
    num_frames=8,
    depth=12,
    embed_dim=768,
    num_heads=12,
    mlp_ratio=4.0,
    layer_norm_eps=1e-12,
    cls_token="clip",
    summary_channels=32,
    gradient_checkpointing=True,
)

SIZES: dict[str, Size] = {
    # Minutes on two cores.
    "tiny": Size(
        vision=(ConvConfig(), SpaceTimeConfig()),
        depth=(ConvConfig(channels=(16, 16), patch_size=8, merge_size=1), SpaceTimeConfig()),
        sound=(SoundConfig(),),
        fusion=_fusions(),
        image_sizes=None,
    ),
    # Hours on two cores, minutes on an accelerator.
    "small": Size(
        vision=(_SMALL_VIT, ConvConfig(channels=(48, 96, 192))),
        depth=(ConvConfig(channels=(32, 64), patch_size=8, merge_size=1), _SMALL_VIT),
        sound=(SoundConfig(channels=(96, 96, 96, 96)),),
        fusion=_fusions(embed_dim=192, hidden_dim=256),
        image_sizes=(48, 128),
    ),
    # ViT-Base with 8 frames, and an LSTM of 1024 that reads two streams of 768: needs an accelerator.
    "base": Size(
        vision=(_BASE_VIT, ConvConfig(channels=(96, 192, 384, 768))),
        depth=(ConvConfig(channels=(48, 96, 192, 384)), _BASE_VIT),
        sound=(SoundConfig(channels=(256, 256, 256, 256)),),
        fusion=_fusions(embed_dim=768, hidden_dim=1024, feature_dim=2 * 768, streams=2),
        image_sizes=(224, 224),
    ),
}
"""The ladder of sizes, by name."""

_TINY = SIZES["tiny"]


class NetworkConfig(Config):
    """All encoders, the fusion and the memory: a size, and single fields that differ from it."""

    selectors: ClassVar[tuple[str, ...]] = ("size",)

    size: Literal["tiny", "small", "base"] = "tiny"
    """Where the defaults of all other fields come from; a field that is given wins."""
    vision: VisionConfig = _TINY.vision[0]
    """Encoder of rgb frames."""
    depth: VisionConfig = _TINY.depth[0]
    """Encoder of depth frames."""
    sound: SoundConfig = _TINY.sound[0]
    """Encoder of speech and environment sounds."""
    fusion: FusionConfig = _TINY.fusion[0]
    """How the senses come together."""
    image_sizes: tuple[int, int] | None = _TINY.image_sizes
    """Smallest and largest side of rgb and depth frames that are accepted, pixels; null: any."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Fill in what is not given from the size; of a union, from the alternative that is named."""
        if not isinstance(data, Mapping):
            return data
        size = SIZES.get(str(data.get("size", "tiny")))
        if size is None:
            return data  # the field itself says what is wrong
        filled = {**data}
        filled.setdefault("image_sizes", size.image_sizes)
        for field in ("vision", "depth", "sound", "fusion"):
            filled[field] = size.completed(field, data[field]) if field in data else getattr(size, field)[0]
        return filled
