import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Independent, Normal, kl_divergence

from sensorium.policies.embodied import ActionBatch, ActionDistribution

BATCH, OPTIONS, DIMS = 4, 3, 2
MASK = torch.tensor([[True, False], [False, False], [True, True]])


def parts(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return (
        torch.randn(BATCH, OPTIONS, generator=g),
        torch.randn(BATCH, DIMS, generator=g),
        torch.randn(BATCH, DIMS, generator=g) * 0.3,
    )


def discrete(seed: int = 0) -> ActionDistribution:
    return ActionDistribution(parts(seed)[0], None, None)


def continuous(seed: int = 0) -> ActionDistribution:
    _, mean, log_std = parts(seed)
    return ActionDistribution(None, mean, log_std)


def hybrid(seed: int = 0) -> ActionDistribution:
    return ActionDistribution(*parts(seed), MASK)


def normal(d: ActionDistribution) -> Independent:
    assert d.mean is not None
    assert d.log_std is not None
    return Independent(Normal(d.mean, d.log_std.exp()), 1)


def test_discrete_equals_torch() -> None:
    d, old = discrete(), discrete(1)
    theirs, their_old = Categorical(logits=d.logits), Categorical(logits=old.logits)
    action = ActionBatch(torch.tensor([0, 2, 1, 2]), None)
    torch.testing.assert_close(d.logprobs(action), theirs.log_prob(action.discrete))
    torch.testing.assert_close(d.entropy(), theirs.entropy())
    torch.testing.assert_close(d.kl_from(old), kl_divergence(their_old, theirs))


def test_continuous_equals_torch() -> None:
    d, old = continuous(), continuous(1)
    x = torch.randn(BATCH, DIMS, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(d.logprobs(ActionBatch(None, x)), normal(d).log_prob(x))
    torch.testing.assert_close(d.entropy(), normal(d).entropy())
    torch.testing.assert_close(d.kl_from(old), kl_divergence(normal(old), normal(d)))


def test_hybrid_log_probability_by_hand() -> None:
    d = hybrid()
    assert d.mean is not None
    assert d.log_std is not None
    x = torch.randn(BATCH, DIMS, generator=torch.Generator().manual_seed(3))
    option = torch.tensor([0, 1, 2, 0])
    each = Normal(d.mean, d.log_std.exp()).log_prob(x)
    counted = torch.stack([each[0, 0], torch.tensor(0.0), each[2].sum(), each[3, 0]])
    expected = Categorical(logits=d.logits).log_prob(option) + counted
    torch.testing.assert_close(d.logprobs(ActionBatch(option, x)), expected)


def test_parameters_of_other_options_do_not_count() -> None:
    d = hybrid()
    option, x = torch.tensor([0, 1, 2, 1]), torch.zeros(BATCH, DIMS)
    before = d.logprobs(ActionBatch(option, x))
    unused = x.masked_fill(~MASK[option], 50.0)
    assert torch.equal(before, d.logprobs(ActionBatch(option, unused)))
    used = x.masked_fill(MASK[option], 50.0)
    changed = before != d.logprobs(ActionBatch(option, used))
    assert changed.tolist() == [True, False, True, False]


def test_without_a_mask_every_parameter_counts() -> None:
    logits, mean, log_std = parts(0)
    free, full = (ActionDistribution(logits, mean, log_std, m) for m in (None, torch.ones_like(MASK)))
    action = ActionBatch(torch.tensor([0, 1, 2, 0]), torch.ones(BATCH, DIMS))
    torch.testing.assert_close(free.logprobs(action), full.logprobs(action))
    torch.testing.assert_close(free.entropy(), full.entropy())
    old_free, old_full = (ActionDistribution(*parts(1), m) for m in (None, torch.ones_like(MASK)))
    torch.testing.assert_close(free.kl_from(old_free), full.kl_from(old_full))


@pytest.mark.parametrize("make", [discrete, continuous, hybrid])
def test_entropy_and_kl_equal_monte_carlo(make: type[ActionDistribution]) -> None:
    new, old = make(0), make(1)

    def tiled(d: ActionDistribution) -> ActionDistribution:
        repeat = [None if x is None else x[:1].expand(60_000, -1) for x in d[:3]]
        return ActionDistribution(*repeat, d.parameter_mask)

    many_new, many_old = tiled(new), tiled(old)
    action = many_old.draw(torch.Generator().manual_seed(0))
    surprise = -many_old.logprobs(action)
    gap = many_old.logprobs(action) - many_new.logprobs(action)
    assert surprise.mean().item() == pytest.approx(old.entropy()[0].item(), abs=0.03)
    assert gap.mean().item() == pytest.approx(new.kl_from(old)[0].item(), rel=0.05, abs=0.02)


@pytest.mark.parametrize("make", [discrete, continuous, hybrid])
def test_kl_is_zero_only_for_equals(make: type[ActionDistribution]) -> None:
    torch.testing.assert_close(make(0).kl_from(make(0)), torch.zeros(BATCH), atol=1e-6, rtol=0)
    assert (make(0).kl_from(make(1)) > 1e-3).all()


def test_heads_add_up_to_the_joint_entropy() -> None:
    heads = hybrid().entropies()
    assert set(heads) == {"discrete", "continuous"}
    torch.testing.assert_close(heads["discrete"] + heads["continuous"], hybrid().entropy())


def test_draws_follow_the_distribution() -> None:
    n = 40_000
    logits = torch.tensor([[0.0, 1.0, -1.0]]).expand(n, -1)
    mean, log_std = torch.tensor([[0.5, -1.0]]).expand(n, -1), torch.tensor([[0.0, -1.0]]).expand(n, -1)
    action = ActionDistribution(logits, mean, log_std, MASK).draw(torch.Generator().manual_seed(0))
    assert action.discrete is not None
    assert action.continuous is not None
    counts = torch.bincount(action.discrete, minlength=3).double().numpy()
    expected = n * logits[0].double().softmax(-1).numpy()
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 13.8  # 99.9 % quantile with 2 degrees of freedom
    np.testing.assert_allclose(action.continuous.mean(0), [0.5, -1.0], atol=0.03)
    np.testing.assert_allclose(action.continuous.std(0), [1.0, np.exp(-1)], rtol=0.03)


def test_impossible_options_are_never_drawn() -> None:
    logits = torch.tensor([[0.0, -1e9, 0.0]]).expand(5_000, -1)
    drawn = ActionDistribution(logits, None, None).draw(torch.Generator().manual_seed(0)).discrete
    assert drawn is not None
    assert set(drawn.tolist()) == {0, 2}


def test_the_generator_alone_decides() -> None:
    d = hybrid()
    a, b, c = (d.draw(torch.Generator().manual_seed(s)) for s in (5, 5, 6))
    assert a.continuous is not None
    assert b.continuous is not None
    assert c.continuous is not None
    assert torch.equal(a.continuous, b.continuous)
    assert not torch.equal(a.continuous, c.continuous)


def test_mode_is_the_likeliest_of_each_leaf() -> None:
    d = hybrid()
    assert d.logits is not None
    assert torch.equal(d.mode().discrete, d.logits.argmax(-1))
    assert torch.equal(d.mode().continuous, d.mean)
    assert discrete().mode().continuous is None
    assert continuous().mode().discrete is None
