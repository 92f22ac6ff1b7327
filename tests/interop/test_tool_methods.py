import inspect

import pytest

from sensorium.core import ConfigError
from sensorium.envs import Tool, find_env
from sensorium.interop.tool_methods import method_of

schemas = pytest.importorskip("transformers.utils").get_json_schema


def read_back(parameters, description="Do it."):
    tool = {
        "type": "function",
        "function": {"name": "do", "description": description, "parameters": parameters},
    }
    return schemas(method_of(tool, lambda *call: call))["function"]


def test_a_plain_tool_is_read_back_as_it_was():
    definition = find_env("lookup")
    for tool in definition.make(definition.config_type()).tools:
        method = method_of(tool, lambda *call: call)
        assert schemas(method)["function"] == tool["function"]


def test_the_call_gets_what_was_given_without_a_check():
    tool = Tool.from_function(area).schema()
    holder = type("Holder", (), {"area": method_of(tool, lambda *call: call)})()
    assert holder.area(width=2, wrong="x") == (holder, "area", {"width": 2, "wrong": "x"})
    assert list(inspect.signature(holder.area).parameters) == ["width", "height"]
    assert inspect.signature(holder.area).parameters["height"].default == 1.0


def area(width: float, height: float = 1.0) -> float:
    """The area.

    Args:
        width: In metres.
        height: In metres.
    """
    return width * height


@pytest.mark.parametrize(
    ("schema", "read"),
    [
        ({"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"const": 3}, {"type": "integer", "enum": [3]}),
        ({"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": "object", "additionalProperties": {"type": "number"}},
         {"type": "object", "additionalProperties": {"type": "number"}}),
        ({}, {}),
    ],
)  # fmt: skip
def test_hints_say_types_and_choices(schema, read):
    function = read_back({"type": "object", "properties": {"x": schema}, "required": ["x"]})
    assert function["parameters"]["properties"]["x"] == read | {"description": "x"}


def test_what_hints_cannot_say_stands_behind_the_description():
    point = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    properties = {
        "count": {"type": "integer", "minimum": 1, "default": 4, "description": "How\nmany."},
        "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
    }
    function = read_back({"type": "object", "properties": properties, "$defs": {"Point": point}})
    read = function["parameters"]["properties"]
    assert read["count"]["description"] == "How many. (minimum: 1; default: 4)"
    assert read["points"]["type"] == "array"
    assert '"required": ["x"]' in read["points"]["description"]
    assert "required" not in function["parameters"]


def test_a_schema_that_contains_itself_ends():
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/Tree"}}}
    function = read_back({"properties": {"tree": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": tree}})
    assert function["parameters"]["properties"]["tree"]["type"] == "object"


def test_words_that_mean_something_in_docstrings_are_harmless():
    about = "Which.\nArgs:\n  y: none (choices: any)"
    properties = {"x": {"type": "string", "description": about}, "y": {"type": "string"}}
    function = read_back({"properties": properties}, description="First.\n\nReturns: a word. Then more.")
    assert function["description"] == "First. Returns - a word. Then more."
    assert function["parameters"]["properties"].keys() == {"x", "y"}
    assert function["parameters"]["properties"]["x"]["description"].startswith(
        "Which. Args - y: none (one of:"
    )


@pytest.mark.parametrize("name", ["from", "a-b", "1st"])
def test_a_parameter_that_python_cannot_name_is_an_error(name):
    with pytest.raises(ConfigError, match=r"tool do cannot become .* Rename the parameter"):
        read_back({"properties": {name: {"type": "string"}}})
