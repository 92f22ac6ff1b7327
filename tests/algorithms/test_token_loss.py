import math

import pytest
import torch

from sensorium.algorithms.token_loss import (
    kl_per_token,
    loss_weights,
    overlong_penalty,
    token_policy_loss,
    truncated_importance,
)


def losses(ratios, advantage, **options):
    ratio = torch.tensor([ratios], dtype=torch.float64)
    mask = torch.ones_like(ratio, dtype=torch.bool)
    made = token_policy_loss(
        ratio.log(), torch.zeros_like(ratio), torch.full_like(ratio, advantage), mask, **options
    )
    return made


def test_two_bounds_and_dual_clip_at_published_values():
    wide = {"clip_ratio_low": 0.2, "clip_ratio_high": 0.28, "dual_clip": 10.0}
    better = losses([0.5, 1, 1.25, 1.5], 1.0, **wide)
    torch.testing.assert_close(
        better.per_token[0], torch.tensor([-0.5, -1, -1.25, -1.28], dtype=torch.float64)
    )
    assert better.clipped_high[0].tolist() == [False, False, False, True]
    worse = losses([0.5, 1, 1.5, 20], -1.0, **wide)
    torch.testing.assert_close(worse.per_token[0], torch.tensor([0.8, 1, 1.5, 10], dtype=torch.float64))
    assert worse.clipped_low[0].tolist() == [True, False, False, False]
    with pytest.raises(ValueError, match="over 1"):
        losses([1.0], 1.0, dual_clip=0.9)


def test_tokens_of_tools_never_touch_loss_or_gradient():
    torch.manual_seed(0)
    mask = torch.rand(4, 9) < 0.5
    old, advantages = torch.randn(4, 9), torch.randn(4, 1).expand(4, 9)
    noise = torch.randn(4, 9) * 50
    for level in ("token", "sequence"):
        results = []
        for shift in (torch.zeros(4, 9), torch.where(mask, 0.0, noise)):
            logprobs = (old + 0.1 * torch.randn(4, 9, generator=torch.Generator().manual_seed(1))) + shift
            logprobs.requires_grad_(True)
            made = token_policy_loss(logprobs, old, advantages, mask, ratio_of=level)
            (made.per_token * loss_weights(mask.sum(1), "token")[:, None]).sum().backward()
            results.append((made.per_token.detach(), logprobs.grad))
        torch.testing.assert_close(results[0][0], results[1][0], rtol=0, atol=0)
        torch.testing.assert_close(results[0][1], results[1][1], rtol=0, atol=0)
        assert (results[0][1][~mask] == 0).all()


def test_importance_is_truncated_and_has_no_gradient():
    now = torch.tensor([[-1.0, -1.0, -1.0, -2.0]], requires_grad=True)
    sampled = torch.tensor([[-1.0, -2.0, -1.5, 7.0]])
    mask = torch.tensor([[True, True, True, False]])
    made = truncated_importance(now, sampled, mask, cap=2.0)
    assert made[0].tolist() == pytest.approx([1.0, 2.0, math.exp(0.5), 1.0])
    assert not made.requires_grad
    with pytest.raises(ValueError, match="at least 1"):
        truncated_importance(now, sampled, mask, cap=0.5)


def test_a_sequence_ratio_is_the_geometric_mean():
    logs = torch.tensor([[0.3, 0.1, 9.0]])
    mask = torch.tensor([[True, True, False]])
    made = token_policy_loss(logs, torch.zeros_like(logs), torch.ones_like(logs), mask, ratio_of="sequence")
    assert made.ratio[0, :2].tolist() == pytest.approx([math.exp(0.2)] * 2)


def test_estimates_of_the_divergence():
    policy, ref = torch.tensor([[-1.0, -2.0]]), torch.tensor([[-1.5, -1.0]])
    mask = torch.tensor([[True, True]])
    wanted = {
        "k1": [0.5, -1.0],
        "k2": [0.125, 0.5],
        "k3": [math.exp(-0.5) + 0.5 - 1, math.exp(1.0) - 1 - 1],
    }
    for kind, values in wanted.items():
        assert kl_per_token(policy, ref, mask, kind)[0].tolist() == pytest.approx(values)


def test_normalisers_differ_even_in_sign():
    per_token = torch.zeros(2, 6)
    per_token[0, :2], per_token[1] = 1.0, -0.5
    counts = torch.tensor([2, 6])
    sums = per_token.sum(1)

    def loss(name, **options):
        return float((loss_weights(counts, name, **options) * sums).sum())

    assert loss("sequence") == pytest.approx(0.25)
    assert loss("token") == pytest.approx(-0.125)
    assert loss("constant", max_tokens=10) == pytest.approx(-0.05)
    assert loss("token_group", groups=torch.tensor([5, 5])) == pytest.approx(-0.125)
    assert loss("token_group", groups=torch.tensor([5, 6])) == pytest.approx(0.25)
    with pytest.raises(ValueError, match="max_tokens"):
        loss("constant")


@pytest.mark.parametrize("name", ["sequence", "token", "token_group", "constant"])
def test_the_split_of_a_batch_does_not_change_its_loss(name):
    torch.manual_seed(1)
    mask = torch.rand(12, 7) < 0.6
    mask[5] = False  # a row that says nothing
    per_token = torch.where(mask, torch.randn(12, 7), 0.0)
    groups = torch.arange(12) // 4
    weights = loss_weights(mask.sum(1), name, groups=groups, max_tokens=7)
    whole = (weights[:, None] * per_token).sum()
    order = torch.randperm(12)
    for sizes in ([12], [1] * 12, [5, 4, 3]):
        pieces = order.split(sizes)
        total = sum((weights[p][:, None] * per_token[p]).sum() for p in pieces)
        torch.testing.assert_close(total, whole)


def test_the_overlong_penalty_at_published_values():
    made = overlong_penalty(
        torch.tensor([100, 16384, 16385, 18432, 20480, 30000]), max_tokens=20480, cache_tokens=4096
    )
    assert made.tolist() == pytest.approx([0, 0, -1 / 4096, -0.5, -1, -1])
    with pytest.raises(ValueError, match="cache_tokens"):
        overlong_penalty(torch.tensor([1]), max_tokens=10, cache_tokens=11)
