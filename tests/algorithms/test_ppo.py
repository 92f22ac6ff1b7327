import math

import pytest
import torch
from torch import Tensor

from sensorium.algorithms import (
    SurrogateLoss,
    adapt_kl_coef,
    clipped_surrogate,
    explained_variance,
    masked_mean,
    normalise_advantages,
    value_loss,
)

YES = torch.ones(4, dtype=torch.bool)


def surrogate(
    ratios: list[float], advantages: list[float], mask: Tensor | None = None
) -> tuple[Tensor, SurrogateLoss]:
    logprobs = torch.tensor(ratios).log().requires_grad_()
    result = clipped_surrogate(
        logprobs,
        torch.zeros(len(ratios)),
        torch.tensor(advantages),
        torch.ones(len(ratios), dtype=torch.bool) if mask is None else mask,
        clip_ratio_low=0.2,
        clip_ratio_high=0.28,
    )
    return logprobs, result


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss"),
    [
        (0.5, 1, -0.5),
        (1.0, 1, -1.0),
        (1.25, 1, -1.25),
        (1.5, 1, -1.28),
        (0.5, -1, 0.8),
        (1.0, -1, 1.0),
        (1.5, -1, 1.5),
    ],
)
def test_surrogate_by_hand(ratio: float, advantage: float, loss: float) -> None:
    _, result = surrogate([ratio], [float(advantage)])
    assert result.loss.item() == pytest.approx(loss, abs=1e-6)
    assert result.ratio.item() == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("ratio", "advantage", "sign"),
    [(1.0, 1, -1), (1.0, -1, 1), (1.5, 1, 0), (0.5, 1, -1), (0.5, -1, 0), (1.5, -1, 1)],
)
def test_gradient_stops_where_the_clip_bites(ratio: float, advantage: float, sign: int) -> None:
    logprobs, result = surrogate([ratio], [float(advantage)])
    result.loss.backward()
    assert logprobs.grad is not None
    assert torch.sign(logprobs.grad).item() == sign


def test_masked_steps_count_nowhere() -> None:
    mask = torch.tensor([True, True, False])
    logprobs, result = surrogate([1.0, 1.5, 9.0], [1.0, 2.0, 100.0], mask)
    result.loss.backward()
    assert result.loss.item() == pytest.approx(-(1.0 + 2 * 1.28) / 2)
    assert result.clip_fraction.item() == pytest.approx(0.5)
    assert logprobs.grad is not None
    assert logprobs.grad[2] == 0


def test_enormous_ratios_stay_finite() -> None:
    logprobs = torch.tensor([500.0], requires_grad=True)
    args = (torch.zeros(1), torch.tensor([-1.0]), torch.ones(1, dtype=torch.bool))
    result = clipped_surrogate(logprobs, *args, clip_ratio_low=0.2, clip_ratio_high=0.2)
    assert torch.isfinite(result.loss)


def test_nothing_valid_is_zero_and_not_nan() -> None:
    nothing = torch.zeros(2, dtype=torch.bool)
    logprobs, result = surrogate([2.0, 3.0], [1.0, 1.0], nothing)
    result.loss.backward()
    assert result.loss == 0
    assert logprobs.grad is not None
    assert (logprobs.grad == 0).all()
    assert masked_mean(torch.tensor([math.inf, 1.0]), nothing) == 0


def test_value_loss_by_hand() -> None:
    values, old, returns = (
        torch.tensor([1.0, 3.0, 0.0, 9.0]),
        torch.zeros(4),
        torch.tensor([2.0, 2.0, 0.0, 0.0]),
    )
    mask = torch.tensor([True, True, True, False])
    free = value_loss(values, old, returns, mask, clip_range=None)
    assert free.item() == pytest.approx(0.5 * (1 + 1 + 0) / 3)
    # The value moved from 0 to 1 and 3, but only 0.5 of that is believed: errors 1.5 each.
    clipped = value_loss(values, old, returns, mask, clip_range=0.5)
    assert clipped.item() == pytest.approx(0.5 * (1.5**2 + 1.5**2 + 0) / 3)


def test_value_clip_stops_the_gradient_towards_the_target() -> None:
    values = torch.tensor([1.0], requires_grad=True)
    loss = value_loss(values, torch.zeros(1), torch.tensor([2.0]), YES[:1], clip_range=0.5)
    loss.backward()
    assert values.grad is not None
    assert values.grad.item() == 0.0


def test_normalised_advantages() -> None:
    x = torch.tensor([1.0, 2.0, 6.0, 100.0])
    mask = torch.tensor([True, True, True, False])
    y = normalise_advantages(x, mask)
    assert y[3] == 0
    assert y[:3].mean().item() == pytest.approx(0, abs=1e-6)
    assert y[:3].std().item() == pytest.approx(1, abs=1e-5)
    assert torch.equal(normalise_advantages(x, torch.zeros(4, dtype=torch.bool)), torch.zeros(4))
    one = torch.tensor([False, True, False, False])
    assert torch.isfinite(normalise_advantages(x, one)).all()


@pytest.mark.parametrize(
    ("kl", "coef"), [(0.021, 0.3), (0.02, 0.2), (0.01, 0.2), (0.005, 0.2), (0.0049, 0.1), (0.0, 0.1)]
)
def test_adaptive_kl(kl: float, coef: float) -> None:
    assert adapt_kl_coef(0.2, kl, kl_target=0.01) == pytest.approx(coef)


def test_explained_variance() -> None:
    returns = torch.tensor([1.0, 2.0, 3.0, 50.0])
    mask = torch.tensor([True, True, True, False])
    assert explained_variance(returns.clone(), returns, mask) == pytest.approx(1)
    assert explained_variance(torch.full((4,), 7.0), returns, mask) == pytest.approx(0)
    assert explained_variance(-returns, returns, mask) == pytest.approx(-3)
    assert math.isnan(explained_variance(returns, torch.ones(4), mask))
    assert math.isnan(explained_variance(returns, returns, torch.tensor([True, False, False, False])))
