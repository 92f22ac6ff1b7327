import json

import pytest

from sensorium.llm.local import RequestError
from sensorium.llm.local.chat import LocalChatModel
from sensorium.llm.local.config import LocalModelConfig
from sensorium.llm.local.loading import load_model
from sensorium.llm.local.python_calls import described, read_python_calls, written
from sensorium.llm.local.tiny import tiny_model
from sensorium.llm.local.tools import read_tools
from sensorium.llm.messages import Message, text_message


def function(name, properties, required=(), description=""):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


OFFERED = [
    function(
        "lookup",
        {"item": {"type": "string"}, "attribute": {"type": "string"}},
        ("item", "attribute"),
        "Look up one attribute of one item.",
    ),
    function(
        "move",
        {
            "way": {"enum": ["left", "right"]},
            "steps": {"type": "integer", "description": "How far.", "default": 1},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        ("way",),
    ),
    function("wait", {}),
]
TOOLS = read_tools(OFFERED)


def test_tools_are_told_as_signatures():
    assert described(TOOLS[0]) == "lookup(item: str, attribute: str): Look up one attribute of one item."
    assert described(TOOLS[1]) == (
        "move(way: 'left' | 'right', steps: int = 1, note = None)\n    steps: How far."
    )
    assert described(TOOLS[2]) == "wait()"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('lookup("vase", "color")', [("lookup", {"item": "vase", "attribute": "color"})]),
        (' lookup(attribute="a b", item="vase")\n', [("lookup", {"item": "vase", "attribute": "a b"})]),
        ("move('left', steps=-2)", [("move", {"way": "left", "steps": -2})]),
        ("move('left')\nwait()", [("move", {"way": "left"}), ("wait", {})]),
        ("[wait(), wait()]", [("wait", {}), ("wait", {})]),
        ("move(steps=[1, {'a': None}])", [("move", {"steps": [1, {"a": None}]})]),
        ('lookup("vase")', [("lookup", {"item": "vase"})]),  # what is missing, the tool says
    ],
)
def test_calls_are_read(text, calls):
    made = read_python_calls(text, TOOLS)
    assert [(name, json.loads(arguments)) for name, arguments in made] == calls


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The color is red.",
        "print('x')",
        'I call lookup("vase", "color")',
        'lookup("vase", "color"',
        "lookup(vase, color)",
        "lookup('a', 'b', 'c')",
        "lookup('a', item='b')",
        "lookup(*['a', 'b'])",
        "lookup(**{'item': 'a'})",
        "x = wait()",
        "[]",
        "wait() + wait()",
        "move(1e999)",
        "move({1, 2})",
        "move(b'a')",
        "a.wait()",
        "(" * 5000,
        "wait()\x00",
    ],
)
def test_everything_else_is_text(text):
    assert read_python_calls(text, TOOLS) is None


def test_what_is_written_is_read_as_the_same():
    arguments = {"way": "le'ft\n", "steps": 3}
    ((name, text),) = read_python_calls(written("move", arguments), TOOLS)
    assert (name, json.loads(text)) == ("move", arguments)
    assert written("move", "no object") == "move(no object)"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    config = LocalModelConfig(model=str(tiny_model(tmp_path_factory.mktemp("tiny"))), tool_format="python")
    made = LocalChatModel(*load_model(config), config)
    yield made
    made.engine.close()


def test_a_model_is_told_of_functions_and_of_earlier_calls(model):
    call = {"id": "1", "function": {"name": "lookup", "arguments": '{"item": "vase", "attribute": "color"}'}}
    conversation = [
        text_message("system", "Be brief."),
        text_message("user", "What color?"),
        Message(role="assistant", content=(), tool_calls=(call,)),
        Message(role="tool", content=text_message("user", "red").content, tool_call_id="1"),
    ]
    said = model.tokenizer.decode(list(model.prompt_tokens(conversation, OFFERED)))
    assert "Be brief.\n\nYou can call these functions:\nlookup(item: str" in said
    assert "assistant\nlookup(item='vase', attribute='color')" in said
    assert "<tool_response>\nred\n</tool_response>" in said
    assert "<tool_call>" not in said


def test_answers_become_calls(model, monkeypatch):
    decode = type(model.tokenizer).decode
    monkeypatch.setattr(type(model.tokenizer), "decode", lambda self, tokens: 'lookup("vase", "color")')
    made = model.complete_sync([text_message("user", "What color?")], OFFERED, max_tokens=2, seed=1)
    assert made.message.text == ""
    assert [call["function"]["name"] for call in made.message.tool_calls] == ["lookup"]
    monkeypatch.setattr(type(model.tokenizer), "decode", decode)
    made = model.complete_sync([text_message("user", "What color?")], OFFERED, max_tokens=2, seed=1)
    assert made.message.tool_calls == ()
    assert len(made.message.text) > 0


def test_nothing_can_be_forced(model):
    with pytest.raises(RequestError, match="tool_format: python"):
        model.complete_sync([text_message("user", "Go")], OFFERED, tool_choice="required")
