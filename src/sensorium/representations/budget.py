"""Which variant of every part fits the budget: a multiple-choice knapsack.

Maximise the sum of utilities under a limit of tokens, exactly one variant per part (Sinha & Zoltners 1979,
"The multiple-choice knapsack problem"). Variants off the upper convex hull of (tokens, utility) are never
part of the optimum of the relaxed problem, whose solution is found by taking the steps along all hulls in
order of utility per token. It differs from the exact optimum by less than the utility of one step; what is
left of the budget is then filled with the best steps that still fit.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple


class Choice(NamedTuple):
    """One variant of one part, as the budget sees it."""

    tokens: int
    utility: float


def choose(parts: Sequence[Sequence[Choice]], limit: int) -> list[int]:
    """Pick one variant per part.

    Args:
        parts: For every part its variants in any order. The cheapest is what is taken when nothing else
            fits; it should cost 0.
        limit: Tokens that all picks together may cost.

    Returns:
        For every part the position of its pick. The sum of tokens is within `limit` whenever the cheapest
        variants alone are.

    Raises:
        ValueError: A part has no variant.
    """
    if not all(parts):
        raise ValueError("Every part needs at least one variant.")
    hulls = [_hull(variants) for variants in parts]
    picks = [hull[0] for hull in hulls]
    left = limit - sum(variants[pick].tokens for variants, pick in zip(parts, picks, strict=True))
    queue = [step for at, hull in enumerate(hulls) if (step := _step(parts[at], hull, 0, at)) is not None]
    heapq.heapify(queue)
    while queue:
        _, at, level = heapq.heappop(queue)
        variants, hull = parts[at], hulls[at]
        price = variants[hull[level + 1]].tokens - variants[picks[at]].tokens
        if price > left:
            continue  # later steps of this part are dearer still
        left -= price
        picks[at] = hull[level + 1]
        following = _step(variants, hull, level + 1, at)
        if following is not None:
            heapq.heappush(queue, following)
    return _fill(parts, picks, left)


def _hull(variants: Sequence[Choice]) -> list[int]:
    """Positions on the upper convex hull from the cheapest variant on, by rising tokens and utility."""
    order = sorted(range(len(variants)), key=lambda i: (variants[i].tokens, -variants[i].utility))
    hull: list[int] = []
    for i in order:
        if hull and variants[i].utility <= variants[hull[-1]].utility:
            continue
        while len(hull) >= 2 and _slope(variants, hull[-2], hull[-1]) <= _slope(variants, hull[-2], i):
            hull.pop()
        hull.append(i)
    return hull


def _slope(variants: Sequence[Choice], low: int, high: int) -> float:
    tokens = variants[high].tokens - variants[low].tokens
    return (variants[high].utility - variants[low].utility) / max(tokens, 1e-9)


def _step(
    variants: Sequence[Choice], hull: Sequence[int], level: int, at: int
) -> tuple[float, int, int] | None:
    """The step from `level` of a hull to the next, keyed so that a heap gives the best first."""
    if level + 1 >= len(hull):
        return None
    return -_slope(variants, hull[level], hull[level + 1]), at, level


def _fill(parts: Sequence[Sequence[Choice]], picks: list[int], left: int) -> list[int]:
    """Spend what is left on the single exchanges that bring the most utility, also off the hulls."""
    gains = []
    for at, variants in enumerate(parts):
        now = variants[picks[at]]
        for i, variant in enumerate(variants):
            if variant.utility > now.utility and variant.tokens - now.tokens <= left:
                gains.append((now.utility - variant.utility, at, i))
    for _, at, i in sorted(gains):
        now, better = parts[at][picks[at]], parts[at][i]
        if better.utility > now.utility and better.tokens - now.tokens <= left:
            left -= better.tokens - now.tokens
            picks[at] = i
    return picks
