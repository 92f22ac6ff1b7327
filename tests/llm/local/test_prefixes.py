import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from sensorium.llm.local.prefixes import MIN_TOKENS, PrefixStore

Tokens = list[int]


def array(tokens: Tokens) -> np.ndarray:
    return np.asarray(tokens, dtype=np.int64)


def states(tokens: Tokens) -> list[tuple[torch.Tensor, torch.Tensor] | None]:
    """Keys and values of 8 bytes a token, and a layer that has none."""
    keys = torch.tensor(tokens, dtype=torch.float32)[None, :, None]
    return [(keys, -keys), None]


def shared(first: Tokens, second: Tokens) -> int:
    pairs = zip(first, second, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


# 1 and 256 and -1 differ in other bytes than their order as numbers says
conversations = st.lists(st.sampled_from([1, 256, -1]), max_size=4).map(lambda end: [7] * MIN_TOKENS + end)


@given(st.lists(conversations, max_size=12), conversations)
def test_what_is_found_is_the_longest_common_beginning(kept: list[Tokens], asked: Tokens) -> None:
    store = PrefixStore(1e9)
    for tokens in kept:
        store.keep(array(tokens), states(tokens))
    length, layers = store.find(array(asked))
    assert length == max((shared(tokens, asked) for tokens in kept), default=0)
    assert (layers is None) == (length == 0)
    if layers is not None and layers[0] is not None:
        assert layers[0][0][0, :length, 0].tolist() == asked[:length]
    assert store.covers(array(asked)) == any(tokens[: len(asked)] == asked for tokens in kept)
    longest = {tuple(t) for t in kept if not any(o[: len(t)] == t and len(o) > len(t) for o in kept)}
    assert len(store) == len(longest)  # one that goes on with another takes its place
    assert store.num_bytes == sum(8 * len(tokens) for tokens in longest)


def test_a_short_beginning_is_not_worth_it() -> None:
    store = PrefixStore(1e9)
    tokens = list(range(40))
    store.keep(array(tokens), states(tokens))
    assert store.find(array([*tokens[: MIN_TOKENS - 1], 99])) == (0, None)
    assert store.find(array([*tokens[:MIN_TOKENS], 99]))[0] == MIN_TOKENS


def test_the_longest_unused_makes_room() -> None:
    size = 20
    first, second, third = ([start] * size for start in (1, 2, 3))
    store = PrefixStore(8 * size * 2)
    for tokens in (first, second):
        store.keep(array(tokens), states(tokens))
    assert store.find(array(first))[0] == size
    store.keep(array(third), states(third))
    assert [store.covers(array(tokens)) for tokens in (first, second, third)] == [True, False, True]
    huge = [4] * (3 * size)
    store.keep(array(huge), states(huge))
    assert not store.covers(array(huge))
    assert len(store) == 2
    store.clear()
    assert (len(store), store.num_bytes, store.find(array(first))) == (0, 0, (0, None))
