import math

import numpy as np
import pytest
import torch

from sensorium.core import ModelError
from sensorium.llm.local.draw import choose, likeliest, told_of
from sensorium.llm.local.jobs import Choice

LOGITS = torch.log(torch.tensor([[0.5, 0.25, 0.125, 0.125]]))


def choice(uniform: float = 0.0, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Choice:
    return Choice(temperature=temperature, top_k=top_k, top_p=top_p, uniform=uniform, mask=None)


def masked(*allowed: bool, uniform: float = 0.0, temperature: float = 1.0) -> Choice:
    mask = np.asarray(allowed)
    return Choice(temperature=temperature, top_k=0, top_p=1.0, uniform=uniform, mask=mask)


def drawn(one: Choice) -> tuple[int, list[float]]:
    tokens, logp = choose(LOGITS, [one])
    return int(tokens[0]), logp[0].exp().tolist()


@pytest.mark.parametrize(
    ("uniform", "token"),
    [(0.0, 0), (0.49, 0), (0.51, 1), (0.74, 1), (0.76, 2), (0.874, 2), (0.876, 3), (1 - 1e-12, 3)],
)
def test_the_random_number_is_put_through_the_inverse_distribution(uniform: float, token: int) -> None:
    assert drawn(choice(uniform))[0] == token


def test_temperature_0_takes_the_likeliest_and_is_certain() -> None:
    assert drawn(choice(0.99, temperature=0.0)) == (0, [1.0, 0.0, 0.0, 0.0])


def test_a_temperature_of_one_half_squares_probabilities() -> None:
    squares = np.asarray([1 / 4, 1 / 16, 1 / 64, 1 / 64])
    assert drawn(choice(temperature=0.5))[1] == pytest.approx(squares / squares.sum())


def test_a_very_low_temperature_does_not_overflow() -> None:
    assert drawn(choice(0.99, temperature=1e-30)) == (0, [1.0, 0.0, 0.0, 0.0])


def test_top_k_keeps_so_many() -> None:
    assert drawn(choice(0.999, top_k=2)) == (1, pytest.approx([2 / 3, 1 / 3, 0, 0]))
    assert drawn(choice(top_k=100))[1] == pytest.approx([0.5, 0.25, 0.125, 0.125])


@pytest.mark.parametrize(("top_p", "kept"), [(0.0, 1), (0.5, 1), (0.51, 2), (0.75, 2), (0.76, 3), (1.0, 4)])
def test_top_p_keeps_the_fewest_that_reach_it(top_p: float, kept: int) -> None:
    assert sum(p > 0 for p in drawn(choice(top_p=top_p))[1]) == kept


def test_top_p_is_counted_among_the_top_k() -> None:
    assert drawn(choice(top_k=2, top_p=0.6))[1] == [1.0, 0.0, 0.0, 0.0]  # 2/3 of the two reach it


@pytest.mark.parametrize("uniform", [0.0, 0.3, 0.999999])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_is_masked_is_never_taken(uniform: float, temperature: float) -> None:
    token, p = drawn(masked(False, True, False, False, uniform=uniform, temperature=temperature))
    assert (token, p) == (1, [0.0, 1.0, 0.0, 0.0])


def test_logits_beyond_the_mask_stand_for_no_token() -> None:
    assert drawn(masked(False, True, uniform=0.999))[0] == 1


def test_rows_do_not_see_each_other() -> None:
    torch.manual_seed(0)
    logits = torch.randn(5, 50)
    choices = [
        choice(0.3),
        choice(0.6, temperature=0.0),
        choice(0.9, temperature=2.0, top_k=7),
        choice(0.2, top_p=0.4),
        Choice(temperature=1.0, top_k=3, top_p=0.9, uniform=0.7, mask=np.arange(50) % 2 == 0),
    ]
    together, logp = choose(logits, choices)
    for row, one in enumerate(choices):
        alone, alone_logp = choose(logits[row : row + 1], [one])
        assert alone[0] == together[row]
        assert torch.equal(alone_logp[0], logp[row])


def test_frequencies_follow_the_distribution() -> None:
    grid = (np.arange(1000) + 0.5) / 1000
    tokens, logp = choose(LOGITS.expand(1000, 4), [choice(float(u), temperature=1.7) for u in grid])
    found = np.bincount(tokens.numpy(), minlength=4) / 1000
    assert found == pytest.approx(logp[0].exp().numpy(), abs=1.01e-3)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_an_error(bad: float) -> None:
    with pytest.raises(ModelError, match="not finite"):
        choose(torch.tensor([[0.0, bad]]), [choice()])
    with pytest.raises(ModelError, match="no token"):
        choose(LOGITS, [masked(False, False, False, False)])


def test_log_probabilities_are_told_of_the_model_at_the_temperature_and_as_drawn() -> None:
    logits = LOGITS.expand(3, 4)
    temperatures = [0.5, 0.0, 1.0]
    _, drawn = choose(logits, [choice(temperature=0.5), choice(temperature=0.0), choice(top_k=2)])
    squares, whole, halves = told_of([1, 0, 1], temperatures, logits, drawn)
    assert np.exp(squares) == pytest.approx([1 / 4, 4 / 22, 4 / 22])
    assert np.exp(whole) == pytest.approx([1 / 2, 1 / 2, 1.0])
    assert np.exp(halves) == pytest.approx([1 / 4, 1 / 4, 1 / 3])


def test_of_the_models_own_distribution_all_log_probabilities_are_one() -> None:
    logits = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    tokens, drawn = choose(logits, [choice(0.1 * row) for row in range(6)])
    taken = tokens.tolist()
    told = told_of(taken, [1.0] * 6, logits, drawn, is_own=True)
    for one, other in zip(told, told_of(taken, [1.0] * 6, logits, drawn), strict=True):
        assert one.own == one.tempered == one.drawn
        assert one == pytest.approx(other, abs=1e-6)


def test_the_likeliest_come_first() -> None:
    best = likeliest(LOGITS[0], 2)
    assert [token for token, _ in best] == [0, 1]
    assert np.exp([logprob for _, logprob in best]) == pytest.approx([0.5, 0.25])
    assert len(likeliest(LOGITS[0], 20)) == 4
