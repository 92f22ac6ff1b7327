import asyncio
import json
import time

import pytest
from chat_server import ChatServer, Reply, completion

from sensorium.core import ConfigError, ModelError
from sensorium.llm.base import Completion, ContextLengthError, RequestRefusedError, Usage
from sensorium.llm.client import OpenAIChatModel
from sensorium.llm.config import ChatModelConfig
from sensorium.llm.messages import Message, TextBlock, text_message

HELLO = (text_message("user", "Hello"),)
TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}


def model(server: ChatServer, **settings: object) -> OpenAIChatModel:
    defaults: dict[str, object] = {"timeout_s": 10.0, "backoff_s": 0.001}
    return OpenAIChatModel(server.base_url, "judge-7b", **(defaults | settings))  # type: ignore[arg-type]


def test_an_answer_with_all_that_comes_with_it():
    body = completion(
        "Hi",
        finish_reason="length",
        logprobs={"content": [{"token": "H", "logprob": -0.5}, {"token": "i", "logprob": -1.5}]},
    )
    with ChatServer([Reply(body=json.dumps(body).encode())]) as server:
        answer = model(server, api_key="secret-key").complete_sync(HELLO, [TOOL], temperature=0.0, seed=7)
    assert answer == Completion(
        message=Message(role="assistant", content=(TextBlock(text="Hi"),)),
        finish_reason="length",
        usage=Usage(prompt_tokens=11, completion_tokens=3),
        logprobs=(-0.5, -1.5),
        model="judge-7b",
    )
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["Authorization"] == "Bearer secret-key"
    assert asked.payload == {
        "model": "judge-7b",
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [TOOL],
        "temperature": 0.0,
        "seed": 7,
    }


def test_calls_of_tools_come_back_as_they_were():
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = completion("", message=message, finish_reason="tool_calls")
    with ChatServer([Reply(body=json.dumps(body).encode())]) as server:
        answer = model(server).complete_sync(HELLO)
    assert answer.message.tool_calls == (call,)
    assert answer.message.chat() == message


def test_the_responses_dialect():
    body = {
        "model": "judge-7b",
        "status": "completed",
        "output": [
            {"type": "reasoning", "id": "r1", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        ],
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    with ChatServer([Reply(body=json.dumps(body).encode())]) as server:
        answer = model(server, dialect="responses").complete_sync(HELLO, [TOOL], max_tokens=9)
    assert answer.message.text == "Hi"
    assert answer.message.tool_calls[0]["function"] == {"name": "look", "arguments": "{}"}
    assert (answer.finish_reason, answer.usage.prompt_tokens) == ("tool_calls", 5)
    (asked,) = server.asked
    assert asked.path == "/v1/responses"
    assert asked.payload["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
    ]
    assert asked.payload["tools"] == [{"type": "function", **TOOL["function"]}]  # type: ignore[dict-item]
    assert asked.payload["max_output_tokens"] == 9


@pytest.mark.parametrize(
    "failure",
    [Reply(resets=True), Reply(status=500), Reply(status=503), Reply(status=429), Reply(status=408)],
)
def test_failures_that_may_pass_are_repeated(failure):
    with ChatServer([failure, failure, Reply("Hi")]) as server:
        assert model(server).complete_sync(HELLO).message.text == "Hi"
    assert len(server.asked) == 3


def test_repetitions_are_bounded_and_the_error_says_all():
    body = b'{"error": {"message": "the model is loading", "code": "busy"}}'
    with ChatServer([Reply(status=503, body=body)]) as server, pytest.raises(ModelError) as caught:
        model(server, max_retries=2).complete_sync(HELLO)
    assert len(server.asked) == 3
    text = str(caught.value)
    assert f"{server.base_url}/chat/completions failed after 3 tries" in text
    assert "503 Service Unavailable" in text
    assert "the model is loading (busy)" in text


def test_retry_after_is_waited_for():
    with ChatServer([Reply(status=429, headers={"Retry-After": "0.3"}), Reply("Hi")]) as server:
        start = time.monotonic()
        assert model(server).complete_sync(HELLO).message.text == "Hi"
        assert time.monotonic() - start >= 0.3


def test_a_pause_longer_than_the_time_limit_is_not_begun():
    with (
        ChatServer([Reply(status=429, headers={"Retry-After": "3600"})]) as server,
        pytest.raises(ModelError, match=r"429 Too Many Requests.*3600\.0 s"),
    ):
        model(server, timeout_s=5.0).complete_sync(HELLO)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 301])
def test_refusals_are_not_repeated(status):
    with (
        ChatServer(
            [Reply(status=status, body=b"no such model", headers={"Location": "http://127.0.0.1:9/"})]
        ) as s,
        pytest.raises(ModelError, match=f"refused with status {status} .*no such model") as refused,
    ):
        model(s).complete_sync(HELLO)
    assert len(s.asked) == 1
    assert isinstance(refused.value, RequestRefusedError) is (status != 401)


def test_an_answer_that_breaks_off_is_not_asked_for_again():
    with ChatServer([Reply(cuts=True)]) as server, pytest.raises(ModelError, match="middle of its answer"):
        model(server).complete_sync(HELLO)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"<html>Welcome</html>", "no JSON.*Welcome"),
        (b'{"choices": []}', "no completion"),
        (b'{"choices": [{"message": null}]}', "no completion"),
        (b'{"error": {"message": "out of memory"}}', "out of memory"),
        (b"[]", "JSON list"),
        (b"", "no JSON.*nothing"),
        (b"\xff\xfe\x00", "no JSON"),
    ],
)
def test_nonsense_is_told(body, what):
    with ChatServer([Reply(body=body)]) as server, pytest.raises(ModelError, match=what):
        model(server).complete_sync(HELLO)


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded", "message": "This model's maximum context length is 8192 tokens."},
        {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"},
        {"type": "invalid_request_error", "message": "prompt is too long: 9000 tokens > 8192 maximum"},
    ],
)
def test_a_prompt_that_is_too_long_is_an_error_of_its_own(error):
    with (
        ChatServer([Reply(status=400, body=json.dumps({"error": error}).encode())]) as server,
        pytest.raises(ContextLengthError, match="does not fit judge-7b"),
    ):
        model(server).complete_sync(HELLO)
    assert len(server.asked) == 1


def test_the_key_is_in_no_message_and_no_repr():
    body = b'{"error": "Incorrect API key provided: secret-key"}'
    with ChatServer([Reply(status=401, body=body)]) as server:
        asking = model(server, api_key="secret-key")
        assert "secret-key" not in repr(asking)
        with pytest.raises(ModelError, match=r"Is the API key right") as caught:
            asking.complete_sync(HELLO)
    assert "secret-key" not in str(caught.value)
    hidden = OpenAIChatModel("http://me:secret@localhost:1/v1?key=secret", "m")
    assert hidden.address == "http://localhost:1/v1/chat/completions"


def test_no_server_at_all():
    with ChatServer([Reply("Hi")]) as server:
        asking = model(server, max_retries=1)
    with pytest.raises(ModelError, match="failed after 2 tries: no connection"):
        asking.complete_sync(HELLO)


def test_the_time_limit_covers_everything():
    with (
        ChatServer([Reply(status=500, body=b"oops"), Reply("late", delay_s=5.0)]) as server,
        pytest.raises(ModelError, match=r"did not answer within 0\.5 s. Before that: status 500"),
    ):
        model(server, timeout_s=0.5).complete_sync(HELLO)


def test_cancellation_passes_through():
    async def cancelled(server: ChatServer) -> None:
        async with model(server) as asking:
            task = asyncio.create_task(asking.complete(HELLO))
            await asyncio.to_thread(server.arrived.wait, 5.0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with ChatServer([Reply("late", delay_s=5.0)]) as server:
        asyncio.run(cancelled(server))


def test_no_more_than_so_many_at_once():
    async def many(server: ChatServer) -> list[Completion]:
        async with model(server, max_concurrency=3) as asking:
            return await asyncio.gather(*(asking.complete(HELLO) for _ in range(12)))

    with ChatServer([Reply("Hi", delay_s=0.05)]) as server:
        assert len(asyncio.run(many(server))) == 12
    assert server.most_at_once == 3


def test_one_model_serves_several_event_loops_and_is_closed():
    with ChatServer([Reply("Hi")]) as server:
        asking = model(server)
        for _ in range(2):
            assert asking.complete_sync(HELLO).message.text == "Hi"

        async def inside() -> None:
            async with asking:
                await asking.complete(HELLO)
            await asking.close()
            with pytest.raises(ModelError, match="await"):
                asking.complete_sync(HELLO)

        asyncio.run(inside())


def test_the_key_comes_from_the_environment_and_stays_out_of_dumps(monkeypatch):
    config = ChatModelConfig(base_url="http://localhost:1/v1", model="m", api_key_env="JUDGE_KEY")
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with pytest.raises(ConfigError, match="JUDGE_KEY, which is not set"):
        OpenAIChatModel.from_config(config)
    monkeypatch.setenv("JUDGE_KEY", "secret-key")
    OpenAIChatModel.from_config(config)
    assert "secret-key" not in config.model_dump_json()


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://"])
def test_an_address_that_is_none(url):
    with pytest.raises(ConfigError, match="no address"):
        OpenAIChatModel(url, "m")


def test_streams_are_refused():
    with pytest.raises(ModelError, match="stream"):
        OpenAIChatModel("http://localhost:1/v1", "m").complete_sync(HELLO, stream=True)
