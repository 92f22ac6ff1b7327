"""Starting a `SpaceTimeEncoder` from a Hugging Face `vit` or `timesformer` model.

What is taken over, so that the encoder computes the same patch tokens:

- patch projection: turned to our order of pixels; the mean and standard deviation with which the model's
  images were normalised are folded in, and its bias goes into the positions. A sensor of one channel (depth)
  gets the sum over the model's channels, as if it were a grey image.
- positions: as they are, or interpolated (bicubic) when the image has another number of patches; the patch
  size must agree. The position of the CLS token is added to the token.
- blocks: attention over space, MLP and layer norms; for `timesformer` attention over time and its
  projection, and the time embedding (nearest neighbour when the number of frames differs). A `vit` has no
  time: its projection and embedding stay zero, so that it is the starting function.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from sensorium.core import ConfigError, require
from sensorium.core.quiet import without_progress_bars
from sensorium.nn.space_time import SpaceTimeBlock, SpaceTimeEncoder


class _Kind(NamedTuple):
    """A model type, and how its images are normalised when it does not say."""

    mean: float
    std: float


_KINDS = {"vit": _Kind(0.5, 0.5), "timesformer": _Kind(0.45, 0.225)}


class _Source(NamedTuple):
    name: str
    config: Any
    weights: Mapping[str, Tensor]
    mean: Tensor
    std: Tensor


def load_pretrained(encoder: SpaceTimeEncoder, source: str, *, setting: str = "network.vision") -> None:
    """Overwrite the weights of `encoder` by those of a pretrained image or video transformer.

    Args:
        encoder: Its config must be of the model's architecture; its summary is not touched.
        source: Folder in Hugging Face format with safetensors weights, or name on the hub.
        setting: Where the encoder is configured, for messages.

    Raises:
        ConfigError: The model cannot be found or read, is of another type, or differs in a size.
        MissingDependencyError: transformers is not installed.

    Source: initialisation of TimeSformer from ViT, Bertasius et al. 2021, arXiv:2102.05095, section 4.
    """
    read = _read(source, setting)
    _check(encoder, read, setting)
    with torch.no_grad():
        _load_ends(encoder, read)
        load = _load_vit_block if read.config.model_type == "vit" else _load_timesformer_block
        for index, block in enumerate(encoder.blocks):
            assert isinstance(block, SpaceTimeBlock)
            load(block, read, index)


def _read(source: str, setting: str) -> _Source:
    transformers = require("transformers", extra="language", purpose="a pretrained vision transformer")
    folder = Path(source).expanduser()
    is_local = folder.is_dir()
    if not is_local and (folder.is_absolute() or source.startswith((".", "~")) or source.count("/") > 1):
        raise ConfigError(
            f"{setting}.pretrained: there is no folder {source}. Give a folder with config.json and "
            f"*.safetensors, or a name on the hub such as google/vit-base-patch16-224-in21k."
        )
    where = str(folder) if is_local else source
    try:
        config = transformers.AutoConfig.from_pretrained(where, local_files_only=is_local)
    except Exception as error:
        raise ConfigError(
            f"{setting}.pretrained: {source} has no readable config: {_first(error)}"
        ) from error
    if config.model_type not in _KINDS:
        raise ConfigError(
            f"{setting}.pretrained: {source} is a model of type {config.model_type!r}; expected "
            f"{' or '.join(map(repr, _KINDS))}."
        )
    try:
        with without_progress_bars(transformers):
            model, report = transformers.AutoModel.from_pretrained(
                where,
                local_files_only=is_local,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
    except Exception as error:
        raise ConfigError(f"{setting}.pretrained: cannot load {source}: {_first(error)}") from error
    lacking = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if lacking:
        raise ConfigError(
            f"{setting}.pretrained: the weights in {source} lack {len(lacking)} tensors of a "
            f"{config.model_type} model, e.g. {', '.join(lacking[:3])}."
        )
    mean, std = _normalisation(transformers, where, config, is_local)
    return _Source(source, config, model.state_dict(), mean, std)


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _normalisation(transformers: Any, where: str, config: Any, is_local: bool) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the model's images, (channels,) each, for pixels in [0, 1]."""
    kind = _KINDS[config.model_type]
    found: dict[str, Any] = {}
    try:
        path = transformers.utils.cached_file(where, "preprocessor_config.json", local_files_only=is_local)
        found = json.loads(Path(path).read_text()) if path else {}
    except (OSError, ValueError):
        found = {}  # saved without a preprocessor: the type's usual one
    channels = config.num_channels
    mean = torch.as_tensor(found.get("image_mean") or [kind.mean] * channels, dtype=torch.float32)
    std = torch.as_tensor(found.get("image_std") or [kind.std] * channels, dtype=torch.float32)
    return mean.expand(channels), std.expand(channels)


def _check(encoder: SpaceTimeEncoder, source: _Source, setting: str) -> None:
    """Compare architectures; one message with everything that differs."""
    ours, theirs = encoder.config, source.config
    wanted = {
        "patch_size": _pair(theirs.patch_size)[0],
        "depth": theirs.num_hidden_layers,
        "embed_dim": theirs.hidden_size,
        "num_heads": theirs.num_attention_heads,
        "mlp_ratio": theirs.intermediate_size / theirs.hidden_size,
        "layer_norm_eps": theirs.layer_norm_eps,
    }
    if theirs.model_type == "timesformer":
        wanted["cls_token"] = "clip"
    different = {name: value for name, value in wanted.items() if getattr(ours, name) != value}
    if different:
        found = ", ".join(
            f"{name} is {getattr(ours, name)} (the model's: {value})" for name, value in different.items()
        )
        settings = " ".join(f"--{setting}.{name} {value}" for name, value in different.items())
        raise ConfigError(f"{setting} does not fit {source.name}: {found}. Set {settings}")
    patch = _pair(theirs.patch_size)
    unsupported = {
        f"patches of {patch[0]}x{patch[1]} pixels": patch[0] != patch[1],
        f"hidden_act {theirs.hidden_act!r} (ours: 'gelu')": theirs.hidden_act != "gelu",
        f"{theirs.num_channels} channels (the sensor's: {encoder.in_channels})": encoder.in_channels
        not in (1, theirs.num_channels),
        f"attention_type {getattr(theirs, 'attention_type', '')!r} (ours: 'divided_space_time')": getattr(
            theirs, "attention_type", "divided_space_time"
        )
        != "divided_space_time",
    }
    for what, is_so in unsupported.items():
        if is_so:
            raise ConfigError(f"{setting}.pretrained: {source.name} has {what}; choose another model.")


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def _load_ends(encoder: SpaceTimeEncoder, source: _Source) -> None:
    """Patches, positions, CLS token, time and the last layer norm."""
    weights = source.weights
    pixels, bias = (weights[f"embeddings.patch_embeddings.projection.{part}"] for part in ("weight", "bias"))
    # The model reads ((u + 1) / 2 - mean) / std where ours reads u = (x - 127.5) / 127.5.
    shift = bias + torch.einsum("dcpq,c->d", pixels, (0.5 - source.mean) / source.std)
    pixels = pixels / (2.0 * source.std)[:, None, None]
    if encoder.in_channels == 1:
        pixels = pixels.sum(1, keepdim=True)
    encoder.embed.weight.copy_(pixels.permute(0, 2, 3, 1).flatten(1))
    positions = weights["embeddings.position_embeddings"][0]
    height, width = _pair(source.config.image_size)
    patch = _pair(source.config.patch_size)
    grid = (height // patch[0], width // patch[1])
    encoder.position.copy_(_resized(positions[1:], grid, encoder.grid) + shift)
    assert encoder.cls is not None, "the config asks for a CLS token with pretrained weights"
    encoder.cls.copy_(weights["embeddings.cls_token"].flatten() + positions[0])
    encoder.time.zero_()
    if "embeddings.time_embeddings" in weights:
        time = weights["embeddings.time_embeddings"].transpose(1, 2)
        time = functional.interpolate(time, size=encoder.num_frames, mode="nearest")
        encoder.time.copy_(time[0].t().unsqueeze(1))
    _copy(encoder.norm, source, "layernorm")


def _resized(positions: Tensor, grid: tuple[int, int], wanted: tuple[int, int]) -> Tensor:
    if grid == wanted:
        return positions
    image = positions.t().reshape(1, -1, *grid)
    image = functional.interpolate(image, size=wanted, mode="bicubic", align_corners=False)
    return image.flatten(2)[0].t()


def _load_vit_block(block: SpaceTimeBlock, source: _Source, index: int) -> None:
    # transformers named these `encoder.layer.N.attention.attention.query` before they were flattened.
    new = f"layers.{index}.layernorm_before.weight" in source.weights
    layer = f"layers.{index}." if new else f"encoder.layer.{index}."
    parts = ("q_proj", "k_proj", "v_proj") if new else ("query", "key", "value")
    attention = f"{layer}attention." if new else f"{layer}attention.attention."
    qkv = [source.weights[f"{attention}{part}.weight"] for part in parts]
    block.space_attention.qkv.weight.copy_(torch.cat(qkv))
    biases = [source.weights.get(f"{attention}{part}.bias", torch.zeros(len(qkv[0]))) for part in parts]
    block.space_attention.qkv.bias.copy_(torch.cat(biases))
    _copy(block.space_attention.out, source, f"{layer}attention.{'o_proj' if new else 'output.dense'}")
    _copy(block.space_norm, source, f"{layer}layernorm_before")
    _copy(block.mlp_norm, source, f"{layer}layernorm_after")
    _copy(block.mlp[0], source, f"{layer}{'mlp.fc1' if new else 'intermediate.dense'}")
    _copy(block.mlp[2], source, f"{layer}{'mlp.fc2' if new else 'output.dense'}")
    block.time_project.weight.zero_()
    block.time_project.bias.zero_()


def _load_timesformer_block(block: SpaceTimeBlock, source: _Source, index: int) -> None:
    names: dict[str, nn.Module] = {
        "temporal_layernorm": block.time_norm,
        "temporal_attention.attention.qkv": block.time_attention.qkv,
        "temporal_attention.output.dense": block.time_attention.out,
        "temporal_dense": block.time_project,
        "layernorm_before": block.space_norm,
        "attention.attention.qkv": block.space_attention.qkv,
        "attention.output.dense": block.space_attention.out,
        "layernorm_after": block.mlp_norm,
        "intermediate.dense": block.mlp[0],
        "output.dense": block.mlp[2],
    }
    for name, module in names.items():
        _copy(module, source, f"encoder.layer.{index}.{name}")


def _copy(module: nn.Module, source: _Source, name: str) -> None:
    """Copy weight and bias; a bias that the model does not have is zero."""
    for part, parameter in module.named_parameters():
        value = source.weights.get(f"{name}.{part}")
        if value is None and part == "bias":
            parameter.zero_()
        else:
            parameter.copy_(source.weights[f"{name}.{part}"])
