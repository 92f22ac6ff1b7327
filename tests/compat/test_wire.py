"""What our servers take and answer fits the types of NeMo Gym."""

import http.client
import json
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import nemo_peer
import pytest
from capture_nemo import ask
from compat_servers import Ours, golden, lookup_rows
from pydantic import BaseModel, ValidationError

from sensorium.servers.wire import (
    AgentSessionRequest,
    AggregateRequest,
    CloseSessionRequest,
    EpisodeRequest,
    SeedSessionRequest,
)

OURS: dict[str, type[BaseModel]] = {
    "ResourcesSeedSessionRequest": SeedSessionRequest,
    "ResourcesCloseSessionRequest": CloseSessionRequest,
    "AgentSeedSessionRequest": AgentSessionRequest,
    "SingleAgentTurnRequest": EpisodeRequest,
    "AggregateMetricsRequest": AggregateRequest,
}
"""Type of NeMo Gym -> ours."""
CASES = [case for case in golden("validity.json") if case["model"] in OURS]
EPISODE = {"rollout_id": "0-0", "attempt": 0}
TASK = {"taskset": "lookup", "task_id": "train-0-0"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['model']}-{case['valid']}")
def test_bodies_are_taken_and_refused_as_by_nemo_gym(case: dict[str, Any]) -> None:
    try:
        OURS[case["model"]].model_validate(case["body"])
        taken = True
    except ValidationError:
        taken = False
    assert taken is case["valid"], case["body"]


class _Client:
    """Speaks to one server and keeps its cookies by hand, as NeMo Gym's agents do."""

    def __init__(self, url: str) -> None:
        self._host, self.cookies = urlsplit(url).netloc, dict[str, str]()

    def call(self, path: str, body: Any = None, *, method: str = "POST") -> tuple[int, Any]:
        headers = {"content-type": "application/json"}
        if self.cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        with closing(http.client.HTTPConnection(self._host, timeout=60)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            text = reply.read().decode()
        for cookie in reply.msg.get_all("set-cookie", []):
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        try:
            return reply.status, json.loads(text)
        except ValueError:
            return reply.status, text


@pytest.mark.slow
@pytest.mark.nemo_gym
def test_replies_of_our_servers_fit_the_types_of_nemo_gym(ours: Ours) -> None:
    row = lookup_rows(1)[0]
    replies: list[tuple[str, Any]] = []

    def called(client: _Client, path: str, body: Any, model: str | None = None) -> Any:
        status, reply = client.call(path, body)
        assert status == 200, (path, reply)
        if model is not None:
            replies.append((model, reply))
        return reply

    legacy = _Client(ours.urls["lookup"])
    called(legacy, "/seed_session", row)
    assert legacy.cookies, "a session has a cookie"
    assert called(legacy, "/submit", {"answer": 3}) == "submitted"
    answer = called(
        _Client(ours.urls["policy_model"]), "/v1/responses", {"input": "hello"}, "NeMoGymResponse"
    )
    chat = {"model": "mock", "messages": [{"role": "user", "content": "hello"}]}
    called(_Client(ours.urls["policy_model"]), "/v1/chat/completions", chat, "NeMoGymChatCompletion")
    verified = called(legacy, "/verify", row | {"response": answer}, "BaseVerifyResponse")
    assert verified["reward"] == 0.0
    called(legacy, "/aggregate_metrics", {"verify_responses": [verified]}, "AggregateMetrics")

    typed = _Client(ours.urls["lookup"])
    seed = {"resources_session_id": "s", "episode_id": EPISODE, "task_id": TASK, "task_data": {}}
    called(typed, "/seed_session", seed, "ResourcesSeedSessionResponse")
    close = {"resources_session_id": "s", "episode_id": EPISODE}
    called(typed, "/close_session", close, "ResourcesCloseSessionResponse")
    assert typed.call("/seed_session", seed)[0] == 409

    run = called(_Client(ours.urls["lookup_agent"]), "/run", row, "BaseVerifyResponse")
    replies.append(("NeMoGymResponse", run["response"]))
    episode = {"episode_id": EPISODE, "task": {"task_id": TASK, "task_input": row}}
    server = _Client(ours.urls["lookup_agent_environment_server"])
    called(server, "/run", episode, "SingleAgentTurnResponse")
    called(server, "/aggregate_metrics", {"verify_responses": [run]}, "AggregateMetrics")

    agent = _Client(ours.urls["lookup_agent"])
    seed = {"agent_session_id": "a", "episode_id": EPISODE, "task_id": TASK}
    called(agent, "/v1/agent_sessions", seed, "AgentSeedSessionResponse")
    called(agent, "/ng-rollout/0-0/v1/responses", {"input": "hello"}, "NeMoGymResponse")
    close = {"agent_session_id": "a", "episode_id": EPISODE}
    called(agent, "/v1/agent_sessions/close", close, "AgentCloseSessionResponse")

    valid = ask("validity", replies)
    assert all(valid), [reply for reply, good in zip(replies, valid, strict=True) if not good]


@pytest.mark.slow
@pytest.mark.nemo_gym
def test_steps_of_our_server_are_steps_of_their_gymnasium_agent(ours: Ours) -> None:
    client = _Client(ours.urls["lookup"])
    row = lookup_rows(1)[0]
    status, opened = client.call("/reset", row)
    assert status == 200
    assert isinstance(opened["observation"], str)
    assert opened["info"]["supports_explicit_close"] is True
    call = {"type": "function_call", "call_id": "c1", "name": "submit", "arguments": '{"answer": 3}'}
    status, stepped = client.call("/step", row | {"response": {"output": [call]}})
    assert status == 200
    assert (stepped["reward"], stepped["terminated"], stepped["truncated"]) == (0.0, True, False)
    assert stepped["info"]["tool_outputs"][0]["call_id"] == "c1"
    assert client.call("/close", {})[0] == 200


@pytest.mark.slow
@pytest.mark.nemo_gym
def test_the_head_server_tells_what_theirs_does(ours: Ours) -> None:
    import yaml

    theirs = {exchange["name"]: exchange["reply"] for exchange in golden("servers.json")}
    head = _Client(ours.head)
    status, text = head.call("/global_config_dict_yaml", method="GET")
    assert status == 200
    config = yaml.safe_load(text)
    for name in ("lookup", "policy_model", "lookup_agent", "lookup_agent_environment_server"):
        ((kind, implementations),) = config[name].items()
        ((_, settings),) = implementations.items()
        assert {"host", "port", "entrypoint"} <= set(settings), kind
    assert set(config["head_server"]) >= {"host", "port"}
    status, instances = head.call("/server_instances", method="GET")
    assert status == 200
    assert set(instances[0]) >= set(theirs["head: instances"][0])
    assert head.call("/readyz", method="GET") == (200, {"status": "ok"})


def test_there_is_an_interpreter_to_ask_or_a_reason() -> None:
    assert nemo_peer.missing() is None or "make bench-peers" in str(nemo_peer.missing())
