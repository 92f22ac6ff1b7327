import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sensorium.algorithms import MAX_LOG_SCALE, contrastive_loss, one_row_per_episode, symmetric_info_nce

EYE = torch.eye(2)
YES = torch.ones(2, dtype=torch.bool)
DISTINCT = torch.tensor([7, 3])


def random_batch(rows: int = 8, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x, y = torch.randn(rows, 5, generator=g), torch.randn(rows, 5, generator=g)
    return x, y, torch.arange(rows) % 3, torch.ones(rows, dtype=torch.bool)


def test_distinct_instructions_by_hand() -> None:
    # Cosines: 1 on the diagonal, 0 beside it. log(1 + exp(-1)) = 0.3132617
    right = symmetric_info_nce(EYE * 3, EYE * 0.01, DISTINCT, YES, temperature=1.0)
    assert right.loss.item() == pytest.approx(0.3132617)
    assert (right.accuracy.item(), right.chance.item()) == (1.0, 0.5)
    # Crossed: log(1 + exp(1)) = 1.3132617
    wrong = symmetric_info_nce(EYE, EYE.flip(0), DISTINCT, YES, temperature=1.0)
    assert wrong.loss.item() == pytest.approx(1.3132617)
    assert wrong.accuracy.item() == 0.0
    # Temperature 0.1: log(1 + exp(-10)) = 4.5398899e-5
    assert symmetric_info_nce(EYE, EYE, DISTINCT, YES).loss.item() == pytest.approx(4.5398899e-5, rel=1e-3)


def test_shared_instructions_by_hand() -> None:
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    result = symmetric_info_nce(
        x, x, torch.tensor([5, 5, 1]), torch.ones(3, dtype=torch.bool), temperature=1.0
    )
    # Rows 1, 2: cosines 1, 1, 0; both positives: log(2e + 1) - 1 = 0.8619948.
    # Row 3: cosines 0, 0, 1; one positive: log(2 + e) - 1 = 0.5514447.
    assert result.loss.item() == pytest.approx((2 * 0.8619948 + 0.5514447) / 3)
    assert result.accuracy.item() == 1.0
    assert result.chance.item() == pytest.approx(5 / 9)  # (2 + 2 + 1) / 9


def test_the_two_directions_count_alike() -> None:
    x, y, instructions, present = random_batch()
    one, other = (symmetric_info_nce(a, b, instructions, present) for a, b in ((x, y), (y, x)))
    assert one.loss.item() == pytest.approx(other.loss.item())
    assert one.accuracy.item() == pytest.approx(other.accuracy.item())


def test_absent_rows_are_never_read() -> None:
    x, y, instructions, present = random_batch()
    present[[1, 4]] = False
    expected = symmetric_info_nce(
        x[present], y[present], instructions[present], torch.ones(6, dtype=torch.bool)
    )
    for bad in (math.nan, math.inf):
        x[1], y[4] = bad, bad
        given_x = x.clone().requires_grad_()
        result = symmetric_info_nce(given_x, y, instructions, present)
        torch.testing.assert_close(tuple(result), tuple(expected))
        result.loss.backward()
        assert given_x.grad is not None
        assert given_x.grad.isfinite().all()
        assert (given_x.grad[~present] == 0).all()
        assert (given_x.grad[present] != 0).any(1).all()


@pytest.mark.parametrize(
    ("instructions", "present"),
    [
        ([0, 1, 2], [False, False, False]),
        ([0, 1, 2], [False, True, False]),
        ([4, 4, 4], [True, True, True]),
        ([4, 4, 1], [True, True, False]),
    ],
)
def test_nothing_to_compare_is_a_loss_of_zero(instructions: list[int], present: list[bool]) -> None:
    x = torch.randn(3, 4, requires_grad=True)
    theta = torch.zeros((), requires_grad=True)
    result = symmetric_info_nce(
        x, torch.randn(3, 4), torch.tensor(instructions), torch.tensor(present), log_scale=theta
    )
    assert result.loss.item() == 0.0
    assert result.accuracy.isnan()
    assert result.chance.isnan()
    result.loss.backward()
    assert x.grad is not None
    assert theta.grad is not None
    assert (x.grad == 0).all()
    assert theta.grad == 0


def test_no_rows_at_all() -> None:
    none = torch.zeros(0, 4)
    result = symmetric_info_nce(none, none, torch.zeros(0, dtype=torch.int64), torch.zeros(0).bool())
    assert result.loss.item() == 0.0
    assert result.accuracy.isnan()


def test_vectors_without_direction_are_left_out() -> None:
    x, y, instructions, present = random_batch()
    x[2] = 0.0
    kept = torch.arange(8) != 2
    expected = symmetric_info_nce(x[kept], y[kept], instructions[kept], present[kept])
    x = x.requires_grad_()
    result = symmetric_info_nce(x, y, instructions, present)
    torch.testing.assert_close(tuple(result), tuple(expected))
    result.loss.backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_lengths_do_not_matter(size: float) -> None:
    x, y, instructions, present = random_batch()
    one, other = (symmetric_info_nce(a, y, instructions, present) for a in (x, x * size))
    torch.testing.assert_close(tuple(one), tuple(other), atol=1e-5, rtol=1e-5)


def test_half_precision_computes_in_single() -> None:
    x, y, instructions, present = random_batch()
    half = symmetric_info_nce(x.half(), y.half(), instructions, present)
    single = symmetric_info_nce(x.half().float(), y.half().float(), instructions, present)
    assert half.loss.dtype == torch.float32
    torch.testing.assert_close(half.loss, single.loss)


def test_a_learnt_scale() -> None:
    batch = random_batch()
    fixed = symmetric_info_nce(*batch, temperature=0.1)
    learnt = symmetric_info_nce(*batch, log_scale=torch.tensor(math.log(10.0)))
    assert learnt.loss.item() == pytest.approx(fixed.loss.item())
    theta = torch.tensor(9.0, requires_grad=True)
    clamped = symmetric_info_nce(*batch, log_scale=theta)
    assert clamped.loss.item() == pytest.approx(symmetric_info_nce(*batch, temperature=0.01).loss.item())
    clamped.loss.backward()
    assert theta.grad is not None
    assert theta.grad > 0  # random pairs want a smaller scale, and can have it
    assert math.exp(MAX_LOG_SCALE) == pytest.approx(100.0)


def test_descent_brings_matching_pairs_together() -> None:
    x, y, _, present = random_batch()
    x = x.requires_grad_()
    optimiser = torch.optim.Adam([x], lr=0.1)
    for _ in range(60):
        result = symmetric_info_nce(x, y, torch.arange(8), present)
        optimiser.zero_grad()
        result.loss.backward()
        optimiser.step()
    assert result.accuracy.item() == 1.0
    assert result.loss.item() < 0.2


def test_several_senses_are_the_mean_of_their_pairs() -> None:
    x, y, instructions, everyone = random_batch()
    z = random_batch(seed=1)[0]
    senses, present = {"rgb": x, "speech": y, "depth": z}, dict.fromkeys(("rgb", "speech", "depth"), everyone)
    pairs = [symmetric_info_nce(a, b, instructions, everyone) for a, b in ((x, y), (x, z), (y, z))]
    result = contrastive_loss(senses, present, instructions)
    assert result.loss.item() == pytest.approx(sum(p.loss.item() for p in pairs) / 3)
    assert result.accuracy.item() == pytest.approx(sum(p.accuracy.item() for p in pairs) / 3)
    # A sense that is never there leaves the pair of the others.
    result = contrastive_loss(senses, {**present, "depth": ~everyone}, instructions)
    torch.testing.assert_close(tuple(result), tuple(pairs[0]))


def test_refuses_nonsense() -> None:
    x, y, instructions, present = random_batch()
    with pytest.raises(ValueError, match="temperature must be above 0"):
        symmetric_info_nce(x, y, instructions, present, temperature=0.0)
    with pytest.raises(ValueError, match=r"at least two senses .* embeddings of \['rgb'\]"):
        contrastive_loss({"rgb": x}, {"rgb": present}, instructions)
    with pytest.raises(ValueError, match="presence of"):
        contrastive_loss({"rgb": x, "depth": y}, {"rgb": present}, instructions)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=40), st.integers(0, 2**31))
def test_one_eligible_row_per_episode(rows: list[tuple[int, bool]], seed: int) -> None:
    episodes = torch.tensor([row[0] for row in rows], dtype=torch.int64)
    eligible = torch.tensor([row[1] for row in rows], dtype=torch.bool)
    chosen = one_row_per_episode(episodes, eligible, torch.Generator().manual_seed(seed))
    assert eligible[chosen].all()
    assert sorted(episodes[chosen].tolist()) == sorted({episode for episode, good in rows if good})
    assert chosen.tolist() == sorted(chosen.tolist())
    again = one_row_per_episode(episodes, eligible, torch.Generator().manual_seed(seed))
    assert torch.equal(chosen, again)


def test_every_eligible_row_is_as_likely() -> None:
    episodes = torch.tensor([1, 0, 1, 1, 0])
    eligible = torch.tensor([True, True, True, True, False])
    generator = torch.Generator().manual_seed(0)
    counts = torch.zeros(5)
    for _ in range(3000):
        counts[one_row_per_episode(episodes, eligible, generator)] += 1
    assert counts[[1, 4]].tolist() == [3000.0, 0.0]
    assert (counts[[0, 2, 3]] - 1000).abs().max() < 110  # four standard deviations of 25.8
