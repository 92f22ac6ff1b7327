import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sensorium.algorithms import (
    attention_entropy,
    centred_cosine,
    effective_rank,
    gradient_norm,
    joint_norm,
    linear_cka,
    update_norm,
)


def noise(rows: int, dim: int, seed: int) -> Tensor:
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))


def test_cosine_by_hand() -> None:
    # Centred: (1, 0), (-1, 0) and (1, 1), (-1, -1): 45 degrees twice
    x, y = torch.tensor([[2.0, 1.0], [0.0, 1.0]]), torch.tensor([[6.0, 3.0], [4.0, 1.0]])
    assert centred_cosine(x, y).item() == pytest.approx(math.sqrt(0.5))
    assert centred_cosine(x, -y).item() == pytest.approx(-math.sqrt(0.5))
    # A third row at the mean of both has no direction and counts as 0.
    x, y = torch.cat([x, x.mean(0, keepdim=True)]), torch.cat([y, y.mean(0, keepdim=True)])
    assert centred_cosine(x, y).item() == pytest.approx(math.sqrt(0.5) * 2 / 3, abs=1e-6)


def test_a_common_mean_is_no_likeness() -> None:
    x, y = noise(2000, 8, 0) + 50.0, noise(2000, 8, 1) + 50.0
    assert torch.cosine_similarity(x, y).mean() > 0.99
    assert abs(centred_cosine(x, y).item()) < 0.05


def test_cka_by_hand() -> None:
    # K and L have off-diagonals +-1; tr(KL) = -4, every row of K and of L sums to -1, so 1'K1 = 1'L1 = -4 and
    # 1'KL1 = 4: -4 + 16 / 6 - 2 / 2 * 4 = -16 / 3. K with itself: 12 + 16 / 6 - 4 = 32 / 3. Ratio: -1/2.
    x = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
    y = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])
    assert linear_cka(x, y).item() == pytest.approx(-0.5)
    assert linear_cka(x, x).item() == pytest.approx(1.0)


def gram_hsic(x: Tensor, y: Tensor) -> float:
    """The definition, from Gram matrices."""
    n = len(x)
    k, m = x @ x.T, y @ y.T
    k.fill_diagonal_(0.0)
    m.fill_diagonal_(0.0)
    both = (k @ m).trace() + k.sum() * m.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k @ m).sum()
    return float(both / (n * (n - 3)))


def test_cka_is_that_of_gram_matrices() -> None:
    x = noise(30, 6, 0).double()
    y = x[:, :4] + noise(30, 4, 1)
    expected = gram_hsic(x, y) / math.sqrt(gram_hsic(x, x) * gram_hsic(y, y))
    assert 0.2 < expected < 0.9
    assert linear_cka(x, y).item() == pytest.approx(expected)


def test_cka_sees_neither_rotation_nor_scale_nor_shift() -> None:
    x, y = noise(40, 5, 0), noise(40, 7, 1)
    y[:, :5] += x
    rotation = torch.linalg.qr(noise(7, 7, 2)).Q
    expected = linear_cka(x, y).item()
    assert linear_cka(1e-4 * x + 3.0, 1e3 * y @ rotation - 1.0).item() == pytest.approx(expected, abs=1e-3)
    assert linear_cka(y, 2.0 * y @ rotation).item() == pytest.approx(1.0, abs=1e-5)


def test_cka_of_independent_features_is_near_zero_even_in_many_dimensions() -> None:
    x, y = noise(60, 100, 0), noise(60, 100, 1)
    centred_x, centred_y = x - x.mean(0), y - y.mean(0)
    biased = (centred_x.T @ centred_y).norm() ** 2 / (
        (centred_x.T @ centred_x).norm() * (centred_y.T @ centred_y).norm()
    )
    assert biased > 0.5
    assert abs(linear_cka(x, y).item()) < 0.05


@pytest.mark.parametrize(
    ("features", "rank"),
    [
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], 2.0),
        # Singular values 3 sqrt(2), sqrt(2): shares 3/4, 1/4, entropy 0.5623351
        ([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]], 1.7547654),
        ([[1.0, 2.0], [2.0, 4.0], [5.0, 10.0]], 1.0),
        ([[0.1, 0.7], [0.1, 0.7], [0.1, 0.7]], 0.0),
        ([[4.0, 2.0]], 0.0),
    ],
)
def test_effective_rank_by_hand(features: list[list[float]], rank: float) -> None:
    for shift in (0.0, 20.0):
        found = effective_rank(torch.tensor(features) * 2 + shift).item()
        assert found == pytest.approx(rank, abs=1e-4)


@given(st.integers(2, 30), st.integers(1, 12), st.integers(0, 99))
def test_effective_rank_is_between_one_and_the_number_of_dimensions(rows: int, dim: int, seed: int) -> None:
    rank = effective_rank(noise(rows, dim, seed)).item()
    assert 1 - 1e-5 <= rank <= min(rows - 1, dim) + 1e-3


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 3)])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e5])
def test_constant_features_have_no_likeness(shape: tuple[int, int], value: float) -> None:
    flat, lively = torch.full(shape, value), noise(*shape, seed=0)
    for measure in (centred_cosine, linear_cka):
        assert measure(flat, lively).item() == 0.0
        assert measure(flat, flat).item() == 0.0
    assert effective_rank(flat).item() == 0.0


def test_cka_needs_four_rows() -> None:
    assert linear_cka(noise(3, 2, 0), noise(3, 2, 0)).item() == 0.0


def test_absent_rows_are_never_read() -> None:
    x, y = noise(20, 3, 0), noise(20, 3, 1)
    y = y + x
    present = torch.arange(20) % 4 != 0
    expected = [f(x[present], y[present]) for f in (centred_cosine, linear_cka)] + [
        effective_rank(x[present])
    ]
    x[~present], y[~present] = math.nan, math.inf
    found = [f(x, y, present) for f in (centred_cosine, linear_cka)] + [effective_rank(x, present)]
    torch.testing.assert_close(found, expected)
    nobody = torch.zeros(20, dtype=torch.bool)
    assert centred_cosine(x, y, nobody) == linear_cka(x, y, nobody) == effective_rank(x, nobody) == 0.0


def test_similarity_does_not_train() -> None:
    x = noise(9, 3, 0).requires_grad_()
    assert not any(one.requires_grad for one in (centred_cosine(x, x), linear_cka(x, x), effective_rank(x)))


def test_attention_entropy_by_hand() -> None:
    weights = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.3, 0.3, 0.4]])
    valid = torch.tensor([[True, True, False]]).expand(4, 3)
    # (0.75 ln(4/3) + 0.25 ln 4) / ln 2 = 0.5623351 / 0.6931472; the last row is even without its third slot
    assert attention_entropy(weights, valid).tolist() == pytest.approx([1.0, 0.0, 0.8112781, 1.0])
    # ln 2 / ln 3 with three slots
    assert attention_entropy(weights)[0].item() == pytest.approx(0.6309298)


@pytest.mark.parametrize("valid", [[False, False, False], [False, True, False], [True, False, False]])
def test_attention_without_choice_has_no_entropy(valid: list[bool]) -> None:
    weights = torch.tensor([0.0, 0.6, 0.4])
    assert attention_entropy(weights, torch.tensor(valid)).item() == 0.0
    assert attention_entropy(torch.zeros(2, 5)).tolist() == [0.0, 0.0]


def test_norms_by_hand() -> None:
    assert joint_norm([torch.tensor([1.0, 2.0]), torch.tensor([[2.0], [4.0]])]).item() == 5.0
    assert joint_norm([]).item() == 0.0
    assert joint_norm([torch.full((4,), 3e4, dtype=torch.float16)]).item() == pytest.approx(6e4)
    used, unused = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    (used * torch.tensor([3.0, 4.0])).sum().backward()
    assert gradient_norm([used, unused]).item() == 5.0
    assert gradient_norm([unused]).item() == 0.0


def test_update_norm_is_the_learning_rate_times_the_gradient_in_plain_descent() -> None:
    weights = torch.tensor([1.0, 1.0], requires_grad=True)
    optimiser = torch.optim.SGD([weights], lr=0.1)
    (weights * torch.tensor([3.0, 4.0])).sum().backward()
    before = [weights.detach().clone()]
    optimiser.step()
    assert update_norm(before, [weights]).item() == pytest.approx(0.5)
    with pytest.raises(ValueError, match="zip"):
        update_norm(before, [])
