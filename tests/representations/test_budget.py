"""The choice under a budget, against brute force."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.representations.budget import Choice, choose

VARIANTS = st.lists(
    st.builds(Choice, st.integers(1, 40), st.floats(0.0, 10.0, allow_nan=False)), min_size=0, max_size=4
).map(lambda found: [*found, Choice(0, 0.0)])


def best(parts: list[list[Choice]], limit: int) -> float:
    return max(
        sum(c.utility for c in picks)
        for picks in itertools.product(*parts)
        if sum(c.tokens for c in picks) <= limit
    )


def test_two_parts_worked_out_by_hand():
    parts = [
        [Choice(10, 10.0), Choice(4, 6.0), Choice(0, 0.0)],
        [Choice(8, 8.5), Choice(3, 1.0), Choice(0, 0.0)],
    ]
    assert choose(parts, 18) == [0, 0]
    assert choose(parts, 12) == [1, 0]  # 6 + 8.5 beats 10
    assert choose(parts, 7) == [1, 1]
    assert choose(parts, 3) == [2, 1]
    assert choose(parts, 0) == [2, 2]


@settings(max_examples=300, deadline=None)
@given(st.lists(VARIANTS, min_size=1, max_size=5), st.integers(0, 120))
def test_never_over_the_limit_and_near_the_optimum(parts, limit):
    picks = choose(parts, limit)
    chosen = [variants[pick] for variants, pick in zip(parts, picks, strict=True)]
    assert sum(c.tokens for c in chosen) <= limit
    largest = max(c.utility for variants in parts for c in variants)
    assert sum(c.utility for c in chosen) >= best(parts, limit) - largest - 1e-9


def test_a_part_without_variants_is_an_error():
    with pytest.raises(ValueError, match="at least one variant"):
        choose([[]], 5)
