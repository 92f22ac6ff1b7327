import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from sensorium.algorithms import (
    PolicyHeads,
    js_categorical,
    js_gaussian,
    modality_divergence,
    policy_divergence,
)

LN_2 = 0.69314718
NUMBERS = st.floats(-30, 30)


def row(*numbers: float) -> Tensor:
    return torch.tensor([numbers], dtype=torch.float64)


def log_density(x: NDArray[np.float64], mean: float, std: float) -> NDArray[np.float64]:
    density: NDArray[np.float64] = -0.5 * ((x - mean) / std) ** 2 - math.log(std * math.sqrt(2 * math.pi))
    return density


def integrated(log_p: NDArray[np.float64], log_q: NDArray[np.float64], x: NDArray[np.float64]) -> float:
    log_m = np.logaddexp(log_p, log_q) - math.log(2)
    return float(
        np.trapezoid(0.5 * np.exp(log_p) * (log_p - log_m) + 0.5 * np.exp(log_q) * (log_q - log_m), x)
    )


def grid(*gaussians: tuple[float, float]) -> NDArray[np.float64]:
    return np.unique(np.concatenate([np.linspace(m - 12 * s, m + 12 * s, 20001) for m, s in gaussians]))


def test_categorical_by_hand() -> None:
    p, q = row(0.0, 0.0), row(0.0, -math.inf)
    # p = (1/2, 1/2), q = (1, 0), m = (3/4, 1/4): KL(p, m) = ln(4/3) / 2, KL(q, m) = ln(4/3) = 0.2876821
    assert js_categorical(p, q).item() == pytest.approx(0.75 * 0.28768207)
    assert js_categorical(q, row(-math.inf, 5.0)).item() == pytest.approx(LN_2)
    assert js_categorical(p, p + 100.0).item() == 0.0


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6))
def test_categorical_is_symmetric_and_bounded(logits: list[tuple[float, float]]) -> None:
    p, q = torch.tensor([[a for a, _ in logits]]), torch.tensor([[b for _, b in logits]])
    js = js_categorical(p, q).item()
    assert 0 <= js <= LN_2 + 1e-7
    assert js == pytest.approx(js_categorical(q, p).item(), abs=1e-6)


def test_gradients_are_finite_where_options_are_masked() -> None:
    p = row(0.3, -math.inf, 1.0).requires_grad_()
    q = row(-math.inf, 0.1, -200.0).requires_grad_()
    js_categorical(p, q).sum().backward()
    for logits in (p, q):
        assert logits.grad is not None
        assert logits.grad.isfinite().all()


def test_gaussian_is_the_capacity_of_a_binary_channel() -> None:
    """Means -1 and 1, std 1: the information of one sign in unit noise, 0.4859 bits in the literature."""
    js = js_gaussian(row(-1.0), row(0.0), row(1.0), row(0.0))
    assert js.item() / math.log(2) == pytest.approx(0.4859, abs=1e-4)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 4.0, 30.0])
@pytest.mark.parametrize("gap", [0.0, 0.1, 1.0, 2.5, 6.0, 40.0])
def test_gaussian_against_fine_integration(gap: float, ratio: float) -> None:
    for mean in (gap, gap * ratio):
        x = grid((0.0, 1.0), (mean, ratio))
        expected = integrated(log_density(x, 0.0, 1.0), log_density(x, mean, ratio), x)
        one, other = (row(0.0), row(0.0)), (row(mean), row(math.log(ratio)))
        assert js_gaussian(*one, *other).item() == pytest.approx(expected, abs=1e-4)
        assert js_gaussian(*other, *one).item() == pytest.approx(expected, abs=1e-4)


@given(NUMBERS, st.floats(-5, 3), NUMBERS, st.floats(-5, 3))
def test_gaussian_is_bounded_with_finite_gradients(m1: float, s1: float, m2: float, s2: float) -> None:
    parts = [torch.tensor([[x]], dtype=torch.float32, requires_grad=True) for x in (m1, s1, m2, s2)]
    js = js_gaussian(*parts)
    assert 0 <= js.item() <= LN_2 + 1e-7
    js.sum().backward()
    assert all(part.grad is not None and part.grad.isfinite().all() for part in parts)


def test_equal_policies_do_not_differ() -> None:
    heads = PolicyHeads(row(0.3, -0.4), row(0.5, 2.0), row(-1.0, 0.4))
    assert policy_divergence(heads, heads).item() == pytest.approx(0.0, abs=1e-12)


def test_hybrid_by_hand() -> None:
    first = PolicyHeads(row(0.0, 0.0), row(-1.0, -1.0), row(0.0, 0.0))
    second = PolicyHeads(row(math.log(3.0), 0.0), row(1.0, 1.0), row(0.0, 0.0))
    # p = (1/2, 1/2), q = (3/4, 1/4), m = (5/8, 3/8): JS = (ln(0.8) / 2 + ln(4/3) / 2) / 2
    #    + (3/4 ln(1.2) + 1/4 ln(2/3)) / 2 = 0.0338221. Each Gaussian: 0.3368 (binary channel).
    categorical, gaussian = 0.0338221, 0.48594 * LN_2
    # usage of option 1: 2 * 1/2 * 3/4 / (5/4) = 0.6, of option 2: 2 * 1/2 * 1/4 / (3/4) = 1/3
    masks = {
        "option 1 uses the first": ([[True, False], [False, False]], 0.6),
        "each uses one": ([[True, False], [False, True]], 0.6 + 1 / 3),
        "nobody uses any": ([[False, False], [False, False]], 0.0),
    }
    for mask, usage in masks.values():
        found = policy_divergence(first, second, torch.tensor(mask))
        assert found.item() == pytest.approx(categorical + usage * gaussian, abs=1e-4)
    found = policy_divergence(first, second)
    assert found.item() == pytest.approx(categorical + 2 * (0.6 + 1 / 3) * gaussian, abs=1e-4)


def test_hybrid_is_the_joint_divergence_of_policies_that_are_close() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.47, 0.27, 0.26])
    first = PolicyHeads(row(*np.log(p)), row(0.0), row(0.0))
    second = PolicyHeads(row(*np.log(q)), row(0.2), row(0.05))
    mask = torch.tensor([[True], [False], [True]])
    x = grid((0.0, 1.0))
    joint = 0.0
    for option in range(3):
        log_p, log_q = np.full_like(x, math.log(p[option])), np.full_like(x, math.log(q[option]))
        density_p = log_density(x, 0.0, 1.0)
        density_q = log_density(x, 0.2, math.exp(0.05)) if mask[option] else density_p
        joint += integrated(log_p + density_p, log_q + density_q, x)
    assert policy_divergence(first, second, mask).item() == pytest.approx(joint, rel=0.01)


def test_senses_are_averaged_where_present() -> None:
    full = PolicyHeads(torch.zeros(3, 2), None, None)
    shut = PolicyHeads(torch.tensor([[0.0, -math.inf]]).repeat(3, 1), None, None)
    broken = PolicyHeads(torch.full((3, 2), math.nan), None, None)
    present = torch.tensor([[True, True, False], [True, False, False], [False, False, False]])
    found = modality_divergence([full, shut, broken], full, present)
    # 0.2157616 is the divergence by hand above
    assert found.tolist() == pytest.approx([0.2157616 / 2, 0.0, 0.0])


def test_alignment_pulls_a_single_sense_towards_all() -> None:
    logits = torch.tensor([[2.0, 0.0]], requires_grad=True)
    full = PolicyHeads(torch.zeros(1, 2), None, None)
    present = torch.ones(1, 1, dtype=torch.bool)
    modality_divergence([PolicyHeads(logits, None, None)], full, present).sum().backward()
    assert logits.grad is not None
    assert logits.grad[0, 0] > 0 > logits.grad[0, 1]


def test_refuses_policies_that_do_not_match() -> None:
    discrete, nothing = PolicyHeads(row(0.0, 1.0), None, None), PolicyHeads(None, None, None)
    continuous, half = PolicyHeads(None, row(0.0), row(0.0)), PolicyHeads(None, row(0.0), None)
    for first, second in ((discrete, continuous), (nothing, nothing)):
        with pytest.raises(ValueError, match="same parts"):
            policy_divergence(first, second)
    with pytest.raises(ValueError, match="both mean and log_std"):
        policy_divergence(half, half)
    with pytest.raises(ValueError, match="one policy and one row of presence per sense"):
        modality_divergence([discrete], discrete, torch.ones(2, 1, dtype=torch.bool))
