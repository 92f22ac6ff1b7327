"""Segments packed into limits: by hand, with parents and marks, in whatever order limits are asked."""

import random

import pytest

from sensorium.representations.base import Segment
from sensorium.representations.packing import MARK_TOKENS, Packing


def segments(count: int, parents: dict[int, int] | None = None) -> list[Segment]:
    return [Segment(f"line {i}", parent=(parents or {}).get(i)) for i in range(count)]


def test_a_segment_costs_itself_and_the_marks_around_it():
    packing = Packing(segments(5), [10, 10, 10, 10, 10], [2])
    assert packing.within(10 + 2 * MARK_TOKENS) == ((2,), 10 + 2 * MARK_TOKENS)
    assert packing.within(10 + 2 * MARK_TOKENS - 1) == ((), MARK_TOKENS)


def test_a_segment_at_the_end_opens_no_mark_and_one_between_two_closes_one():
    packing = Packing(segments(3), [10, 10, 10], [0, 2, 1])
    # The mark for what follows the first is the one that every summary pays for in advance.
    assert packing.within(10 + MARK_TOKENS) == ((0,), 10 + MARK_TOKENS)
    assert packing.within(20 + MARK_TOKENS) == ((0, 2), 20 + MARK_TOKENS)
    assert packing.within(20 + MARK_TOKENS - 1) == ((0,), 10 + MARK_TOKENS)
    assert packing.within(30) == ((0, 1, 2), 30)


def test_parents_come_along_or_the_segment_stays_away():
    packing = Packing(segments(9, {8: 4, 4: 0}), [5] * 9, [8, 6])
    kept, used = packing.within(100)
    assert kept == (0, 4, 6, 8)
    assert used == 4 * 5 + 3 * MARK_TOKENS
    assert packing.within(15 + MARK_TOKENS) == ((6,), 5 + 2 * MARK_TOKENS)


@pytest.mark.parametrize("parent", [-1, 7, 2])
def test_parents_that_do_not_exist_are_passed_over(parent: int):
    packing = Packing([Segment("a"), Segment("b"), Segment("c", parent=parent)], [1, 1, 1], [2])
    assert packing.within(100)[0] == (2,)


def test_parents_in_a_circle_are_kept_together():
    packing = Packing(segments(3, {1: 2, 2: 1}), [1, 1, 1], [1])
    assert packing.within(100)[0] == (1, 2)


@pytest.mark.parametrize("seed", range(5))
def test_what_was_asked_before_does_not_matter(seed: int):
    draw = random.Random(seed)
    count = 150
    parents = {i: draw.randrange(i) for i in range(1, count) if draw.random() < 0.6}
    costs = [draw.randint(1, 40) for _ in range(count)]
    order = draw.sample(range(count), count)
    together = Packing(segments(count, parents), costs, order)
    limits = [draw.randint(0, 3000) for _ in range(40)]
    for limit in limits:
        kept, used = together.within(limit)
        assert (kept, used) == Packing(segments(count, parents), costs, order).within(limit)
        assert used <= max(limit, MARK_TOKENS)
        assert all(parents[i] in kept for i in kept if i in parents)


@pytest.mark.parametrize("seed", range(5))
def test_limits_that_change_nothing_give_what_a_run_of_their_own_gives(seed: int):
    draw = random.Random(seed)
    parents = {i: draw.randrange(i) for i in range(1, 30) if draw.random() < 0.6}
    costs, order = [draw.randint(1, 20) for _ in range(30)], draw.sample(range(30), 30)
    together = Packing(segments(30, parents), costs, order)
    for limit in [*range(0, 400), *range(400, 0, -1)]:
        assert together.within(limit) == Packing(segments(30, parents), costs, order).within(limit)
