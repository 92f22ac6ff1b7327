"""Each kind of action, there and back."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sensorium.core import ActionKind, ConfigError
from sensorium.envs.embodied.gymnasium_env.acting import ActionCodec

NO_NAMES: tuple[str, ...] = ()


def numbers(*values: float) -> Any:
    return np.array(values, np.float32)


def test_discrete_starts_where_its_space_does() -> None:
    space = spaces.Discrete(3, start=-1)
    act = ActionCodec(space, NO_NAMES, "gym/X")
    assert act.spec.kind is ActionKind.DISCRETE
    assert act.spec.option_names == ("action_-1", "action_0", "action_1")
    assert [act(option, None) for option in range(3)] == [-1, 0, 1]
    assert all(space.contains(act(option, None)) for option in range(3))
    assert ActionCodec(space, ("a", "b", "c"), "gym/X").spec.option_names == ("a", "b", "c")
    assert ActionCodec(space, ("a", "b"), "gym/X").spec.num_options == 3  # names of another space


@pytest.mark.parametrize(
    ("space", "count"),
    [
        (spaces.MultiDiscrete([2, 3], start=[0, 4]), 6),
        (spaces.MultiDiscrete(np.array([[2, 2], [1, 3]])), 12),
        (spaces.MultiBinary(4), 16),
        (spaces.MultiBinary((2, 2)), 16),
    ],
)
def test_every_combination_is_an_option(space: Any, count: int) -> None:
    act = ActionCodec(space, NO_NAMES, "gym/X")
    assert act.spec.num_options == len(set(act.spec.option_names)) == count
    actions = [act(option, None) for option in range(count)]
    assert all(space.contains(action) for action in actions)
    assert len({action.tobytes() for action in actions}) == count


def test_too_many_combinations() -> None:
    assert ActionCodec(spaces.MultiBinary(10), NO_NAMES, "gym/X").spec.num_options == 1024
    for space in (spaces.MultiBinary(11), spaces.MultiBinary(5000), spaces.MultiDiscrete([32, 33])):
        with pytest.raises(ConfigError, match=r"more than 1024 combinations.*ActionWrapper"):
            ActionCodec(space, NO_NAMES, "gym/X")


def test_a_box_is_scaled_to_its_bounds() -> None:
    space = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 0.1], np.float32))
    act = ActionCodec(space, NO_NAMES, "gym/X")
    assert act.spec.kind is ActionKind.CONTINUOUS
    assert act.spec.continuous_names == ("action[0]", "action[1]")
    assert act(0, numbers(-1, -1)).tolist() == space.low.tolist()
    assert act(0, numbers(1, 1)).tolist() == space.high.tolist()
    np.testing.assert_allclose(act(0, numbers(0.5, 0.0)), [1.0, 0.05], rtol=1e-6)
    rng = np.random.default_rng(0)
    assert all(space.contains(act(0, rng.uniform(-1, 1, 2).astype(np.float32))) for _ in range(200))


def test_boxes_of_other_shapes_and_dtypes() -> None:
    space = spaces.Box(0, 255, (2, 2), np.uint8)
    act = ActionCodec(space, NO_NAMES, "gym/X")
    action = act(0, numbers(-1, 0, 0.5, 1))
    assert action.tolist() == [[0, 128], [191, 255]]
    assert space.contains(action)


@pytest.mark.parametrize("as_dict", [True, False])
def test_one_choice_and_one_box_are_hybrid(as_dict: bool) -> None:
    box, choice = spaces.Box(0.0, 10.0, (1,)), spaces.Discrete(2)
    space: Any = spaces.Dict({"force": box, "tool": choice}) if as_dict else spaces.Tuple([box, choice])
    act = ActionCodec(space, NO_NAMES, "gym/X")
    assert act.spec.kind is ActionKind.HYBRID
    action = act(1, numbers(0.5))
    assert space.contains(action)
    force, tool = (action["force"], action["tool"]) if as_dict else action
    assert (force.tolist(), int(tool)) == ([7.5], 1)
    assert act.spec.continuous_names == (("force[0]",) if as_dict else ("action[0]",))


@pytest.mark.parametrize(
    ("space", "says"),
    [
        (spaces.Box(-np.inf, np.inf, (2,)), "no finite bounds.*RescaleAction"),
        (spaces.Box(0.0, np.inf, (2,)), "no finite bounds"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), "a policy cannot choose.*ActionWrapper"),
        (spaces.Dict({"a": spaces.Box(0, 1), "b": spaces.Box(0, 1)}), "a policy cannot choose"),
        (spaces.Text(3), "a policy cannot choose"),
    ],
)
def test_spaces_that_cannot_be_acted_in(space: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ActionCodec(space, NO_NAMES, "gym/X")
