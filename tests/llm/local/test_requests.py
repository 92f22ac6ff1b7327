from typing import Any

import pytest

from sensorium.llm.local.config import SamplingDefaults
from sensorium.llm.local.requests import Request, RequestError, Sampling, common_prefix
from sensorium.llm.local.sampling_options import read_options
from sensorium.llm.local.tools import read_choice, read_tools

ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
SUB = {"type": "function", "name": "sub", "strict": True}


def test_settings_are_read_by_their_names() -> None:
    given = {
        "temperature": 0,
        "top_p": 0.5,
        "top_k": 7,
        "seed": 2**70,
        "max_completion_tokens": 9,
        "stop": "x",
        "logprobs": True,
        "top_logprobs": 2,
        "return_token_ids": True,
        "user": "me",
        "n": 1,
        "frequency_penalty": 0.0,
        "presence_penalty": None,
    }
    assert read_options(given, SamplingDefaults()).sampling == Sampling(
        temperature=0,
        top_p=0.5,
        top_k=7,
        seed=2**70,
        max_tokens=9,
        stop=("x",),
        logprobs=True,
        top_logprobs=2,
        return_token_ids=True,
    )


def test_what_is_not_said_comes_from_the_config() -> None:
    defaults = SamplingDefaults(temperature=0.3, top_p=0.8, top_k=4, max_tokens=50)
    assert read_options({"temperature": None}, defaults).sampling == Sampling(
        temperature=0.3, top_p=0.8, top_k=4, max_tokens=50
    )


def test_logprobs_may_be_a_number() -> None:
    read = read_options({"logprobs": 3, "top_k": -1}, SamplingDefaults()).sampling
    assert (read.logprobs, read.top_logprobs, read.top_k) == (True, 3, 0)
    assert read_options({"logprobs": 0}, SamplingDefaults()).sampling.logprobs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temprature": 1}, "Did you mean 'temperature'"),
        ({"temperature": -1}, "between 0 and 100"),
        ({"temperature": float("nan")}, "a number"),
        ({"temperature": float("inf")}, "a number"),
        ({"temperature": "1"}, "a number"),
        ({"temperature": True}, "a number"),
        ({"top_p": 1.5}, "between 0 and 1"),
        ({"max_tokens": 0}, "at least 1"),
        ({"max_tokens": 1.5}, "a whole number"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "differ"),
        ({"seed": "x"}, "a whole number"),
        ({"stop": ""}, "none of them empty"),
        ({"stop": 3}, "list of texts"),
        ({"stop": ["x"] * 17}, "at most 16"),
        ({"n": 2}, "not supported"),
        ({"stream": True}, "not supported"),
        ({"logit_bias": {"5": 1}}, "not supported"),
        ({"top_logprobs": 21}, "between 0 and 20"),
        ({"return_token_ids": 1}, "true or false"),
    ],
)
def test_settings_that_do_not_fit_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_options(given, SamplingDefaults())


def test_tools_of_both_apis_are_read() -> None:
    add, sub = read_tools([ADD, SUB])
    assert (add.name, sub.name, add.is_strict, sub.is_strict) == ("add", "sub", False, True)
    assert sub.parameters == {"type": "object", "properties": {}}
    assert "strict" not in sub.function


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ({"type": "web_search"}, "Expected {'type'"),
        ({"type": "function", "function": {"name": ""}}, "the name ''"),
        ({"name": "f", "parameters": {"type": "string"}}, "schema of an object"),
        ({"name": "f", "parameters": []}, "schema of an object"),
    ],
)
def test_tools_that_are_none_are_refused(tool: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_tools([tool])


def test_names_of_tools_differ() -> None:
    with pytest.raises(RequestError, match="'add'"):
        read_tools([ADD, ADD])


@pytest.mark.parametrize(
    ("choice", "shown", "callable_", "is_required"),
    [
        (None, 2, 2, False),
        ("auto", 2, 2, False),
        ("none", 2, 0, False),
        ("required", 2, 2, True),
        ({"type": "function", "function": {"name": "sub"}}, 2, 1, True),
        ({"type": "function", "name": "add"}, 2, 1, True),
    ],
)
def test_choices_of_both_apis_are_read(choice: Any, shown: int, callable_: int, is_required: bool) -> None:
    use = read_choice(choice, read_tools([ADD, SUB]))
    assert (len(use.shown), len(use.callable), use.is_required) == (shown, callable_, is_required)


def test_choices_that_cannot_be_met_are_refused() -> None:
    with pytest.raises(RequestError, match="no tools"):
        read_choice("required", ())
    with pytest.raises(RequestError, match="Did you mean 'add'"):
        read_choice({"type": "function", "function": {"name": "ad"}}, read_tools([ADD]))
    with pytest.raises(RequestError, match="Expected 'auto'"):
        read_choice("maybe", read_tools([ADD]))


def test_the_common_beginning_is_counted() -> None:
    assert common_prefix([1, 2, 3], [1, 2, 4, 5]) == 2
    assert common_prefix([1, 2], [1, 2, 4]) == 2
    assert common_prefix([], [1]) == 0


def test_a_request_is_plain_when_nothing_is_changed_or_cut() -> None:
    assert Request(prompt=(1,)).is_plain
    for changed in (Sampling(temperature=0.9), Sampling(top_p=0.9), Sampling(top_k=3)):
        assert not Request(prompt=(1,), sampling=changed).is_plain
