import torch
from hypothesis import given
from hypothesis import strategies as st

from sensorium.llm.local.key_values import KeyValueRows

NUM_LAYERS, HEADS, WIDTH = 2, 2, 3


def states(rows: list[list[float]]) -> torch.Tensor:
    """Numbers of the new tokens of every request, as keys of shape (requests, heads, tokens, width)."""
    return torch.tensor(rows)[:, None, :, None].expand(-1, HEADS, -1, WIDTH)


def feed(cache: KeyValueRows, rows: list[list[float]]) -> list[torch.Tensor]:
    """What the layers return when every request gets new tokens."""
    new = states(rows)
    cache.reserve(new.shape[2])
    seen = [cache.cache.update(new + layer, -new - layer, layer) for layer in range(NUM_LAYERS)]
    cache.advance(new.shape[2])
    for layer, (keys, values) in enumerate(seen):
        assert torch.equal(keys - layer, -(values + layer))
    return [keys - layer for layer, (keys, _) in enumerate(seen)]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("join"), st.integers(1, 400)),
            st.tuples(st.just("leave"), st.integers(0, 9)),
            st.tuples(st.just("step"), st.integers(1, 90)),
        ),
        max_size=25,
    )
)
def test_every_request_keeps_its_tokens(moves: list[tuple[str, int]]) -> None:
    cache: KeyValueRows | None = None
    expected: list[list[float]] = []
    number = 0.0
    for move, size in moves:
        if move == "join" and len(expected) < 6:
            tokens = [500.0 * number + place for place in range(size)]
            number += 1
            own = KeyValueRows(NUM_LAYERS, size)
            feed(own, [tokens])
            if cache is None:
                cache = own
            else:
                cache.join(own)
            expected.append(tokens)
        elif move == "leave" and cache is not None:
            row = size % len(expected)
            cache.leave([row])
            expected[row] = expected[-1]
            expected.pop()
            cache = cache if expected else None
        elif move == "step" and cache is not None:
            for _ in range(size):
                number += 1
                for row in expected:
                    row.append(number)
                seen = feed(cache, [[number]] * len(expected))
            for keys in seen:
                for row, tokens in enumerate(expected):
                    assert torch.equal(keys[row, 0, -len(tokens) :, 0], torch.tensor(tokens))
        if cache is not None:
            assert cache.lengths == [len(tokens) for tokens in expected]
            assert cache.width == max(cache.lengths)
            copied = cache.copy(0, cache.lengths[0])[0]
            assert copied is not None
            assert torch.equal(copied[0][0, :, 0], torch.tensor(expected[0]))


def test_the_mask_begins_where_a_request_begins() -> None:
    cache = KeyValueRows(NUM_LAYERS, 4)
    feed(cache, [[1.0, 2.0, 3.0, 4.0]])
    assert cache.mask(1, torch.device("cpu")) is None
    short = KeyValueRows(NUM_LAYERS, 2)
    feed(short, [[5.0, 6.0]])
    cache.join(short)
    mask = cache.mask(1, torch.device("cpu"))
    assert mask is not None
    assert mask.tolist() == [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]


def test_columns_in_front_go_with_the_request_that_needed_them() -> None:
    cache = KeyValueRows(NUM_LAYERS, 100)
    feed(cache, [[0.0] * 100])
    short = KeyValueRows(NUM_LAYERS, 2)
    feed(short, [[5.0, 6.0]])
    cache.join(short)
    assert cache.width == 100
    cache.leave([0])
    assert cache.width == 2


def test_a_copy_begins_a_cache_of_its_own() -> None:
    cache = KeyValueRows(NUM_LAYERS, 4)
    feed(cache, [[1.0, 2.0, 3.0, 4.0]])
    other = KeyValueRows(NUM_LAYERS, 10)
    other.load(cache.copy(0, 4), 3)
    feed(cache, [[9.0]])
    seen = feed(other, [[7.0]])
    assert other.lengths == [4]
    assert [keys[0, 1, :, 2].tolist() for keys in seen] == [[1.0, 2.0, 3.0, 7.0]] * NUM_LAYERS


def test_memory_is_what_the_buffers_take() -> None:
    cache = KeyValueRows(NUM_LAYERS, 4)
    assert cache.num_bytes == 0
    feed(cache, [[1.0]])
    assert cache.bytes_per_token == NUM_LAYERS * 2 * HEADS * WIDTH * 4


def test_a_request_joins_several_times_and_several_leave_at_once() -> None:
    cache = KeyValueRows(NUM_LAYERS, 3)
    feed(cache, [[1.0, 2.0, 3.0]])
    for number, count in ((10.0, 3), (20.0, 1)):
        other = KeyValueRows(NUM_LAYERS, 2)
        feed(other, [[number, number + 1]])
        cache.join(other, count)
    assert cache.lengths == [3, 2, 2, 2, 2]
    assert cache.leave({0, 2, 4}) == [3, 1]
    seen = feed(cache, [[5.0], [6.0]])
    assert [keys[:, 0, :, 0].tolist() for keys in seen] == [[[10, 11, 5], [10, 11, 6]]] * NUM_LAYERS
    assert cache.leave({0, 1}) == []


def test_every_request_of_an_empty_cache_begins_with_a_copy() -> None:
    cache = KeyValueRows(NUM_LAYERS, 2)
    feed(cache, [[1.0, 2.0]])
    several = KeyValueRows(NUM_LAYERS, 2, rows=3)
    several.load(cache.copy(0, 2), 2)
    seen = feed(several, [[3.0], [4.0], [5.0]])
    assert seen[0][:, 0, :, 0].tolist() == [[1, 2, 3], [1, 2, 4], [1, 2, 5]]
