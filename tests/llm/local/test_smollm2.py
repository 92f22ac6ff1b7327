"""A real model of 135 million weights, where it has been fetched (``sensorium models fetch smollm2``)."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import torch

from sensorium.features import find_model, locate_model
from sensorium.llm.local import LocalChatModel, LocalModelConfig
from sensorium.llm.messages import text_message

pytestmark = pytest.mark.slow

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "description": "Weather in a city.", "parameters": PARAMETERS},
}


@pytest.fixture(scope="module")
def model() -> Iterator[LocalChatModel]:
    if locate_model("smollm2") is None:
        pytest.skip("SmolLM2 is not on this machine: sensorium models fetch smollm2")
    made = LocalChatModel.from_config(LocalModelConfig(device="cpu"), find_model)
    yield made
    made.engine.close()


async def test_it_knows_a_capital(model: LocalChatModel) -> None:
    asked = [text_message("user", "What is the capital of France?")]
    answer = await model.complete(asked, temperature=0, max_tokens=30)
    assert "Paris" in answer.message.text
    assert answer.finish_reason == "stop"


async def test_greedy_answers_together_are_those_of_transformers(model: LocalChatModel) -> None:
    texts = ["Name three colours.", "Hello! " * 20, "Why is the sky blue?", "2 + 2 ="]
    answers = await asyncio.gather(
        *(
            model.complete(
                [text_message("user", text)],
                temperature=0,
                max_tokens=12 + 4 * place,
                logprobs=True,
                return_token_ids=True,
            )
            for place, text in enumerate(texts)
        )
    )
    for place, answer in enumerate(answers):
        assert answer.prompt_token_ids is not None
        assert answer.token_ids is not None
        prompt = torch.tensor([answer.prompt_token_ids])
        network: Any = model.engine.model
        alone = network.generate(prompt, do_sample=False, max_new_tokens=12 + 4 * place, pad_token_id=2)
        assert alone[0, prompt.shape[1] :].tolist() == list(answer.token_ids)
        with torch.inference_mode():
            logits = network(torch.tensor([answer.prompt_token_ids + answer.token_ids])).logits[0]
        places = torch.arange(len(answer.token_ids)) + prompt.shape[1] - 1
        plain = torch.log_softmax(logits[places], -1)[range(len(places)), list(answer.token_ids)]
        assert answer.logprobs == pytest.approx(plain.tolist(), abs=1e-3)


async def test_its_calls_fit_the_schema(model: LocalChatModel) -> None:
    asked = [text_message("user", "What will the weather be in Lisbon for the next 3 days?")]
    answers = await asyncio.gather(
        *(
            model.complete(asked, [WEATHER], tool_choice="required", temperature=t, seed=1, max_tokens=60)
            for t in (0.0, 1.0, 2.0)
        )
    )
    for answer in answers:
        assert answer.finish_reason == "tool_calls"
        (call,) = answer.message.tool_calls
        assert call["function"]["name"] == "weather"
        jsonschema.validate(json.loads(call["function"]["arguments"]), PARAMETERS)
    assert "Lisbon" in answers[0].message.tool_calls[0]["function"]["arguments"]
