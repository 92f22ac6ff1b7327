import json

import pytest

from sensorium.llm.local.answers import read_answer

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        ("just text", "just text", []),
        (CALL, "", [("add", {"a": 1})]),
        (f"I add.\n{CALL}", "I add.", [("add", {"a": 1})]),
        (f"{CALL}\n{CALL} done", "done", [("add", {"a": 1})] * 2),
        (
            '<tool_call>[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"x": "y"}}]</tool_call>',
            "",
            [("f", {}), ("g", {"x": "y"})],
        ),
        ('<tool_call>{"name": "f", "arguments": "{\\"a\\": 2}"}</tool_call>', "", [("f", {"a": 2})]),
        ('<tool_call>{"name": "f", "arguments": {"a": 1}}', "", [("f", {"a": 1})]),
        ('{"name": "add", "parameters": {"a": 1}}', "", [("add", {"a": 1})]),
        (  # marks inside of an argument are part of it
            '<tool_call>{"name": "f", "arguments": {"a": "</tool_call>, <tool_call>"}}</tool_call>'
            f" then {CALL}",
            "then",
            [("f", {"a": "</tool_call>, <tool_call>"}), ("add", {"a": 1})],
        ),
    ],
)
def test_calls_are_read(text: str, said: str, calls: list[tuple[str, dict[str, object]]]) -> None:
    found, read = read_answer(text, {"add"})
    assert found == said
    assert [(name, json.loads(arguments)) for name, arguments in read] == calls


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{broken</tool_call>",
        "<tool_call>[]</tool_call>",
        '<tool_call>{"name": 3, "arguments": {}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>',
        '<tool_call>{"name": "f"}</tool_call>',
        '{"name": "unknown", "arguments": {}}',
        "<tool_call>" + "[" * 100_000,
        "",
        "17",
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert read_answer(text, {"add"}) == (text, [])


def test_broken_calls_stay_beside_good_ones() -> None:
    broken = "<tool_call>{oops}</tool_call>"
    said, calls = read_answer(f"{broken}\n{CALL}", {"add"})
    assert said == broken
    assert len(calls) == 1
