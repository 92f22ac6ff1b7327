import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from sensorium.core.frames import pack, unpack
from sensorium.envs.remote.spaces import (
    SpaceError,
    batch_of_one,
    build,
    describe,
    first,
    read_batch,
    restore,
)

NESTED = spaces.Dict(
    {
        "rgb": spaces.Box(0, 255, (4, 4, 3), np.uint8),
        "pose": spaces.Box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64),
        "told": spaces.Text(12, min_length=0, charset="abc "),
        "more": spaces.Tuple([spaces.Discrete(3, start=-1), spaces.MultiBinary((2, 2))]),
        "grid": spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
        "time_s": spaces.Box(0.0, np.inf, (), np.float32),
    }
)


class Missions(gymnasium.Space):
    """Members are texts, as of MiniGrid's missions."""

    def sample(self, mask=None, probability=None):
        return "go there"


def test_a_space_arrives_as_it_was():
    assert build(unpack(pack(describe(NESTED)))) == NESTED
    assert list(build(unpack(pack(describe(NESTED))))) == list(NESTED)
    assert isinstance(build(describe(Missions())), spaces.Text)
    with pytest.raises(SpaceError, match="Sequence"):
        describe(spaces.Dict({"many": spaces.Sequence(spaces.Discrete(2))}))


@pytest.mark.parametrize(
    "told", [None, {}, {"type": "graph"}, {"type": "box"}, {"type": "discrete", "n": -1}]
)
def test_what_is_no_space_is_an_error(told):
    with pytest.raises(SpaceError):
        build(told)


def test_batches_are_read_and_restored():
    batched = batch_space(NESTED, 3)
    batched.seed(0)
    batch = batched.sample()
    arrived = unpack(pack(batch))
    read = read_batch(NESTED, arrived, 3)
    assert batched.contains(read)
    assert batched.contains(restore(NESTED, arrived))
    member = first(NESTED, read)
    assert NESTED.contains(member)
    assert batch_space(NESTED, 1).contains(read_batch(NESTED, batch_of_one(NESTED, member), 1))


@pytest.mark.parametrize(
    ("space", "value", "said"),
    [
        (spaces.Discrete(4), np.array([0, 4]), "out of range"),
        (spaces.Discrete(4), np.array([0, -1]), "out of range"),
        (spaces.Discrete(4), np.array([0.5, 1.0]), "does not fit"),
        (spaces.Discrete(4), np.array([0.0, np.nan]), "not finite"),
        (spaces.Discrete(4), np.array([0, 1, 2]), "does not fit"),
        (spaces.Discrete(4), ["a", "b"], "does not fit"),
        (spaces.Discrete(4), [[1], [1, 2]], "does not fit"),
        (spaces.Discrete(4), None, "does not fit"),
        (spaces.Discrete(4), {"a": 1}, "does not fit"),
        (spaces.Discrete(4), np.array([2**63, 1], np.uint64), "does not fit|out of range"),
        (spaces.Box(-1.0, 1.0, (2,)), np.full((2, 2), np.inf), "not finite"),
        (spaces.Box(-1.0, 1.0, (2,)), np.full((2, 2), 1e300), "out of range"),
        (spaces.Box(-1.0, 1.0, (2,)), np.zeros((2, 3)), "does not fit"),
        (spaces.Box(0, 9, (), np.uint8), np.array([300, 1]), "does not fit"),
        (spaces.MultiBinary(1), np.array([[2], [0]]), "out of range"),
        (spaces.MultiDiscrete([2, 3]), np.array([[1, 2], [1, 3]]), "out of range"),
        (spaces.Text(3), ["abc"], "does not fit"),
        (spaces.Text(3), ["abc", "abcd"], "does not fit"),
        (spaces.Text(3), ["abc", 5], "does not fit"),
        (spaces.Dict({"a": spaces.Discrete(2)}), {"b": [0, 1]}, "does not fit"),
        (spaces.Dict({"a": spaces.Discrete(2)}), {"a": [0, 5]}, "action.a"),
        (spaces.Tuple([spaces.Discrete(2)]), [[0, 1], [0, 1]], "does not fit"),
    ],
)
def test_actions_that_do_not_fit_are_refused(space, value, said):
    with pytest.raises(SpaceError, match=said):
        read_batch(space, value, 2)


def test_numbers_of_other_types_are_taken_and_boxes_need_not_be_kept_to():
    assert read_batch(spaces.Discrete(4), [1.0, 3.0], 2).dtype == np.int64
    far = read_batch(spaces.Box(-1.0, 1.0, (1,)), [[5], [-5]], 2)
    assert (far.dtype, far.tolist()) == (np.float32, [[5.0], [-5.0]])
    for member in (None, 5, {"x": 1}, {"rgb": 1}):
        with pytest.raises(SpaceError):
            batch_of_one(NESTED, member)
