"""Sizes and how single fields override them."""

from typing import Any

import pytest

from sensorium.core import ConfigError, parse_config, parse_overrides
from sensorium.nn.config import (
    SIZES,
    ConvConfig,
    CrossAttentionConfig,
    EarlyFusionConfig,
    GatedFusionConfig,
    LateFusionConfig,
    NetworkConfig,
    SoundConfig,
    SpaceTimeConfig,
)
from sensorium.presets import find_preset


def network(*flags: str) -> NetworkConfig:
    """What the command line makes of flags, laid over a preset."""
    return find_preset("quickstart").updated(parse_overrides(flags)).network


def test_tiny_is_what_it_was() -> None:
    tiny = NetworkConfig()
    assert tiny.vision == ConvConfig(channels=(24, 48), patch_size=4, merge_size=2)
    assert tiny.depth == ConvConfig(channels=(16, 16), patch_size=8, merge_size=1)
    assert tiny.sound == SoundConfig(channels=(48, 48, 48, 48))
    assert tiny.fusion == CrossAttentionConfig(embed_dim=64, num_heads=4, hidden_dim=128)
    assert tiny.fusion.features == 128
    assert NetworkConfig(size="tiny") == tiny


def test_base_is_vit_base_with_two_streams_into_an_lstm_of_1024() -> None:
    base = network("--network.size", "base")
    vision = base.vision
    assert isinstance(vision, SpaceTimeConfig)
    assert (vision.patch_size, vision.num_frames, vision.depth) == (16, 8, 12)
    assert (vision.embed_dim, vision.num_heads, vision.embed_dim * vision.mlp_ratio) == (768, 12, 3072)
    assert base.image_sizes == (224, 224)
    assert (base.fusion.embed_dim, base.fusion.features, base.fusion.hidden_dim) == (768, 2 * 768, 1024)
    assert base.fusion.streams == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("size", SIZES)
def test_a_size_has_each_alternative_once_and_survives_a_round_trip(size: Any) -> None:
    fusions = {type(fusion) for fusion in SIZES[size].fusion}
    assert fusions == {CrossAttentionConfig, EarlyFusionConfig, LateFusionConfig, GatedFusionConfig}
    assert {type(v) for v in SIZES[size].vision} == {type(v) for v in SIZES[size].depth}
    config = NetworkConfig(size=size)
    assert NetworkConfig.model_validate(config.model_dump(mode="json")) == config
    assert parse_config(NetworkConfig, {"size": size}) == config


@pytest.mark.parametrize("kind", ["early", "late", "gated", "cross_attention"])
def test_another_alternative_has_the_widths_of_its_size(kind: str) -> None:
    small = network("--network.size", "small", "--network.fusion.type", kind).fusion
    assert (small.type, small.embed_dim, small.hidden_dim) == (kind, 192, 256)
    assert network("--network.fusion.type", kind).fusion.hidden_dim == 128
    conv = network("--network.size", "small", "--network.vision.type", "conv").vision
    assert conv == ConvConfig(channels=(48, 96, 192))


def test_single_fields_win_over_the_size() -> None:
    config = network(
        "--network.size", "base", "--network.fusion.hidden_dim", "512", "--network.vision.depth=6"
    )
    assert config.fusion == SIZES["base"].fusion[0].model_copy(update={"hidden_dim": 512})
    assert config.vision == SIZES["base"].vision[0].model_copy(update={"depth": 6})
    yaml = parse_config(NetworkConfig, {"size": "base", "fusion": {"type": "late", "embed_dim": 32}})
    assert yaml.fusion == LateFusionConfig(embed_dim=32, hidden_dim=1024, feature_dim=1536, streams=2)
    assert NetworkConfig(size="base", vision=ConvConfig()).vision == ConvConfig()


def test_a_later_change_keeps_the_size() -> None:
    config = find_preset("quickstart").updated({"network": {"size": "small"}})
    later = config.updated({"network": {"fusion": {"type": "late"}}}).network
    assert (later.size, later.fusion.hidden_dim, later.vision) == ("small", 256, config.network.vision)
    same = config.updated({"network": {"size": "small", "fusion": {"embed_dim": 32}}}).network
    assert (same.fusion.embed_dim, same.fusion.hidden_dim) == (32, 256)


def test_another_size_drops_what_was_set_for_the_old_one() -> None:
    config = NetworkConfig(fusion=CrossAttentionConfig(hidden_dim=64))
    assert config.updated({"size": "small"}) == NetworkConfig(size="small")
    assert config.updated({"size": "tiny"}) == config


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"size": "large"}, "'size': Input should be 'tiny', 'small' or 'base'"),
        ({"fusion": {"type": "middle"}}, "'fusion'.*'late', 'gated'"),
        ({"size": "base", "fusion": {"hiden_dim": 3}}, "Did you mean 'hidden_dim'"),
        ({"fusion": {"type": "early", "num_heads": 3}}, "Unknown setting 'fusion.num_heads'"),
        ({"fusion": {"type": "late", "hidden_dim": 9, "streams": 2}}, "2 streams do not divide"),
        ({"vision": {"type": "space_time", "num_heads": 5}}, "num_heads 5 does not divide embed_dim 64"),
        ({"fusion": None}, "'fusion'"),
        ({"size": ["base"]}, "'size'"),
    ],
)
def test_what_does_not_fit_is_said(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_config(NetworkConfig, values)
