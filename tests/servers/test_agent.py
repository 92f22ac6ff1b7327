import functools
import json
import threading
import time

import live_servers
import pytest
from live_servers import Client, resources

from sensorium.envs import find_env
from sensorium.policies.chat_agent import AgentConfig
from sensorium.servers.agent_rows import row_agent
from sensorium.servers.config import AgentServerConfig, CustomModelConfig, EnvironmentServerConfig


@pytest.fixture(params=["one process", "sockets"])
def running(request):
    """Servers that know each other, and servers that could be anywhere: nothing may come out otherwise."""
    return functools.partial(live_servers.running, over_sockets=request.param == "sockets")


def model(factory="scripted_models:lookup_expert", name="model", **settings):
    from sensorium.servers.model import build_model_app

    return name, lambda runtime: build_model_app(
        CustomModelConfig(factory=factory, settings=settings), name, runtime
    )


def agent(name="agent", env="env", **settings):
    from sensorium.servers.agent import build_agent_app

    values = {"resources_server": {"name": env}, "model_server": {"name": "model"}, **settings}
    return name, lambda runtime: build_agent_app(AgentServerConfig.model_validate(values), name, runtime)


def environment(name="episodes", **settings):
    from sensorium.servers.environment import build_environment_app

    values = {"agent_server": {"name": "agent"}, **settings}
    return name, lambda runtime: build_environment_app(
        EnvironmentServerConfig.model_validate(values), name, runtime
    )


CONVERSATION = {"context_management": {"drop_full_history": False}}


def row(number=0, **more):
    definition = find_env("lookup")
    task = definition.task(definition.config_type(), f"train-0-{number}")
    system = {"role": "system", "content": definition.system}
    asked = {"role": "user", "content": task.instruction}
    tools = [
        {"type": "function", **tool["function"]} for tool in definition.make(definition.config_type()).tools
    ]
    return {
        "responses_create_params": {"input": [system, asked], "tools": tools},
        "sensorium": {"env": "lookup", "task": task.id, "seed": 3},
        "kept": {"as": "it is"},
    } | more


@pytest.mark.parametrize("protocol", ["auto", "sensorium", "tools", "gymnasium"])
def test_rows_are_run_by_every_protocol(running, protocol):
    with running(resources("lookup", **CONVERSATION), model(), agent(protocol=protocol)) as urls:
        client = Client(urls["agent"])
        for number in range(3):
            status, body, _ = client.send("/run", row(number, _ng_rollout_id="r-1"))
            assert status == 200
            assert (body["reward"], body["mask_sample"], body["failure_kind"]) == (1.0, False, None)
            assert body["kept"] == {"as": "it is"}
            output = body["response"]["output"]
            assert [item["type"] for item in output][:4] == ["function_call", "function_call_output"] * 2
            assert output[-1]["type"] == "message" or output[-2]["name"] == "submit"
            assert body["response"]["usage"]["total_tokens"] > 0
            assert body["sensorium"]["num_steps"] >= 4
            assert "_ng_rollout_id" not in body
            if protocol != "gymnasium":
                assert body["success"] == 1.0


def test_pictures_of_the_environment_are_in_the_row(running):
    environment_name = "picture_env:Pictures"
    with running(
        resources(environment_name, **CONVERSATION),
        model("scripted_models:looks", name="model"),
        agent(),
    ) as urls:
        _, body, _ = Client(urls["agent"]).send(
            "/run", {"responses_create_params": {"input": []}, "sensorium": {"task": "train-1"}}
        )
        output = next(i for i in body["response"]["output"] if i["type"] == "function_call_output")
        assert [part["type"] for part in output["output"]] == ["input_text", "input_image"]
        assert body["reward"] == 0.0
        assert body["mask_sample"] is False


def test_an_unknown_task_is_a_failure_without_reward(running):
    with running(resources("lookup"), model(), agent()) as urls:
        status, body, _ = Client(urls["agent"]).send(
            "/run", row(sensorium={"env": "lookup", "task": "none-such"})
        )
        assert status == 200
        assert "reward" not in body
        assert (body["mask_sample"], body["_ng_failure_terminal"]) == (True, True)
        assert body["failure_kind"] == "sensorium:task_invalid"
        assert body["_ng_failure_stage"] == "seed"
        status, body, _ = Client(urls["agent"]).send("/run", row(sensorium={"env": "chess", "task": "x"}))
        assert body["_ng_failure_class"] == "sensorium:task_invalid"


def test_a_model_that_fails_or_an_environment_that_is_not_there_is_told(running):
    with running(
        resources("lookup"), model("scripted_models:fails"), agent(), agent("lost", tool_timeout_s=5)
    ) as urls:
        _, body, _ = Client(urls["agent"]).send("/run", row())
        assert "reward" not in body
        assert body["failure_kind"] == "sensorium:context_overflow"
    with running(model(), agent(resources_server={"url": "http://127.0.0.1:9"}, tool_timeout_s=2)) as urls:
        _, body, _ = Client(urls["agent"]).send("/run", row())
        assert body["failure_kind"] == "transport_unreachable"
        assert body["_ng_failure_terminal"] is False


def test_the_step_limit_of_the_agent_truncates(running):
    with running(resources("lookup", **CONVERSATION), model(), agent(max_steps=2)) as urls:
        _, body, _ = Client(urls["agent"]).send("/run", row())
        assert (body["reward"], body["sensorium"]["status"], body["sensorium"]["num_steps"]) == (
            0.0,
            "truncated",
            2,
        )


def test_an_episode_that_takes_too_long_fails_with_a_kind(running):
    slow = model("scripted_models:says", wait_s=5.0)
    with running(resources("lookup"), slow, agent(episode_timeout_s=0.3)) as urls:
        _, body, _ = Client(urls["agent"]).send("/run", row())
        assert "reward" not in body
        assert body["failure_kind"] == "agent_timeout"


def test_stopping_records_the_episodes_that_run(running):
    answers = []
    slow = model("scripted_models:says", wait_s=30.0)
    with running(resources("lookup"), slow, agent(), environment(), grace_s=0.3) as urls:
        asking = threading.Thread(target=lambda: answers.append(Client(urls["episodes"]).send("/run", row())))
        asking.start()
        time.sleep(1.0)
    asking.join(10)
    status, body, _ = answers[0]
    assert status == 200
    assert "reward" not in body
    assert body["_ng_failure_class"] == "shutdown"


def test_the_loop_alone_uses_the_session_of_the_caller(running):
    with running(resources("lookup"), model(), agent()) as urls:
        tools = Client(urls["env"])
        tools.send("/seed_session", row())
        loop = Client(urls["agent"])
        loop.cookies = dict(tools.cookies)
        status, body, _ = loop.send("/v1/responses", row()["responses_create_params"])
        assert status == 200
        assert [item["type"] for item in body["output"]].count("function_call_output") == 4
        assert next(iter(tools.cookies)) in loop.cookies
        tools.cookies = {k: v for k, v in loop.cookies.items() if k in tools.cookies}
        assert tools.send("/verify", row() | {"response": body})[1]["reward"] == 1.0


def test_sessions_of_the_agent_hold_tools_and_cookies(running):
    with running(resources("lookup"), model(), agent()) as urls:
        tools, loop = Client(urls["env"]), Client(urls["agent"])
        tools.send("/seed_session", row())
        episode = {"rollout_id": "r7", "attempt": 1}
        access = {"kind": "direct_http", "name": "t", "required": True, "base_url": urls["env"] + "/"}
        seed = {
            "agent_session_id": "session-1",
            "episode_id": episode,
            "task_id": {"taskset": "a", "task_id": "b"},
            "tool_accesses": [access | {"cookies": tools.cookies, "headers": {}}],
            "sandbox_access": None,
        }
        for _ in range(2):
            assert loop.send("/v1/agent_sessions", seed)[:2] == (200, {"agent_session_id": "session-1"})
        assert loop.send("/v1/agent_sessions", {**seed, "episode_id": {"rollout_id": "other"}})[0] == 409
        path = "/ng-rollout/r7-a1/v1/responses"
        assert loop.send(path, row()["responses_create_params"])[0] == 200
        close = {"agent_session_id": "session-1", "episode_id": episode}
        _, body, _ = loop.send("/v1/agent_sessions/close", close)
        assert body["resources_cookies"].keys() == tools.cookies.keys()
        assert loop.send("/v1/agent_sessions/close", close)[0] == 200
        assert loop.send(path, row()["responses_create_params"])[0] == 409
        assert loop.send("/v1/agent_sessions", seed)[0] == 409


def test_an_environment_server_answers_result_or_failure(running):
    with running(resources("lookup", **CONVERSATION), model(), agent(), environment()) as urls:
        client = Client(urls["episodes"])
        request = {
            "episode_id": {"rollout_id": "r1", "attempt": 0},
            "task": {
                "task_id": {"taskset": "lookup", "task_id": "train-0-2"},
                "task_input": {"responses_create_params": {"input": []}, "task_data": {"colour": "red"}},
            },
        }
        status, body, _ = client.send("/run", request)
        assert status == 200
        assert (body["episode_id"], body["task_id"]) == (request["episode_id"], request["task"]["task_id"])
        assert body["failure"] is None
        assert (body["result"]["reward"], body["result"]["colour"]) == (1.0, "red")
        assert not any(key.startswith("_ng_") for key in body["result"])
        request["task"]["task_id"]["task_id"] = "none-such"
        _, body, _ = client.send("/run", request)
        assert body["result"] is None
        assert body["failure"] | {"failure_reason": ""} == {
            "failure_reason": "",
            "terminal": True,
            "failure_kind": "sensorium:task_invalid",
            "stage": "seed",
        }
        assert client.send("/run", {**request, "more": 1})[0] == 422
        status, body, _ = client.send("/run", row(5))
        assert (status, body["reward"]) == (200, 1.0)


def test_places_are_limited_and_waiting_has_an_end(running):
    slow = model("scripted_models:says", wait_s=2.0)
    limits = {"max_concurrent_episodes": 1, "queue_timeout_seconds": 0.3}
    with running(resources("lookup"), slow, agent(max_steps=1), environment(**limits)) as urls:
        answers = []

        def ask():
            answers.append(Client(urls["episodes"]).send("/run", row())[1])

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        failed = [answer for answer in answers if "_ng_failure_class" in answer]
        assert len(failed) == 1
        assert (failed[0]["_ng_failure_class"], failed[0]["_ng_failure_stage"]) == (
            "agent_request_failed",
            "admission",
        )


def test_how_the_model_is_asked_comes_from_the_row():
    base = AgentConfig(temperature=0.5, extra={"top_k": 3})
    params = {
        "temperature": 0.0,
        "max_output_tokens": 7,
        "tool_choice": {"type": "function", "name": "a"},
        "metadata": {"extra_body": json.dumps({"seed": 1, "stop": ["x"]})},
        "parallel_tool_calls": True,
    }
    made = row_agent(base, params).sampling()
    assert made == {
        "temperature": 0.0,
        "max_tokens": 7,
        "top_k": 3,
        "tool_choice": {"type": "function", "name": "a"},
        "stop": ["x"],
    }


def test_what_the_model_server_refuses_is_no_fault_of_a_server(running):
    with running(resources("lookup"), model(), agent()) as urls:
        status, body, _ = Client(urls["agent"]).send("/v1/responses", {"input": []})
        assert status == 422
        assert "input is empty" in body["error"]["message"]
