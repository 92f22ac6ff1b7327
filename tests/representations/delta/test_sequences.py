import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.representations.delta.base import TextEdit
from sensorium.representations.delta.sequences import Block, Gap, Work, common_prefix, gaps, matching_blocks
from sensorium.representations.delta.text import apply_text, bytes_delta, text_delta

letters = st.text("abcd", max_size=40)


def is_valid(blocks: list[Block], old: str, new: str) -> bool:
    i = j = 0
    for block in blocks:
        inside = old[block.old : block.old + block.length] == new[block.new : block.new + block.length]
        if block.old < i or block.new < j or block.length < 1 or not inside:
            return False
        i, j = block.old + block.length, block.new + block.length
    return True


def longest_common(old: str, new: str) -> int:
    row = [0] * (len(new) + 1)
    for one in old:
        before = row[:]
        for j, other in enumerate(new):
            row[j + 1] = before[j] + 1 if one == other else max(before[j + 1], row[j])
    return row[-1]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(letters, letters)
def test_blocks_are_shared_stretches_in_order(old: str, new: str) -> None:
    assert is_valid(matching_blocks(list(old), list(new)), old, new)


@pytest.mark.parametrize(
    ("alphabet", "share"),
    [("ab", 0.98), ("abcdef", 0.95), ("abcdefghijklmnopqrstuvwxyz", 0.9)],  # unique letters are cut at first
)
def test_blocks_are_nearly_as_long_as_they_can_be(alphabet: str, share: float) -> None:
    rng = random.Random(3)
    found = best = 0
    for _ in range(300):
        old, new = ("".join(rng.choices(alphabet, k=rng.randrange(25))) for _ in range(2))
        found += sum(block.length for block in matching_blocks(list(old), list(new)))
        best += longest_common(old, new)
    assert found >= share * best


def test_gaps_are_what_lies_between() -> None:
    blocks = matching_blocks(list("axbc"), list("abyc"))
    assert blocks == [Block(0, 0, 1), Block(2, 1, 1), Block(3, 3, 1)]
    assert gaps(blocks, 4, 4) == [Gap(1, 2, 1, 1), Gap(3, 3, 2, 3)]
    assert gaps([], 0, 0) == []


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 5_000])
def test_common_prefix_of_any_length(length: int) -> None:
    text = "".join(chr(97 + at % 26) for at in range(length))
    assert common_prefix(text + "X", text + "Y") == length
    assert common_prefix(text, text) == length
    assert common_prefix(list(text), [*text, "more"]) == length


def test_work_is_bounded_for_sequences_without_anchors() -> None:
    rng = random.Random(0)
    old, new = (rng.choices("ab", k=100_000) for _ in range(2))
    work = Work(0)
    before = work.left
    blocks = matching_blocks(old, new, work)
    assert is_valid(blocks, "".join(old), "".join(new))
    assert -2 * len(old) - 1_000 < work.left < before  # at most one step over the limit


separators = st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\x85", "\x0b", "", "word ", "x = 1", "é"])
odd_texts = st.lists(separators | st.text(max_size=5), max_size=20).map("".join)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(odd_texts, odd_texts, st.data())
def test_edits_of_texts_are_lossless(old: str, new: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(old)))
    for after in (new, old[:at] + new + old[at:], old + old, old + "\n", old.replace("x", "yy")):
        assert apply_text(old, text_delta(old, after)) == after
        assert apply_text(after, text_delta(after, old)) == old


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_edits_of_long_texts_are_few_and_small(seed: int, number: int) -> None:
    rng = random.Random(seed)
    lines = [" ".join(f"w{rng.randrange(400)}" for _ in range(8)) for _ in range(200)]
    old = "\n".join(lines)
    for _ in range(number):
        lines[rng.randrange(len(lines))] = "another line"
    delta = text_delta(old, "\n".join(lines))
    assert apply_text(old, delta) == "\n".join(lines)
    assert len(delta.edits) <= number
    assert sum(len(edit.inserted) for edit in delta.edits) <= 13 * number


@pytest.mark.parametrize("separator", [" ", ", ", "\n"])
def test_two_words_of_a_large_text_cost_two_words(separator: str) -> None:
    rng = random.Random(1)
    words = [f"word{rng.randrange(10**6)}" for _ in range(20_000)]
    old = separator.join(words)
    words[100], words[19_000] = "here", "there"
    delta = text_delta(old, separator.join(words))
    assert [edit.inserted.strip(separator) for edit in delta.edits] == ["here", "there"]
    assert apply_text(old, delta) == separator.join(words)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\n" * 20_000, "b\na\n" * 20_000),
        ("ab " * 30_000, "ba " * 30_000),
        ("x" * 50_000, "x" * 25_000 + "y" + "x" * 24_000),
        ("{}, " * 20_000, "{}; {}, " * 9_000),
    ],
)
def test_adversarial_texts_are_lossless(old: str, new: str) -> None:
    assert apply_text(old, text_delta(old, new)) == new


def test_edits_that_do_not_fit_are_refused() -> None:
    delta = text_delta("one\ntwo\nthree", "one\nthree")
    with pytest.raises(ValueError, match=re.escape("a text of 2 characters")):
        apply_text("on", delta)


def test_bytes_are_one_stretch() -> None:
    delta = bytes_delta(b"aaXbb", b"aaYYbb")
    assert (delta.at, delta.removed, delta.inserted) == (2, 1, b"YY")
    assert bytes_delta(b"aaa", b"aaaa").inserted == b"a"


def test_long_texts_without_line_ends_are_compared_at_their_changes() -> None:
    rng = random.Random(3)
    old = "".join(rng.choices("abcdefghij ,;.", k=600_000))
    places = [100, 250_000, 599_000]
    new = old
    for at in reversed(places):
        new = f"{new[:at]}<inserted>{new[at:]}"
    delta = text_delta(old, new)
    assert delta.edits == tuple(TextEdit(at, 0, "<inserted>") for at in places)
    assert apply_text(old, delta) == new


def test_what_differs_all_over_is_replaced_before_it_costs_much() -> None:
    rng = random.Random(4)
    old, new = ("".join(rng.choices("abcdefghij ,;.", k=600_000)) for _ in range(2))
    delta = text_delta(old, new)
    assert apply_text(old, delta) == new
    assert len(delta.edits) == 1
