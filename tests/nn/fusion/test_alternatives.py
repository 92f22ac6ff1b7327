"""Early, late and gated fusion against their formulas, written out."""

import math

import pytest
import torch
from fusion_cases import BATCH, DIM, FEATURES, ONE_STREAM, SHAPES, build, everyone, some_tokens, without
from torch import Tensor
from torch.nn import functional

from sensorium.nn import Fusion, TokenShape, build_fusion
from sensorium.nn.config import CrossAttentionConfig, EarlyFusionConfig, LateFusionConfig
from sensorium.nn.fusion.cross_attention import num_parameters

_, EARLY, LATE, GATED = ONE_STREAM


def normed(fusion: Fusion) -> Tensor:
    summaries = torch.stack([one.summary for one in some_tokens().values()], dim=1)
    return functional.layer_norm(summaries, (DIM,), fusion.norm.weight, fusion.norm.bias)


def test_early_is_an_mlp_over_the_concatenation_and_presence_bits() -> None:
    fusion, present = build(EARLY), without(1)
    x = normed(fusion)
    x[:, 1] = 0
    absent = (~present).float()
    concatenated = torch.cat([x.flatten(1), absent, torch.ones(BATCH, 1)], dim=-1)
    first = torch.cat([*(r.weight for r in fusion.read), fusion.absent.t(), fusion.bias[:, None]], dim=1)
    z = fusion.out((concatenated @ first.t()).relu()).tanh()
    expected = z + fusion.missing[1]
    torch.testing.assert_close(fusion(some_tokens(), present).features, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "widths"),
    [
        ({"rgb": TokenShape(36, 48), "depth": TokenShape(36, 16), "speech": TokenShape(8, 48)}, {}),
        ({"rgb": TokenShape(64, 192), "text": TokenShape(24, 192)}, {"embed_dim": 192, "hidden_dim": 256}),
    ],
)
def test_early_is_as_large_as_cross_attention(shapes: dict[str, TokenShape], widths: dict[str, int]) -> None:
    """The baseline of comparisons must not be weaker for being smaller."""
    attention = build_fusion(shapes, CrossAttentionConfig(**widths))
    early = build_fusion(shapes, EarlyFusionConfig(**widths))
    sizes = [sum(p.numel() for p in fusion.parameters()) for fusion in (attention, early)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.02)
    assert num_parameters(shapes, CrossAttentionConfig(**widths)) == sizes[0]


def test_early_takes_a_width_of_its_own() -> None:
    config = EARLY.model_copy(update={"mlp_dim": 7})
    assert build_fusion(SHAPES, config).read[0].weight.shape == (7, DIM)  # type: ignore[union-attr]


def test_early_starts_with_activations_of_about_one() -> None:
    torch.manual_seed(0)
    shapes = {"a": TokenShape(9, 32), "b": TokenShape(9, 32)}
    fusion = build_fusion(shapes, EarlyFusionConfig())
    g = torch.Generator().manual_seed(0)
    tokens = {
        name: some_tokens()["rgb"]._replace(summary=torch.randn(64, 64, generator=g)) for name in shapes
    }
    assert 0.4 < fusion(tokens, torch.ones(64, 2, dtype=torch.bool)).features.std() < 0.8


def test_late_is_the_mean_of_the_present_heads_at_the_start() -> None:
    fusion, present = build(LATE), without(2)
    with torch.no_grad():
        fusion.gate_bias.zero_()
    x = normed(fusion)
    mean = (fusion.head[0](x[:, 0]).tanh() + fusion.head[1](x[:, 1]).tanh()) / 2
    fused = fusion(some_tokens(), present)
    torch.testing.assert_close(fused.features, 3 * mean + fusion.missing[2], atol=1e-5, rtol=1e-5)
    assert fused.gates[0].tolist() == [0.5, 0.5, 0.0]
    assert (build_fusion(SHAPES, LateFusionConfig()).gate_bias == 0).all()


def test_late_weights_are_a_softmax_of_the_biases() -> None:
    fusion = build(LATE)
    with torch.no_grad():
        fusion.gate_bias.copy_(torch.tensor([0.0, math.log(3.0), -30.0]))
    gates = fusion(some_tokens(), everyone()).gates
    torch.testing.assert_close(gates[0], torch.tensor([0.25, 0.75, 0.0]))


def test_gated_is_the_multimodal_unit() -> None:
    fusion, present = build(GATED), without(0)
    x = normed(fusion)
    x[:, 0] = 0
    everything = x.flatten(1)
    z = torch.zeros(BATCH, FEATURES)
    for m in (1, 2):
        gate = (everything @ fusion.gate[m].weight.t() + fusion.gate_bias[m]).sigmoid()
        z = z + gate * fusion.project[m](x[:, m]).tanh()
    expected = z + fusion.missing[0]
    torch.testing.assert_close(fusion(some_tokens(), present).features, expected, atol=1e-5, rtol=1e-5)
