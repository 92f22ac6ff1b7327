"""Whatever the logits: constrained answers parse, fit their schema, and end in time."""

import json
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sensorium.llm.local.answers import read_answer
from sensorium.llm.local.grammars import answer_grammar, calls_grammar, response_schema
from sensorium.llm.local.guides import CallGuide, Grammars, JsonGuide
from sensorium.llm.local.requests import Guide, RequestError
from sensorium.llm.local.tools import read_tools

SLOW = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])

BACKSLASHES = {
    "type": "object",
    "properties": {"\\\\\\": {"type": "boolean"}},
    "required": [],
    "additionalProperties": False,
}
"""Another call, opened late, needs as many tokens again."""
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-1000, 1000), st.text(max_size=5), st.sampled_from([0.5, -2.25])
)
leaves = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"type": "number"}),
    st.builds(lambda value: {"const": value}, scalars),
    st.builds(lambda values: {"enum": values}, st.lists(scalars, min_size=1, max_size=4)),
    st.builds(
        lambda least, span: {"type": "string", "minLength": least, "maxLength": least + span},
        st.integers(0, 6),
        st.integers(0, 9),
    ),
    st.just({"type": "string"}),
    st.builds(
        lambda least, span: {"type": "integer", "minimum": least, "maximum": least + span},
        st.integers(-500, 500),
        st.integers(0, 2000),
    ),
    st.builds(lambda least: {"type": "integer", "minimum": least}, st.integers(-50, 50)),
)
names = st.text('abcdef "\\{}é\n', min_size=1, max_size=5)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(names, inner, max_size=4).flatmap(
        lambda properties: st.builds(
            lambda required, is_open: {
                "type": "object",
                "properties": properties,
                "required": sorted(required),
                **({} if is_open else {"additionalProperties": False}),
            },
            st.sets(st.sampled_from(sorted(properties))) if properties else st.just(set()),
            st.booleans(),
        )
    )


schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        objects(inner),
        st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda items, least, span: {
                "type": "array",
                "items": items,
                "minItems": least,
                "maxItems": least + span,
            },
            inner,
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
    ),
    max_leaves=6,
)


def decode(guide: Guide, grammars: Grammars, seed: int, taste: str, limit: int) -> tuple[str, bool]:
    """Let a guide lead a model of no sense; returns the text, and whether it ended by itself."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=grammars.size) * 5
    tokens: list[int] = []
    for place in range(limit):
        mask = guide.mask()
        if mask is None:
            mask = np.ones(grammars.size, dtype=bool)
        assert mask.any()
        if taste == "restless":
            scores = rng.normal(size=grammars.size)
        allowed = np.where(mask, scores, -np.inf)
        if taste == "endless" and len(np.nonzero(mask)[0]) > 1:
            allowed[grammars.ends] = -np.inf
        token = guide.accept(int(allowed.argmax()), limit - place - 1)
        assert mask[token] or len(tokens) > 0
        if token in grammars.ends:
            return grammars.tokenizer.decode(tokens), True
        tokens.append(token)
        if guide.is_finished:
            return grammars.tokenizer.decode(tokens), True
    return grammars.tokenizer.decode(tokens), False


TASTES = st.sampled_from(["restless", "stubborn", "endless"])


@SLOW
@given(schema=schemas, seed=st.integers(0, 1000), taste=TASTES)
def test_an_answer_fits_its_schema_and_ends(
    schema: dict[str, Any], seed: int, taste: str, grammars: Grammars
) -> None:
    guide = JsonGuide(grammars, grammars.matcher(answer_grammar(schema)))
    text, _ = decode(guide, grammars, seed, taste, 300)
    jsonschema.validate(json.loads(text), schema)


@SLOW
@example(parameters=[BACKSLASHES], seed=76, taste="endless", is_parallel=True)
@given(
    parameters=st.lists(objects(leaves), min_size=1, max_size=3),
    seed=st.integers(0, 1000),
    taste=TASTES,
    is_parallel=st.booleans(),
)
def test_a_required_call_is_one_of_a_tool_and_fits_its_schema(
    parameters: list[dict[str, Any]], seed: int, taste: str, is_parallel: bool, grammars: Grammars
) -> None:
    tools = read_tools(
        [{"name": f'tool "{place}"', "parameters": one} for place, one in enumerate(parameters)]
    )
    grammar = calls_grammar(tools, is_open=False, is_parallel=is_parallel, lenient=False)
    text, _ = decode(JsonGuide(grammars, grammars.matcher(grammar)), grammars, seed, taste, 400)
    said, calls = read_answer(text, set())
    assert said == ""
    assert len(calls) == 1 or (is_parallel and len(calls) > 1)
    for name, arguments in calls:
        (tool,) = [tool for tool in tools if tool.name == name]
        jsonschema.validate(json.loads(arguments), tool.parameters)


RECURSIVE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/tree"}},
    "required": ["tree"],
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            },
            "required": ["value", "children"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [110, 300])
def test_a_schema_that_contains_itself_ends_too(seed: int, limit: int, grammars: Grammars) -> None:
    tools = read_tools([{"name": "plant", "parameters": RECURSIVE}])
    grammar = calls_grammar(tools, is_open=False, is_parallel=False, lenient=False)
    text, is_ended = decode(JsonGuide(grammars, grammars.matcher(grammar)), grammars, seed, "endless", limit)
    assert is_ended
    ((_, arguments),) = read_answer(text, set())[1]
    jsonschema.validate(json.loads(arguments), RECURSIVE)


def test_a_limit_that_no_answer_fits_cuts_it(grammars: Grammars) -> None:
    schema = {"type": "string", "minLength": 50}
    guide = JsonGuide(grammars, grammars.matcher(answer_grammar(schema)))
    text, is_ended = decode(guide, grammars, 0, "restless", 20)
    assert not is_ended
    assert text.startswith('"')


def feed(guide: Guide, grammars: Grammars, text: str) -> None:
    for token in grammars.vocabulary.tokenize_str(text):
        mask = guide.mask()
        assert mask is None or mask[token], text
        assert guide.accept(token, 400) == token


TOOLS = read_tools(
    [
        {
            "type": "function",
            "function": {
                "name": "add",
                "parameters": {
                    "type": "object",
                    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                    "required": ["a", "b"],
                },
            },
        }
    ]
)


@pytest.fixture
def call_guide(grammars: Grammars) -> CallGuide:
    grammar = calls_grammar(TOOLS, is_open=True, is_parallel=True, lenient=False)
    return CallGuide(grammars, grammars.matcher(grammar))


def test_an_answer_is_free_until_it_opens_a_call(call_guide: CallGuide, grammars: Grammars) -> None:
    feed(call_guide, grammars, "I would say <tool> or even <tool_cal, {}} ")
    assert call_guide.is_free
    assert call_guide.mask() is None
    feed(call_guide, grammars, "<tool_call>")
    assert not call_guide.is_free
    mask = call_guide.mask()
    assert mask is not None
    allowed = {chr(grammars.vocabulary.decode_bytes([int(token)])[0]) for token in np.nonzero(mask)[0]}
    assert allowed == {"{", "\n", " "}
    text, is_ended = decode(call_guide, grammars, 3, "restless", 200)
    assert is_ended
    said, calls = read_answer("<tool_call>" + text, set())
    assert said == ""
    assert all(set(json.loads(arguments)) == {"a", "b"} for _, arguments in calls)


def test_an_answer_may_end_or_call_again_after_a_call(call_guide: CallGuide, grammars: Grammars) -> None:
    call = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": -2}}\n</tool_call>'
    feed(call_guide, grammars, call + "\n" + call)
    mask = call_guide.mask()
    assert mask is not None
    assert mask[grammars.ends].all()
    assert not mask[grammars.vocabulary.tokenize_str("x")[0]]
    assert not call_guide.is_finished


def test_arguments_that_a_tool_does_not_name_are_not_invented(
    call_guide: CallGuide, grammars: Grammars
) -> None:
    feed(call_guide, grammars, '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2')
    mask = call_guide.mask()
    assert mask is not None
    assert not mask[grammars.vocabulary.tokenize_str(",")[0]]


def test_what_cannot_be_enforced_is_named(grammars: Grammars) -> None:
    schema = {"type": "object", "not": {"required": ["a"]}}
    with pytest.raises(RequestError, match="not"):
        grammars.matcher(answer_grammar(schema))


def test_compiled_grammars_do_not_share_their_state(grammars: Grammars) -> None:
    grammar = answer_grammar({"enum": ["ab", "cd"]})
    first, second = (
        JsonGuide(grammars, grammars.matcher(grammar)),
        JsonGuide(grammars, grammars.matcher(grammar)),
    )
    feed(first, grammars, '"ab"')
    feed(second, grammars, '"cd"')
    assert first.is_finished
    assert second.is_finished


@pytest.mark.parametrize(
    ("asked", "schema"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "object"}),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "null"}}}, {"type": "null"}),
        ({"type": "json_schema", "name": "x", "schema": {"type": "null"}}, {"type": "null"}),
    ],
)
def test_response_formats_of_both_apis_are_read(asked: Any, schema: Any) -> None:
    assert response_schema(asked) == schema


@pytest.mark.parametrize("asked", ["json", {"type": "xml"}, {"type": "json_schema"}])
def test_other_response_formats_are_refused(asked: Any) -> None:
    with pytest.raises(RequestError, match="response_format"):
        response_schema(asked)
