"""How the senses come together: one file per alternative, named as in the config's `type`."""

from collections.abc import Collection, Mapping
from typing import Any

from sensorium.nn.config import FusionConfig
from sensorium.nn.fusion.base import Fused, Fusion, Prepared
from sensorium.nn.fusion.cross_attention import CrossModalFusion
from sensorium.nn.fusion.early import EarlyFusion
from sensorium.nn.fusion.gated import GatedFusion
from sensorium.nn.fusion.late import LateFusion
from sensorium.nn.tokens import TokenShape

FUSIONS: dict[str, Any] = {
    "cross_attention": CrossModalFusion,
    "early": EarlyFusion,
    "late": LateFusion,
    "gated": GatedFusion,
}
"""Alternatives by the `type` of their config."""


def build_fusion(
    shapes: Mapping[str, TokenShape], config: FusionConfig, sight: Collection[str] = ()
) -> Fusion:
    """Build the fusion that a config describes.

    Args:
        shapes: Sensor -> number and width of its tokens, canonical order.
        config: The alternative and its widths.
        sight: Sensors that see, for a fusion with two streams.
    """
    fusion: Fusion = FUSIONS[config.type](shapes, config, sight)
    return fusion


__all__ = [
    "FUSIONS",
    "CrossModalFusion",
    "EarlyFusion",
    "Fused",
    "Fusion",
    "GatedFusion",
    "LateFusion",
    "Prepared",
    "build_fusion",
]
