"""Cross-modal attention against its formula; what all fusions share is in test_every_fusion.py."""

import itertools

import pytest
import torch
from fusion_cases import BATCH, ONE_STREAM, SHAPES, build, everyone, some_tokens, without
from torch.nn import functional

CONFIG = ONE_STREAM[0]


def test_masked_tokens_carry_no_weight() -> None:
    fusion = build(CONFIG)
    tokens, other = some_tokens(), some_tokens()
    mask = other["speech"].mask
    assert mask is not None
    other["speech"].values[~mask] = 1e3
    assert torch.equal(fusion(tokens, everyone()).features, fusion(other, everyone()).features)


@pytest.mark.parametrize("absent", range(len(SHAPES)))
def test_the_null_slot_is_always_there(absent: int) -> None:
    assert (build(CONFIG)(some_tokens(), without(absent)).attention[..., 3] > 0).all()


def test_absorbed_projections_equal_explicit_multi_head_attention() -> None:
    """q . (W_k x) = (W_k^T q) . x: give explicit W_q, W_k, W_v, W_o to the module and compare.

    Every sensor has its own key and value projection. Scores are scaled by the token width, one null slot
    with a score of its own and the value 0.
    """
    torch.manual_seed(3)
    fusion, tokens = build(CONFIG), some_tokens()
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
    attended, mass = fusion._attend(fusion.prepare(tokens), present)

    expected, expected_mass = torch.zeros_like(attended), torch.zeros_like(mass)
    for b, m, h in itertools.product(range(BATCH), range(len(sensors)), range(heads)):
        q = w_q[m, h] @ summaries[b, m]
        scores, values, owners = [], [], []
        for s, name in enumerate(sensors):
            mask = tokens[name].mask
            for i in range(SHAPES[name].num_tokens):
                if present[b, s] and (mask is None or mask[b, i]):
                    x = tokens[name].values[b, i] + fusion.position[s][i]
                    score = q @ (w_k[s][h] @ x) * SHAPES[name].channels ** -0.5
                    scores.append(score + fusion.attention_bias[s])
                    values.append(w_v[s][h] @ x)
                    owners.append(s)
        scores.append(fusion.null_score[m * heads + h])
        values.append(torch.zeros(head_dim))
        owners.append(len(sensors))
        weights = torch.stack(scores).softmax(0)
        expected[b, m] += w_o[:, h] @ (weights[:, None] * torch.stack(values)).sum(0)
        expected_mass[b, m].index_add_(0, torch.tensor(owners), weights.detach() / heads)
    expected += fusion.attention_out.bias
    expected_mass[~present] = torch.tensor([0.0, 0.0, 0.0, 1.0])  # who is absent asks nobody
    torch.testing.assert_close(attended[present], expected[present], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(mass, expected_mass, atol=1e-5, rtol=1e-4)


def test_gated_sum_is_the_formula() -> None:
    fusion, tokens = build(CONFIG), some_tokens()
    fused = fusion(tokens, everyone())
    summaries = torch.stack([tokens[name].summary for name in SHAPES], dim=1)
    attended, _ = fusion._attend(fusion.prepare(tokens), everyone())
    h = functional.layer_norm(summaries + attended, (CONFIG.embed_dim,), fusion.norm.weight, fusion.norm.bias)
    gates = (h @ fusion.gate.weight[0] + fusion.gate_bias).softmax(-1)
    z = sum(gates[:, m, None] * project(h[:, m]).tanh() for m, project in enumerate(fusion.project))
    torch.testing.assert_close(fused.gates, gates)
    hidden, _, out = fusion.joint[0]
    torch.testing.assert_close(fused.features, 3 * z + out(hidden(3 * z).relu()))
