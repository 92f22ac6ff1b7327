import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sensorium.algorithms import shapley_coalitions, shapley_values

Game = dict[frozenset[int], float]
GLOVES: Game = {
    frozenset(): 0.0,
    frozenset({0}): 10.0,
    frozenset({1}): 20.0,
    frozenset({2}): 30.0,
    frozenset({0, 1}): 40.0,
    frozenset({0, 2}): 50.0,
    frozenset({1, 2}): 60.0,
    frozenset({0, 1, 2}): 90.0,
}


def subsets(num_players: int) -> list[frozenset[int]]:
    return [
        frozenset(s) for n in range(num_players + 1) for s in itertools.combinations(range(num_players), n)
    ]


@st.composite
def games(draw: st.DrawFn, low: int = 1, high: int = 5) -> tuple[int, Game]:
    num_players = draw(st.integers(low, high))
    coalitions = subsets(num_players)
    worths = st.lists(st.floats(-100, 100), min_size=len(coalitions), max_size=len(coalitions))
    return num_players, dict(zip(coalitions, draw(worths), strict=True))


def test_three_players_by_hand() -> None:
    result = shapley_values(GLOVES.__getitem__, 3)
    # phi_0 = 1/3 * 10 + 1/6 * (40 - 20) + 1/6 * (50 - 30) + 1/3 * (90 - 60) = 20
    # phi_1 = 1/3 * 20 + 1/6 * (40 - 10) + 1/6 * (60 - 30) + 1/3 * (90 - 50) = 30
    # phi_2 = 1/3 * 30 + 1/6 * (50 - 10) + 1/6 * (60 - 20) + 1/3 * (90 - 40) = 40
    assert result.values.tolist() == pytest.approx([20.0, 30.0, 40.0])
    assert result.evaluations == 8


@given(games())
def test_contributions_add_up_to_what_all_reach(case: tuple[int, Game]) -> None:
    num_players, game = case
    everyone = game[frozenset(range(num_players))] - game[frozenset()]
    for max_exact in (0, 5):
        generator = torch.Generator().manual_seed(0)
        result = shapley_values(
            game.__getitem__, num_players, max_exact=max_exact, num_permutations=3, generator=generator
        )
        assert result.values.sum().item() == pytest.approx(everyone, abs=1e-9)


@given(games(low=2))
def test_exact_is_the_mean_over_all_orders(case: tuple[int, Game]) -> None:
    num_players, game = case
    totals = [0.0] * num_players
    orders = list(itertools.permutations(range(num_players)))
    for order in orders:
        for position, player in enumerate(order):
            before = frozenset(order[:position])
            totals[player] += (game[before | {player}] - game[before]) / len(orders)
    found = shapley_values(game.__getitem__, num_players, max_exact=5)
    assert found.values.tolist() == pytest.approx(totals, abs=1e-9)


def test_equal_players_share_and_a_useless_one_gets_nothing() -> None:
    result = shapley_values(lambda coalition: float(coalition >= {0, 1}), 3)
    assert result.values.tolist() == pytest.approx([0.5, 0.5, 0.0])


def test_sampling_is_unbiased() -> None:
    def worth(coalition: frozenset[int]) -> float:
        return float(len(coalition) ** 2 + 5 * (coalition >= {0, 3}) - 3 * (coalition >= {1, 2, 4}))

    exact = shapley_values(worth, 5, max_exact=5).values
    generator = torch.Generator().manual_seed(1)
    runs = [shapley_values(worth, 5, num_permutations=2, generator=generator).values for _ in range(400)]
    error = torch.stack(runs).mean(0) - exact
    assert torch.stack(runs).std(0).max() > 0.1
    assert error.abs().max() < 4 * torch.stack(runs).std(0).max() / 20  # four standard errors


def test_an_additive_game_needs_one_order() -> None:
    result = shapley_values(lambda coalition: float(sum(coalition)), 6, num_permutations=1)
    assert result.values.tolist() == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert result.evaluations == 7


def test_the_generator_decides_and_no_coalition_is_evaluated_twice() -> None:
    calls: list[frozenset[int]] = []

    def worth(coalition: frozenset[int]) -> float:
        calls.append(coalition)
        return float(hash(tuple(sorted(coalition))) % 101)

    seeds = (3, 3, 4)
    first, second, other = (
        shapley_values(worth, 8, num_permutations=5, generator=torch.Generator().manual_seed(seed))
        for seed in seeds
    )
    assert torch.equal(first.values, second.values)
    assert not torch.equal(first.values, other.values)
    assert len(calls) == first.evaluations + second.evaluations + other.evaluations
    own = calls[: first.evaluations]
    assert len(set(own)) == len(own) <= 5 * 8 + 1


def test_tensors_keep_their_dtype_and_graph() -> None:
    weights = torch.tensor([1.0, 2.0], requires_grad=True)
    result = shapley_values(lambda coalition: weights[sorted(coalition)].sum(), 2)
    assert result.values.dtype == torch.float32
    result.values[1].backward()
    assert weights.grad is not None
    assert weights.grad.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("found", [float("nan"), torch.ones(1), torch.tensor(1), torch.tensor(float("inf"))])
def test_a_worth_is_one_finite_float(found: float | torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"coalition \[\] must be one finite float"):
        shapley_values(lambda coalition: found, 2)


@pytest.mark.parametrize("arguments", [(0, 16), (5, 0)])
def test_no_players_or_orders_is_an_error(arguments: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least one player and one permutation"):
        shapley_values(lambda coalition: 0.0, arguments[0], num_permutations=arguments[1])


@pytest.mark.parametrize("num_players", [1, 3, 6])
def test_the_coalitions_are_those_that_are_asked_for(num_players: int) -> None:
    asked: list[frozenset[int]] = []

    def worth(coalition: frozenset[int]) -> float:
        asked.append(coalition)
        return 0.0

    shapley_values(worth, num_players, num_permutations=3, generator=torch.Generator().manual_seed(2))
    found = shapley_coalitions(num_players, num_permutations=3, generator=torch.Generator().manual_seed(2))
    assert found == asked
    assert len(set(found)) == len(found)
