import asyncio
import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

from sensorium.core import ConfigError
from sensorium.llm.base import ChatModel, ContextLengthError
from sensorium.llm.local import (
    EngineConfig,
    LocalChatModel,
    LocalCompletion,
    LocalModelConfig,
    ModelClosedError,
    QueueFullError,
    RequestError,
    tiny_model,
)
from sensorium.llm.messages import text_message

HELLO = [text_message("user", "Hello")]
PARAMETERS = {
    "type": "object",
    "properties": {
        "source": {"type": "string"},
        "count": {"type": "integer", "minimum": 3, "maximum": 17},
        "kind": {"enum": ["code", "text"]},
    },
    "required": ["source", "count"],
}
TOOL = {"type": "function", "function": {"name": "run_cell", "parameters": PARAMETERS}}
NONE = {"type": "function", "function": {"name": "stop"}}


def test_it_is_a_chat_model(chat_model: LocalChatModel) -> None:
    assert isinstance(chat_model, ChatModel)
    assert (chat_model.model, chat_model.context_tokens) == ("tiny", 2048)


async def test_an_answer_is_counted(chat_model: LocalChatModel) -> None:
    answer = await chat_model.complete(HELLO, max_tokens=7, temperature=0)
    assert isinstance(answer, LocalCompletion)
    assert (answer.finish_reason, answer.model, answer.message.role) == ("length", "tiny", "assistant")
    assert answer.usage.completion_tokens == 7
    assert answer.usage.prompt_tokens == len(chat_model.prompt_tokens(HELLO))
    assert answer.logprobs is None
    assert answer.token_ids is None
    assert answer == chat_model.complete_sync(HELLO, max_tokens=7, temperature=0).model_copy(
        update={"seed": answer.seed, "reused_tokens": 0}
    )


async def test_tokens_and_logprobs_are_told_on_request(chat_model: LocalChatModel) -> None:
    answer = await chat_model.complete(
        HELLO, max_tokens=9, seed=4, temperature=0.8, logprobs=True, top_logprobs=2, return_token_ids=True
    )
    assert answer.prompt_token_ids == chat_model.prompt_tokens(HELLO)
    assert answer.token_ids is not None
    assert answer.logprobs is not None
    assert answer.sampled_logprobs is not None
    assert answer.top_logprobs is not None
    assert answer.seed == 4
    assert [len(answer.logprobs), len(answer.sampled_logprobs), len(answer.top_logprobs)] == [9] * 3
    with torch.inference_mode():
        tokens = torch.tensor([[*answer.prompt_token_ids, *answer.token_ids]])
        logits = chat_model.engine.model(tokens).logits[0, -10:-1]
    plain = torch.log_softmax(logits, -1)[range(9), list(answer.token_ids)]
    assert answer.logprobs == pytest.approx(plain.tolist(), abs=1e-4)


@pytest.mark.parametrize("limit", [110, 250])
async def test_a_required_call_fits_its_schema_whatever_the_limit(
    chat_model: LocalChatModel, limit: int
) -> None:
    asked = [
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "run_cell"}}},
    ]
    answers = await asyncio.gather(
        *(
            chat_model.complete(
                HELLO,
                [TOOL, NONE],
                max_tokens=limit,
                temperature=1.5,
                seed=seed,
                logprobs=True,
                **asked[seed % 2],
            )
            for seed in range(6)
        )
    )
    for seed, answer in enumerate(answers):
        assert answer.finish_reason == "tool_calls"
        (call,) = answer.message.tool_calls
        assert answer.message.text == ""
        if seed % 2 or call["function"]["name"] == "run_cell":
            assert call["function"]["name"] == "run_cell"
            jsonschema.validate(json.loads(call["function"]["arguments"]), PARAMETERS)
        else:
            assert call["function"] == {"name": "stop", "arguments": "{}"}
        assert answer.logprobs is not None
        assert answer.sampled_logprobs is not None
        assert answer.usage.completion_tokens == len(answer.logprobs)
        assert max(answer.sampled_logprobs) <= 0.0
    ids = [answer.message.tool_calls[0]["id"] for answer in answers]
    assert len(set(ids)) == len(ids)


async def test_what_must_be_said_is_not_decoded_and_changes_nothing(chat_model: LocalChatModel) -> None:
    asked: dict[str, Any] = {
        "tool_choice": "required",
        "max_tokens": 130,
        "seed": 5,
        "return_token_ids": True,
    }
    one_by_one = await chat_model.complete(HELLO, [TOOL], logprobs=True, **asked)
    steps = chat_model.engine.stats.steps
    answer = await chat_model.complete(HELLO, [TOOL], **asked)
    assert answer.token_ids == one_by_one.token_ids
    assert answer.message == one_by_one.message
    assert answer.usage == one_by_one.usage
    assert answer.usage.completion_tokens is not None
    begins = len('<tool_call>\n{"name": "run_cell", "arguments": {"source": "')
    assert chat_model.engine.stats.steps - steps <= answer.usage.completion_tokens - begins + 4
    fixed = {"type": "json_schema", "json_schema": {"schema": {"const": [1, "two"]}}}
    for wants_logprobs in (False, True):
        whole = await chat_model.complete(HELLO, response_format=fixed, logprobs=wants_logprobs)
        assert (whole.message.text, whole.finish_reason) == ('[1, "two"]', "stop")
        assert whole.usage.completion_tokens == 10
    short = await chat_model.complete(HELLO, [TOOL], tool_choice="required", max_tokens=20)
    assert (short.finish_reason, short.usage.completion_tokens) == ("length", 20)


async def test_an_answer_of_json_fits_its_schema(chat_model: LocalChatModel) -> None:
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 3}
    asked = {"type": "json_schema", "json_schema": {"name": "words", "schema": schema}}
    for seed in range(4):
        answer = await chat_model.complete(HELLO, response_format=asked, seed=seed, max_tokens=80)
        jsonschema.validate(json.loads(answer.message.text), schema)
        assert answer.finish_reason == "stop"


async def test_schemas_that_cannot_be_enforced_are_refused_where_that_was_promised(
    chat_model: LocalChatModel,
) -> None:
    schema = {"type": "object", "properties": {}, "not": {"required": ["a"]}}
    with pytest.raises(RequestError, match="not"):
        await chat_model.complete(
            HELLO, response_format={"type": "json_schema", "json_schema": {"schema": schema}}
        )
    lenient = {"name": "f", "parameters": schema}
    answer = await chat_model.complete(HELLO, [lenient], tool_choice="required", max_tokens=150)
    assert answer.finish_reason == "tool_calls"
    with pytest.raises(RequestError, match="not"):
        await chat_model.complete(HELLO, [lenient | {"strict": True}], tool_choice="required")


async def test_without_a_call_an_answer_is_text(chat_model: LocalChatModel) -> None:
    answer = await chat_model.complete(HELLO, [TOOL], max_tokens=20, seed=1)
    assert answer.message.tool_calls == ()
    assert answer.message.text
    shown = await chat_model.complete(HELLO, [TOOL], tool_choice="none", max_tokens=20, seed=1)
    assert shown.usage.prompt_tokens == answer.usage.prompt_tokens
    assert shown.message.text == answer.message.text


async def test_many_at_once_are_as_one_by_one(chat_model: LocalChatModel) -> None:
    asked = [{"seed": seed, "max_tokens": 5 + 3 * seed, "temperature": 0.3 * seed} for seed in range(12)]
    together = await asyncio.gather(*(chat_model.complete(HELLO, **one) for one in asked))
    alone = [await chat_model.complete(HELLO, **one) for one in asked]
    assert [one.message for one in together] == [one.message for one in alone]


async def test_overflow_is_an_error(chat_model: LocalChatModel) -> None:
    with pytest.raises(ContextLengthError, match="context length is 2048"):
        await chat_model.complete([text_message("user", "x" * 2500)])


def until_running(model: LocalChatModel) -> None:
    while model.engine.num_running == 0:
        time.sleep(0.001)


async def test_cancelling_frees_the_place(chat_model: LocalChatModel) -> None:
    task = asyncio.create_task(chat_model.complete(HELLO, temperature=0))
    await asyncio.to_thread(until_running, chat_model)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await chat_model.complete(HELLO, max_tokens=1)
    assert chat_model.engine.num_running == 0


async def test_a_full_queue_is_an_error(folder: Path) -> None:
    config = LocalModelConfig(model=str(folder), engine=EngineConfig(max_batch=1, max_queue=1), device="cpu")
    async with LocalChatModel.from_config(config) as model:
        answers = await asyncio.gather(
            *(model.complete(HELLO, max_tokens=200) for _ in range(5)), return_exceptions=True
        )
        kinds = [type(answer) for answer in answers]
        assert kinds.count(LocalCompletion) >= 2
        assert set(kinds) == {LocalCompletion, QueueFullError}
    with pytest.raises(ModelClosedError):
        await model.complete(HELLO)


async def test_settings_are_checked_before_anything_is_computed(chat_model: LocalChatModel) -> None:
    for bad in ({"temperature": -1}, {"tool_choice": "required"}, {"nonsense": 1}):
        with pytest.raises(RequestError):
            await chat_model.complete(HELLO, **bad)
    with pytest.raises(RequestError, match="cannot combine"):
        await chat_model.complete(HELLO, [TOOL], response_format={"type": "json_object"})
    assert chat_model.engine.stats.requests == 0


def test_a_model_that_cannot_be_loaded_is_named(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ConfigError, match="Cannot load the language model"):
        LocalChatModel.from_config(LocalModelConfig(model=str(tmp_path / "nothing")))
    with pytest.raises(ConfigError, match="Cannot use the device"):
        LocalChatModel.from_config(LocalModelConfig(model=str(folder), device="nowhere"))


def test_the_tiny_model_is_small_and_the_same_each_time(tmp_path: Path, folder: Path, loaded: Any) -> None:
    again = tiny_model(tmp_path, context_tokens=2048)
    assert (again / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert sum(parameter.numel() for parameter in loaded[0].parameters()) < 50_000
