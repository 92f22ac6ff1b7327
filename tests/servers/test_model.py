import json

import pytest
from chat_server import ChatServer, Reply, completion
from live_servers import Client, running

from sensorium.core import ConfigError
from sensorium.servers.config import CustomModelConfig, OpenAIModelConfig
from sensorium.servers.model import build_model_app

PNG = "data:image/png;base64,iVBORw0KGgo="
TOOL = {
    "type": "function",
    "name": "zoom",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}


def endpoint(server, **settings):
    values = {"base_url": server.base_url, "model": "judge-7b", "timeout_s": 5, **settings}
    config = OpenAIModelConfig.model_validate(values)
    return "model", lambda runtime: build_model_app(config, "model", runtime)


def custom(factory="scripted_models:says", **settings):
    config = CustomModelConfig(factory=factory, settings=settings)
    return "model", lambda runtime: build_model_app(config, "model", runtime)


def reply(text="hi", body=None, **changes):
    return Reply(body=json.dumps(body or completion(text, **changes)).encode())


def test_both_dialects_of_a_model_in_this_process():
    with running(custom(text="good day")) as urls:
        client = Client(urls["model"])
        status, body, _ = client.send(
            "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}
        )
        assert status == 200
        assert body["choices"][0]["message"]["content"] == "good day"
        assert body["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        status, body, _ = client.send("/v1/responses", {"input": "x", "temperature": 0.5})
        assert status == 200
        message = body["output"][0]
        assert (message["type"], message["role"]) == ("message", "assistant")
        assert message["content"] == [{"annotations": [], "type": "output_text", "text": "good day"}]
        assert (body["status"], body["usage"]["total_tokens"]) == ("completed", 15)
        assert client.send("/v1/models")[1]["data"][0]["id"] == "says"
        for prefix in ("/ng-rollout/r1-0", "/ng-rollout/r1.2/training-token-capture"):
            assert client.send(f"{prefix}/v1/responses", {"input": "x"})[0] == 200


def test_a_request_reaches_the_endpoint_with_everything_in_it():
    with ChatServer([reply()]) as server, running(endpoint(server)) as urls:
        client = Client(urls["model"])
        params = {
            "model": "whatever",
            "instructions": "be brief",
            "input": [
                {
                    "type": "message",
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "what is it?"},
                        {"type": "input_image", "image_url": PNG, "detail": "low"},
                    ],
                },
                {"type": "function_call", "call_id": "c1", "name": "zoom", "arguments": "{}"},
                {
                    "type": "function_call_output",
                    "call_id": "c1",
                    "output": [
                        {"type": "input_text", "text": "seen"},
                        {"type": "input_image", "image_url": PNG},
                    ],
                },
            ],
            "tools": [TOOL],
            "tool_choice": {"type": "function", "name": "zoom"},
            "max_output_tokens": 9,
            "reasoning": {"effort": "low"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
            "metadata": {"extra_body": json.dumps({"seed": 4, "stop": ["x"]}), "other": "1"},
            "store": False,
            "own_key": 5,
        }
        assert client.send("/v1/responses", params)[0] == 200
        sent = server.asked[0].payload
        assert sent["model"] == "judge-7b"
        assert [m["role"] for m in sent["messages"]] == ["system", "user", "assistant", "tool"]
        assert sent["messages"][1]["content"][1] == {
            "type": "image_url",
            "image_url": {"url": PNG, "detail": "low"},
        }
        assert sent["messages"][3]["content"][1]["image_url"]["url"] == PNG
        assert sent["tool_choice"] == {"type": "function", "function": {"name": "zoom"}}
        assert sent["tools"][0]["function"]["name"] == "zoom"
        assert (sent["max_tokens"], sent["seed"], sent["stop"], sent["own_key"]) == (9, 4, ["x"], 5)
        assert sent["reasoning_effort"] == "low"
        assert sent["response_format"]["json_schema"]["name"] == "n"
        assert not {"store", "metadata", "instructions", "input", "text", "reasoning"} & sent.keys()
        chat = {"messages": [{"role": "user", "content": "x", "odd": 1}], "own_key": [1]}
        client.send("/v1/chat/completions", chat)
        assert server.asked[1].payload == {**chat, "model": "judge-7b"}


def test_an_answer_comes_back_with_everything_in_it():
    calls = [{"id": "c9", "type": "function", "function": {"name": "zoom", "arguments": "{}"}}]
    message = {"role": "assistant", "content": "look", "reasoning_content": "hm", "tool_calls": calls}
    body = completion("", message=message, finish_reason="tool_calls") | {"system_fingerprint": "f"}
    with ChatServer([reply(body=body)]) as server, running(endpoint(server)) as urls:
        client = Client(urls["model"])
        _, answer, _ = client.send("/v1/responses", {"input": "x", "tools": [TOOL]})
        assert [item["type"] for item in answer["output"]] == ["reasoning", "message", "function_call"]
        assert answer["output"][0]["summary"][0]["text"] == "hm"
        assert answer["output"][2] | {"id": ""} == {
            "id": "",
            "type": "function_call",
            "call_id": "c9",
            "name": "zoom",
            "arguments": "{}",
            "status": "completed",
        }
        assert (
            client.send("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})[1] == body
        )


def test_ids_of_tokens_stand_at_the_last_item():
    logprobs = {
        "content": [{"token": "token_id:5", "logprob": -0.5}, {"token": "token_id:6", "logprob": -1.0}]
    }
    body = completion("ab", logprobs=logprobs) | {"prompt_token_ids": [1, 2, 3]}
    with (
        ChatServer([reply(body=body)]) as server,
        running(endpoint(server, return_token_id_information=True)) as urls,
    ):
        _, answer, _ = Client(urls["model"]).send("/v1/responses", {"input": "x"})
        assert server.asked[0].payload["logprobs"] is True
        last = answer["output"][-1]
        assert last["prompt_token_ids"] == [1, 2, 3]
        assert last["generation_token_ids"] == [5, 6]
        assert last["generation_log_probs"] == [-0.5, -1.0]


def test_an_answer_that_was_cut_is_incomplete():
    with ChatServer([reply("half", finish_reason="length")]) as server, running(endpoint(server)) as urls:
        _, answer, _ = Client(urls["model"]).send("/v1/responses", {"input": "x"})
        assert (answer["status"], answer["incomplete_details"]) == (
            "incomplete",
            {"reason": "max_output_tokens"},
        )


def events(text):
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def test_streams_tell_the_finished_answer_again():
    calls = [{"id": "c9", "type": "function", "function": {"name": "zoom", "arguments": '{"a":1}'}}]
    body = completion("", message={"role": "assistant", "content": "look", "tool_calls": calls})
    with ChatServer([reply(body=body)]) as server, running(endpoint(server)) as urls:
        client = Client(urls["model"])
        _, text, headers = client.send("/v1/responses", {"input": "x", "stream": True})
        assert headers["Content-Type"].startswith("text/event-stream")
        told = events(text)
        assert told[0]["type"] == "response.created"
        assert told[-1]["type"] == "response.completed"
        assert [e["sequence_number"] for e in told] == list(range(len(told)))
        assert "".join(e["delta"] for e in told if e["type"] == "response.output_text.delta") == "look"
        done = [e["item"] for e in told if e["type"] == "response.output_item.done"]
        assert done == told[-1]["response"]["output"]
        assert "stream" not in server.asked[0].payload
        _, text, _ = client.send(
            "/v1/chat/completions",
            {
                "messages": [{"role": "user", "content": "x"}],
                "stream": True,
                "stream_options": {"include_usage": True},
            },
        )
        assert text.rstrip().endswith("data: [DONE]")
        told = events(text)
        deltas = [choice["delta"] for e in told for choice in e["choices"]]
        assert "".join(d.get("content") or "" for d in deltas) == "look"
        assert [d["tool_calls"][0]["function"]["name"] for d in deltas if "tool_calls" in d] == ["zoom"]
        assert told[-1]["usage"]["total_tokens"] == 14


@pytest.mark.parametrize(
    ("answer", "status", "kind"),
    [
        (
            Reply(status=429, body=b'{"error": {"message": "slow down"}}', headers={"Retry-After": "7"}),
            429,
            "rate_limit",
        ),
        (
            Reply(status=400, body=b'{"error": {"message": "maximum context length is 10"}}'),
            400,
            "context_length_exceeded",
        ),
        (Reply(status=413, body=b"prompt is too long"), 400, "context_length_exceeded"),
        (Reply(status=422, body=b'{"detail": "bad temperature"}'), 422, "provider_refused"),
        (Reply(status=500, body=b"oops sk-secret"), 502, "provider_failed"),
        (Reply(body=b"no json"), 502, "provider_failed"),
        (Reply(body=b'{"choices": []}'), 502, "provider_failed"),
        (Reply(resets=True), 502, "transport_peer_drop"),
    ],
)
def test_errors_of_the_provider_keep_their_meaning(answer, status, kind, monkeypatch):
    monkeypatch.setenv("PROVIDER_KEY", "sk-secret")
    settings = {"model_api_key_env": "PROVIDER_KEY", "max_retries": 1}
    with ChatServer([answer]) as server, running(endpoint(server, **settings)) as urls:
        found, body, headers = Client(urls["model"]).send("/v1/responses", {"input": "x"})
        assert (found, body["error"]["code"]) == (status, kind)
        assert server.asked == [] or server.asked[0].headers["Authorization"] == "Bearer sk-secret"
        assert "sk-secret" not in json.dumps(body)
        if status == 429:
            assert headers["Retry-After"] == "7"


def test_an_overflow_of_a_model_in_this_process_is_said():
    with running(custom("scripted_models:fails")) as urls:
        for path, body in [
            ("/v1/responses", {"input": "x"}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
        ]:
            status, answer, _ = Client(urls["model"]).send(path, body)
            assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")


def test_requests_that_cannot_be_read_are_refused():
    with running(custom()) as urls:
        client = Client(urls["model"])
        for body in (
            {},
            {"input": 5},
            {"input": []},
            {"input": [5]},
            {"input": [{"type": "message", "role": "nobody", "content": "x"}]},
            {"input": [{"type": "message", "role": "user", "content": 5}]},
            {"input": "x", "previous_response_id": "r"},
            {"input": "x", "metadata": {"extra_body": "[1"}},
        ):
            assert client.send("/v1/responses", body)[0] == 400, body
        for messages in (None, [], "x", [5], [{"role": "nobody"}], [{"role": "user", "content": 5}]):
            assert client.send("/v1/chat/completions", {"messages": messages})[0] == 400, messages


def test_names_of_keys_as_nemo_gym_has_them():
    config = OpenAIModelConfig.model_validate(
        {"openai_base_url": "http://x/v1", "openai_model": "m", "openai_api_key": "k"}
    )
    assert (config.base_url, config.model, config.model_api_key) == ("http://x/v1", "m", "k")
    assert "k" not in repr(config).replace("model_api_key", "").split("'")
    with pytest.raises(ConfigError, match="NOT_SET"):
        build_model_app(
            config.model_copy(update={"model_api_key": None, "model_api_key_env": "NOT_SET"}), "m"
        )


def test_an_endpoint_of_the_responses_dialect():
    body = {
        "object": "response",
        "output": [{"type": "message", "role": "assistant", "content": []}],
        "kept": 1,
    }
    with ChatServer([reply(body=body)]) as server, running(endpoint(server, dialect="responses")) as urls:
        client = Client(urls["model"])
        assert client.send("/v1/responses", {"input": "x", "store": False})[1] == body
        assert server.asked[0].path.endswith("/responses")
        assert server.asked[0].payload == {"input": "x", "store": False, "model": "judge-7b"}
        assert client.send("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})[0] == 400
