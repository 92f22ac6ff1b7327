"""Shapley values: a fair division of what all players reach together."""

import math
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

MAX_EXACT_PLAYERS = 4
"""Up to this many players every coalition is evaluated: 16 at most."""

Worth = Callable[[frozenset[int]], float | Tensor]
"""Worth of a coalition of players 0 .. M - 1: a number or a scalar tensor."""


class ShapleyEstimate(NamedTuple):
    """Contribution of each player, and what it cost to find out."""

    values: Float[Tensor, " players"]
    """They add up to v(all) - v(none), exact or sampled alike."""
    evaluations: int
    """Different coalitions that were evaluated."""


def shapley_values(
    value: Worth,
    num_players: int,
    *,
    max_exact: int = MAX_EXACT_PLAYERS,
    num_permutations: int = 16,
    generator: torch.Generator | None = None,
) -> ShapleyEstimate:
    """Mean marginal worth: phi_i = sum_S |S|! (M - |S| - 1)! / M! * (v(S + i) - v(S)), S without i.

    With more than `max_exact` players, the mean of v(those before i, and i) - v(those before i) over random
    orders. This is unbiased. Orders are drawn in pairs, one the reverse of the other, which lowers the
    variance. No coalition is evaluated twice.

    Args:
        value: Worth v of a coalition, called with sets of player numbers, the empty set included. Numbers
            give float64 values on the CPU, scalar tensors give values of their dtype on their device.
        num_players: M, at least 1.
        max_exact: Largest M for which all 2^M coalitions are evaluated.
        num_permutations: Orders drawn above that; each costs up to M + 1 evaluations. An odd number is
            allowed; then the last order has no reverse.
        generator: Source of the orders; torch's global one by default.

    Raises:
        ValueError: There is no player or no order, or `value` returned something that is not one number.

    Source: Shapley 1953, "A value for n-person games"; sampling: Castro, Gómez, Tejada 2009, "Polynomial
        calculation of the Shapley value based on sampling"; reversed pairs: Mitchell et al. 2022,
        "Sampling permutations for Shapley value estimation", arXiv:2104.12199.

    Example:
        >>> shapley_values(lambda coalition: 10.0 * len(coalition), 2)
        ShapleyEstimate(values=tensor([10., 10.], dtype=torch.float64), evaluations=4)
    """
    if num_players < 1 or num_permutations < 1:
        raise ValueError(
            f"Expected at least one player and one permutation, found {num_players} and {num_permutations}."
        )
    worth = _Remembered(value)
    if num_players <= max_exact:
        return ShapleyEstimate(_exact(worth, num_players), worth.evaluations)
    totals = [worth(frozenset()) * 0.0] * num_players
    for order in _orders(num_players, num_permutations, generator).tolist():
        before, reached = frozenset[int](), worth(frozenset())
        for player in order:
            before |= {player}
            totals[player] = totals[player] + (worth(before) - reached)
            reached = worth(before)
    return ShapleyEstimate(torch.stack(totals) / num_permutations, worth.evaluations)


def shapley_coalitions(
    num_players: int,
    *,
    max_exact: int = MAX_EXACT_PLAYERS,
    num_permutations: int = 16,
    generator: torch.Generator | None = None,
) -> list[frozenset[int]]:
    """The coalitions that `shapley_values` asks for, each once, for those who can evaluate many together.

    Args:
        num_players: As in `shapley_values`.
        max_exact: As in `shapley_values`.
        num_permutations: As in `shapley_values`.
        generator: Must be as that of `shapley_values` will be, and is drawn from.

    Raises:
        ValueError: There is no player or no order.

    Example:
        >>> [sorted(coalition) for coalition in shapley_coalitions(2)]
        [[], [0], [0, 1], [1]]
    """
    asked: dict[frozenset[int], None] = {}

    def worth(coalition: frozenset[int]) -> float:
        asked[coalition] = None
        return 0.0

    shapley_values(
        worth, num_players, max_exact=max_exact, num_permutations=num_permutations, generator=generator
    )
    return list(asked)


def _exact(worth: "_Remembered", num_players: int) -> Float[Tensor, " players"]:
    contributions = []
    for player in range(num_players):
        others = [other for other in range(num_players) if other != player]
        total = worth(frozenset()) * 0.0
        for size in range(num_players):
            # |S|! (M - |S| - 1)! / M!
            weight = 1.0 / (num_players * math.comb(num_players - 1, size))
            for coalition in map(frozenset, combinations(others, size)):
                total = total + weight * (worth(coalition | {player}) - worth(coalition))
        contributions.append(total)
    return torch.stack(contributions)


def _orders(
    num_players: int, count: int, generator: torch.Generator | None
) -> Int[Tensor, "permutations players"]:
    device = torch.device("cpu") if generator is None else generator.device
    drawn = [torch.randperm(num_players, generator=generator, device=device) for _ in range((count + 1) // 2)]
    return torch.stack([order for one in drawn for order in (one, one.flip(0))][:count])


class _Remembered:
    """Evaluates each coalition once."""

    def __init__(self, value: Worth) -> None:
        self._value = value
        self._known: dict[frozenset[int], Tensor] = {}

    @property
    def evaluations(self) -> int:
        return len(self._known)

    def __call__(self, coalition: frozenset[int]) -> Tensor:
        if coalition not in self._known:
            found = self._value(coalition)
            worth = found if isinstance(found, Tensor) else torch.tensor(found, dtype=torch.float64)
            if worth.ndim or not worth.is_floating_point() or not bool(worth.isfinite()):
                raise ValueError(
                    f"The worth of coalition {sorted(coalition)} must be one finite float, found {found!r}."
                )
            self._known[coalition] = worth
        return self._known[coalition]
