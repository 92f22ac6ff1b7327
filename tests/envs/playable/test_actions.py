import json

import numpy as np
import pytest
from gymnasium import spaces
from pydantic import ValidationError

from sensorium.core import ActionKind, ConfigError
from sensorium.envs.embodied.base import ActionSpec
from sensorium.envs.playable.actions import tool_of_space, tool_of_spec
from sensorium.envs.playable.gym_view import has_picture, view

SPACES = [
    spaces.Discrete(4),
    spaces.Discrete(3, start=-1),
    spaces.Box(-2.0, 2.0, (1,), np.float32),
    spaces.Box(np.array([0, -np.inf]), np.array([1, np.inf]), dtype=np.float64),
    spaces.Box(-1.0, 1.0, (3, 4), np.float32),
    spaces.Box(0, 9, (2,), np.int64),
    spaces.MultiDiscrete([3, 2]),
    spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
    spaces.MultiBinary(3),
    spaces.Text(8, charset="abc"),
    spaces.Dict({"move": spaces.Discrete(2), "aim": spaces.Box(-1.0, 1.0, (2,), np.float32)}),
    spaces.Tuple((spaces.Discrete(2), spaces.Dict({"x": spaces.MultiBinary(2)}))),
]


def sample(schema):
    """Arguments that fit a schema, at its lower limits."""
    made = {}
    for name, one in schema["properties"].items():
        kind = one["type"]
        low = one.get("minimum", 0)
        if "enum" in one:
            made[name] = one["enum"][-1]
        elif kind == "array":
            made[name] = (
                [0.5] * one["minItems"] if one["items"]["type"] == "number" else [1] * one["minItems"]
            )
        else:
            made[name] = {"integer": low, "number": low, "boolean": True, "string": "abzc"}[kind]
    return made


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_arguments_that_fit_the_schema_are_actions_of_the_space(space):
    tool = tool_of_space(space, (), max_repeat=8)
    schema = tool.model.model_json_schema()
    json.dumps(schema)
    given = tool.model.model_validate(sample(schema))
    assert given.repeat == 1
    action = tool.decode(given.model_dump())
    assert space.contains(action), action


def test_names_stand_for_numbers_and_nothing_else_is_taken():
    tool = tool_of_space(spaces.Discrete(2, start=1), ("stick", "hit"), max_repeat=1)
    assert list(tool.model.model_fields) == ["action"]
    assert tool.decode({"action": "hit"}) == 2
    for wrong in ({"action": "fold"}, {"action": 1}, {}, {"action": "hit", "repeat": 2}):
        with pytest.raises(ValidationError):
            tool.model.model_validate(wrong)
    with pytest.raises(ConfigError, match="3 names"):
        tool_of_space(spaces.Discrete(2), ("a", "b", "c"), 1)


@pytest.mark.parametrize(
    "bad", [{"value": 3}, {"value": "fast"}, {"value": float("nan")}, {"value": 0, "repeat": 9}]
)
def test_numbers_out_of_bounds_are_refused(bad):
    tool = tool_of_space(spaces.Box(-2.0, 2.0, (1,), np.float32), (), max_repeat=8)
    with pytest.raises(ValidationError):
        tool.model.model_validate(bad)


def test_spaces_without_words_are_refused():
    with pytest.raises(ConfigError, match="Graph"):
        tool_of_space(spaces.Graph(spaces.Discrete(2), None), (), 1)
    with pytest.raises(ConfigError, match="64 parts"):
        tool_of_space(spaces.MultiBinary(64), (), 1)


def test_hybrid_actions_say_which_option_uses_a_number():
    mask = np.array([[True, True], [False, False]])
    spec = ActionSpec(
        kind=ActionKind.HYBRID,
        option_names=("move", "interact"),
        continuous_names=("forward", "turn"),
        parameter_mask=mask,
    )
    tool = tool_of_spec(spec, 8)
    schema = tool.model.model_json_schema()["properties"]
    assert schema["turn"]["description"] == "Turn; left is positive. Used by move."
    action = tool.decode(tool.model.model_validate({"action": "move", "forward": 1}).model_dump())
    assert spec.space().contains(action)
    assert (action["discrete"], action["continuous"].tolist()) == (0, [1.0, 0.0])


def test_observations_of_any_space_are_raw_states():
    rgb = np.zeros((32, 32, 3), np.uint8)
    space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (32, 32, 3), np.uint8),
            "grey": spaces.Box(0, 255, (32, 32, 1), np.uint8),
            "body": spaces.Box(-1.0, 1.0, (2,), np.float32),
            "grid": spaces.Box(0, 255, (5, 5), np.uint8),
            "told": spaces.Text(9),
            "inner": spaces.Dict({"cell": spaces.Discrete(9)}),
            "pair": spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, (2, 2), np.float32))),
        }
    )
    value = {
        "camera": rgb, "grey": rgb[..., :1], "body": np.array([0.5, -1], np.float32),
        "grid": np.eye(5, dtype=np.uint8), "told": "go", "inner": {"cell": 4},
        "pair": (1, np.eye(2, dtype=np.float32)),
    }  # fmt: skip
    state = view(space, value)
    kinds = {name: getattr(raw, "modality", raw) for name, raw in state.items()}
    assert kinds == {
        "camera": "image", "grey": "image", "body": "proprio", "grid": "table", "told": "go",
        "inner/cell": "value 4 of 0 to 8", "pair/part_0": "value 1 of 0 to 2", "pair/part_1": "table",
    }  # fmt: skip
    assert state["body"].raw == {"value_0": 0.5, "value_1": -1.0}
    assert state["grey"].raw.shape == (32, 32, 3)
    assert has_picture(space)
    assert not has_picture(spaces.Box(0, 255, (7, 7, 3), np.uint8))
