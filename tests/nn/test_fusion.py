import itertools

import pytest
import torch
from cue_agents import perturb
from torch import Tensor
from torch.nn import functional

from sensorium.nn import CrossModalFusion, Tokens, TokenShape
from sensorium.nn.config import FusionConfig

SHAPES = {"rgb": TokenShape(6, 5), "speech": TokenShape(4, 3), "proprio": TokenShape(1, 8)}
CONFIG = FusionConfig(embed_dim=8, num_heads=2, hidden_dim=9)
BATCH = 5


def build() -> CrossModalFusion:
    torch.manual_seed(0)
    fusion = CrossModalFusion(SHAPES, CONFIG)
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
            torch.randn(BATCH, CONFIG.embed_dim, generator=g),
        )
        for name, shape in SHAPES.items()
    }


def everyone() -> Tensor:
    return torch.ones(BATCH, len(SHAPES), dtype=torch.bool)


@pytest.mark.parametrize("absent", range(len(SHAPES)))
def test_an_absent_sensor_never_changes_the_output(absent: int) -> None:
    fusion, present = build(), everyone()
    present[:, absent] = False
    name = list(SHAPES)[absent]
    tokens, other = some_tokens(), some_tokens()
    garbage = some_tokens(seed=9)[name]
    other[name] = Tokens(garbage.values * 100, garbage.mask, garbage.summary * 100)
    before, after = fusion(tokens, present), fusion(other, present)
    for a, b in zip(before, after, strict=True):
        assert torch.equal(a, b)
    with_it = fusion(other, everyone())
    assert not torch.allclose(with_it.features, fusion(tokens, everyone()).features)


def test_rows_do_not_mix() -> None:
    fusion, present = build(), everyone()
    present[1, 0] = present[2, 1] = False
    whole = fusion(some_tokens(), present)
    for row in range(BATCH):
        one = {name: tokens.at(torch.tensor([row])) for name, tokens in some_tokens().items()}
        single = fusion(one, present[row : row + 1])
        torch.testing.assert_close(single.features[0], whole.features[row], atol=1e-6, rtol=1e-5)


def test_masked_tokens_carry_no_weight() -> None:
    fusion = build()
    tokens, other = some_tokens(), some_tokens()
    mask = other["speech"].mask
    assert mask is not None
    other["speech"].values[~mask] = 1e3
    assert torch.equal(fusion(tokens, everyone()).features, fusion(other, everyone()).features)


def test_nothing_present_is_finite() -> None:
    fusion = build()
    fused = fusion(some_tokens(), ~everyone())
    assert torch.equal(fused.features, torch.zeros(BATCH, CONFIG.hidden_dim))
    assert torch.equal(fused.gates, torch.zeros(BATCH, 3))
    torch.testing.assert_close(fused.attention[..., -1], torch.ones(BATCH, 3))
    fused.features.sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in fusion.parameters())


@pytest.mark.parametrize("present", [p for p in itertools.product([False, True], repeat=3) if any(p)])
def test_gates_and_attention_are_shares(present: tuple[bool, ...]) -> None:
    row = torch.tensor([present]).expand(BATCH, 3)
    fused = build()(some_tokens(), row)
    torch.testing.assert_close(fused.gates.sum(-1), torch.ones(BATCH))
    assert (fused.gates[~row] == 0).all()
    assert (fused.gates[row] > 0).all()
    torch.testing.assert_close(fused.attention.sum(-1), torch.ones(BATCH, 3))
    assert (fused.attention[..., :3][~row[:, None].expand(BATCH, 3, 3)] == 0).all()
    assert (fused.attention[..., 3] > 0).all()


def test_absorbed_projections_equal_explicit_multi_head_attention() -> None:
    """q . (W_k x) = (W_k^T q) . x: give explicit W_q, W_k, W_v, W_o to the module and compare.

    Every sensor has its own key and value projection. Scores are scaled by the token width, one null slot
    with a score of its own and the value 0.
    """
    torch.manual_seed(3)
    fusion, tokens = build(), some_tokens()
    present = everyone()
    present[0, 0] = present[3, 2] = False
    sensors, heads, dim, head_dim = list(SHAPES), CONFIG.num_heads, CONFIG.embed_dim, 4
    w_q = torch.randn(len(sensors), heads, head_dim, dim)
    w_k = [torch.randn(heads, head_dim, shape.channels) for shape in SHAPES.values()]
    w_v = [torch.randn(heads, head_dim, shape.channels) for shape in SHAPES.values()]
    w_o = torch.randn(dim, heads, head_dim)
    with torch.no_grad():
        for m, query in enumerate(fusion.query):
            absorbed = [torch.einsum("hec,hed->hcd", k, w_q[m]).flatten(0, 1) for k in w_k]
            query.weight.copy_(torch.cat(absorbed))
            query.bias.zero_()
        out = [torch.einsum("dhe,hec->dhc", w_o, v).flatten(1) for v in w_v]
        fusion.attention_out.weight.copy_(torch.cat(out, dim=1))

    summaries = torch.stack([tokens[name].summary for name in sensors], dim=1)
    summaries = torch.where(present.unsqueeze(-1), summaries, fusion.missing)
    attended, mass = fusion._attend(summaries, tokens, present)

    expected, expected_mass = torch.zeros_like(attended), torch.zeros_like(mass)
    for b, m, h in itertools.product(range(BATCH), range(len(sensors)), range(heads)):
        q = w_q[m, h] @ summaries[b, m]
        scores, values, owners = [], [], []
        for s, name in enumerate(sensors):
            mask = tokens[name].mask
            for i in range(SHAPES[name].num_tokens):
                if present[b, s] and (mask is None or mask[b, i]):
                    x = tokens[name].values[b, i] + fusion.position[s][i]
                    scores.append(q @ (w_k[s][h] @ x) * SHAPES[name].channels ** -0.5)
                    values.append(w_v[s][h] @ x)
                    owners.append(s)
        scores.append(fusion.null_score[m * heads + h])
        values.append(torch.zeros(head_dim))
        owners.append(len(sensors))
        weights = torch.stack(scores).softmax(0)
        expected[b, m] += w_o[:, h] @ (weights[:, None] * torch.stack(values)).sum(0)
        expected_mass[b, m].index_add_(0, torch.tensor(owners), weights.detach() / heads)
    expected += fusion.attention_out.bias
    torch.testing.assert_close(attended, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(mass, expected_mass, atol=1e-5, rtol=1e-4)


def test_gated_sum_is_the_formula() -> None:
    fusion, tokens = build(), some_tokens()
    fused = fusion(tokens, everyone())
    summaries = torch.stack([tokens[name].summary for name in SHAPES], dim=1)
    attended, _ = fusion._attend(summaries, tokens, everyone())
    h = functional.layer_norm(summaries + attended, (CONFIG.embed_dim,), fusion.norm.weight, fusion.norm.bias)
    gates = (h @ fusion.gate.weight[0] + fusion.gate.bias).softmax(-1)
    z = sum(gates[:, m, None] * project(h[:, m]).tanh() for m, project in enumerate(fusion.project))
    torch.testing.assert_close(fused.gates, gates)
    torch.testing.assert_close(fused.features, 3 * z)
