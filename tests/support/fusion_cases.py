"""Three senses for the tests of fusions: one of them a text with a mask."""

import torch
from cue_agents import perturb
from torch import Tensor

from sensorium.nn import Fusion, Tokens, TokenShape, build_fusion
from sensorium.nn.config import CrossAttentionConfig, EarlyFusionConfig, GatedFusionConfig, LateFusionConfig

SHAPES = {"rgb": TokenShape(6, 5), "speech": TokenShape(4, 3), "proprio": TokenShape(1, 8)}
SENSORS = tuple(SHAPES)
BATCH, DIM, FEATURES = 5, 8, 10

ONE_STREAM = (
    CrossAttentionConfig(embed_dim=DIM, num_heads=2, hidden_dim=FEATURES),
    EarlyFusionConfig(embed_dim=DIM, hidden_dim=FEATURES),
    LateFusionConfig(embed_dim=DIM, hidden_dim=FEATURES),
    GatedFusionConfig(embed_dim=DIM, hidden_dim=FEATURES),
)
TWO_STREAMS = (
    CrossAttentionConfig(embed_dim=DIM, num_heads=2, hidden_dim=FEATURES, streams=2),
    LateFusionConfig(embed_dim=DIM, hidden_dim=FEATURES, streams=2),
    GatedFusionConfig(embed_dim=DIM, hidden_dim=FEATURES, streams=2),
)


def build(config: object) -> Fusion:
    """A fusion with every parameter away from its start."""
    torch.manual_seed(0)
    fusion = build_fusion(SHAPES, config, ["rgb"])  # type: ignore[arg-type]
    perturb(fusion)
    return fusion


def some_tokens(seed: int = 1) -> dict[str, Tokens]:
    g = torch.Generator().manual_seed(seed)
    mask = torch.tensor(
        [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0], [1, 0, 1, 0]], dtype=torch.bool
    )
    return {
        name: Tokens(
            torch.randn(BATCH, *shape, generator=g),
            mask if name == "speech" else None,
            torch.randn(BATCH, DIM, generator=g),
        )
        for name, shape in SHAPES.items()
    }


def everyone() -> Tensor:
    return torch.ones(BATCH, len(SHAPES), dtype=torch.bool)


def without(*sensors: int) -> Tensor:
    present = everyone()
    present[:, list(sensors)] = False
    return present
