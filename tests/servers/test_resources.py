import json

import pytest
from live_servers import Client, resources, running

from sensorium.envs import find_env

ANSWER = "the-hidden-answer-train-1"


@pytest.fixture(scope="module")
def servers():
    hosts = []
    with running(
        resources("lookup", "lookup", hosts), resources("picture_env:Pictures", "pictures", hosts)
    ) as urls:
        yield urls, {host.name: host for host in hosts}


def lookup_task(number=0):
    definition = find_env("lookup")
    return definition.task(definition.config_type(), f"train-0-{number}")


def test_an_episode_by_reset_and_step(servers):
    client, task = Client(servers[0]["lookup"]), lookup_task()
    status, body, _ = client.send("/reset", {"task_id": task.id})
    assert status == 200
    assert task.instruction in body["observation"]
    assert body["info"]["supports_explicit_close"] is body["info"]["supports_step_idempotency"] is True
    assert [tool["name"] for tool in body["info"]["tools"]] == ["lookup", "calculate", "submit", "fetch_part"]
    item, attribute = task.hidden["items"][0], task.hidden["attribute"]
    call = {
        "type": "function_call",
        "call_id": "c1",
        "name": "lookup",
        "arguments": json.dumps({"item": item, "attribute": attribute}),
    }
    status, body, _ = client.send("/step", {"response": {"output": [call]}})
    assert body["info"]["tool_outputs"][0]["call_id"] == "c1"
    assert body["info"]["tool_outputs"][0]["output"] == f"{task.data['facts'][item][attribute]:g}"
    assert (body["reward"], body["terminated"], body["truncated"]) == (0.0, False, False)
    action = {"calls": [{"id": "c", "name": "submit", "arguments": {"answer": task.hidden["answer"]}}]}
    status, body, _ = client.send("/step", {"action": action})
    assert (body["reward"], body["terminated"], body["observation"]) == (1.0, True, None)
    assert client.send("/close", {})[1] == {"closed": True}
    assert client.send("/close", {})[1] == {"closed": False}
    assert client.send("/step", {"action": action})[0] == 409


def test_an_episode_by_tools_and_verify(servers):
    client, task = Client(servers[0]["lookup"]), lookup_task(1)
    row = {
        "responses_create_params": {"input": "x"},
        "sensorium": {"env": "lookup", "task": task.id},
        "mark": 7,
    }
    status, body, headers = client.send("/seed_session", row)
    assert status == 200
    assert [tool["name"] for tool in body["sensorium"]["tools"]][:3] == ["lookup", "calculate", "submit"]
    assert headers["Set-Cookie"].startswith("Lookup___lookup=")
    status, text, headers = client.send("/calculate", {"expression": "(3 + 4) * 2"})
    assert (status, text) == (200, 14)
    assert "Set-Cookie" in headers
    status, text, _ = client.send("/calculate", raw=b"[1, 2]")
    assert status == 200
    assert "no JSON object" in text
    status, parts, _ = client.send("/calculate?parts=1", {"expression": "1"})
    assert parts == [{"type": "input_text", "text": "1"}]
    client.send("/submit", {"answer": task.hidden["answer"]})
    response = {"output": [{"type": "message", "role": "assistant", "content": "done"}], "kept": [1]}
    status, verdict, _ = client.send("/verify", row | {"response": response, "_ng_task_index": 3})
    assert (verdict["reward"], verdict["success"], verdict["mask_sample"]) == (1.0, 1.0, False)
    assert (verdict["mark"], verdict["response"]["kept"]) == (7, [1])
    assert "_ng_task_index" not in verdict
    assert client.send("/verify", row | {"response": response})[1]["reward"] == 1.0
    assert client.send("/reverify_mode")[1] == "unsupported"


def test_a_typed_session_keeps_the_contract(servers):
    client = Client(servers[0]["lookup"])
    episode = {"rollout_id": "r1", "attempt": 0}
    seed = {
        "resources_session_id": "any text; with, odd letters",
        "episode_id": episode,
        "task_id": {"taskset": "lookup", "task_id": "train-0-0"},
        "task_data": {},
    }
    close = {"resources_session_id": seed["resources_session_id"], "episode_id": episode}
    for _ in range(2):
        status, body, headers = client.send("/seed_session", seed)
        assert (status, body["resources_session_id"]) == (200, seed["resources_session_id"])
        assert body.keys() == {"resources_session_id", "resources_tools", "sandbox_access"}
        assert not set(headers["Set-Cookie"].partition(";")[0]) & set('",; ')
    other = {**seed, "episode_id": {"rollout_id": "r2"}}
    assert client.send("/seed_session", other)[0] == 409
    assert client.send("/seed_session", {**seed, "surprise": 1})[0] == 422
    assert client.send("/calculate", {"expression": "1 + 1"})[1] == 2
    status, verdict, _ = client.send("/verify", {"responses_create_params": {}, "response": {"output": []}})
    assert verdict["reward"] == 0.0
    assert not any(key.startswith("_ng_") for key in verdict)
    for _ in range(2):
        assert client.send("/close_session", close)[:2] == (
            200,
            {"resources_session_id": close["resources_session_id"]},
        )
    assert client.send("/seed_session", seed)[0] == 409
    never = {**close, "resources_session_id": "never-seeded"}
    assert client.send("/close_session", never)[0] == 200
    assert client.send("/seed_session", {**seed, "resources_session_id": "never-seeded"})[0] == 409


def test_a_lost_session_is_masked_and_says_why(servers):
    client = Client(servers[0]["lookup"])
    status, body, _ = client.send("/verify", {"responses_create_params": {}, "response": {}})
    assert status == 200
    assert (body["mask_sample"], body["failure_kind"], body["_ng_failure_class"]) == (
        True,
        "session_lost",
        "session_lost",
    )


def test_pictures_come_as_parts_for_every_client(servers):
    client = Client(servers[0]["pictures"])
    _, body, _ = client.send("/reset", {"task_id": "train-1"})
    kinds = [part["type"] for part in body["observation_content"]]
    assert "input_image" in kinds
    assert body["observation_content"][kinds.index("input_image")]["image_url"].startswith("data:image/")
    assert "[picture of 48 x 32 pixels]" in body["observation"]
    _status, parts, headers = client.send("/look", {})
    assert headers["Content-Type"] == "application/json"
    assert parts[0] == {"type": "input_text", "text": "seen 1"}
    assert parts[1]["type"] == "input_image"
    action = {"calls": [{"id": "c", "name": "look", "arguments": {}}]}
    _, body, _ = client.send("/step", {"action": action})
    output = body["info"]["tool_outputs"][0]
    assert output["output"].startswith("seen 2")
    assert output["output_content"][1]["type"] == "input_image"


def test_what_is_hidden_is_in_no_answer(servers):
    client = Client(servers[0]["pictures"])
    seen = []
    for path, body in [
        ("/openapi.json", None),
        ("/sensorium", None),
        ("/tasks?count=3", None),
        ("/reset", {"task_id": "train-1"}),
        ("/reset", {"task_id": "train-1", "reply": "turn"}),
        ("/step", {"action": {"text": "hello"}, "reply": "turn"}),
        ("/step", {"action": {"calls": [{"id": "c", "name": "crash", "arguments": {}}]}}),
        ("/answer", {"text": "a guess"}),
        ("/verify", {"responses_create_params": {}, "response": {"output": []}}),
        ("/verdict", {}),
    ]:
        status, answer, headers = client.send(path, body)
        assert status == 200, (path, answer)
        seen.append(json.dumps(answer) + str(headers))
    assert not any(ANSWER in text for text in seen)
    assert not any("/secret/path" in text or "Traceback" in text for text in seen)


def test_a_tool_that_broke_leaves_no_reward(servers):
    client = Client(servers[0]["pictures"])
    client.send("/seed_session", {"task_id": "train-1"})
    status, text, _ = client.send("/crash", {})
    assert status == 200
    assert "fault of the environment" in text if isinstance(text, str) else "fault" in json.dumps(text)
    client.send("/answer", {"text": ANSWER})
    _, body, _ = client.send("/verify", {"responses_create_params": {}, "response": {"output": []}})
    assert body["mask_sample"] is True
    assert body["failure_kind"] == "sensorium:tool_crashed"


def test_rows_that_bring_their_own_task_are_refused_unless_allowed(servers):
    client = Client(servers[0]["lookup"])
    own = {"id": "mine", "env": "lookup", "instruction": "?", "data": {"facts": {}}, "hidden": {"answer": 1}}
    row = {"responses_create_params": {"input": "x"}, "sensorium": {"env": "lookup", "task": own}}
    status, body, _ = client.send("/reset", row)
    assert (status, body["error"]["kind"]) == (422, "task_invalid")
    assert client.send("/reset", {"task_id": "no-such-task"})[0] == 404
    with running(resources("lookup", accept_rows=True)) as urls:
        assert Client(urls["env"]).send("/reset", row)[0] == 200


def test_a_client_that_resets_again_starts_over(servers):
    client = Client(servers[0]["lookup"])
    client.send("/reset", {"task_id": "train-0-0"})
    first = dict(client.cookies)
    client.send("/reset", {"task_id": "train-0-0"})
    assert client.cookies == first  # nothing was done: the same request again
    client.send("/step", {"action": {"text": "hm"}})
    client.send("/reset", {"task_id": "train-0-0"})
    assert client.cookies != first
    assert client.send("/step", {"action": {"text": "hm"}})[0] == 200


def test_pictures_by_address_belong_to_a_session():
    settings = {"multimodal": {"image": {"encoding": "url"}}, "media_lifetime_s": 60}
    hosts = []
    with running(resources("picture_env:Pictures", hosts=hosts, **settings)) as urls:
        one, other = Client(urls["env"]), Client(urls["env"])
        found = []
        for client in (one, other):
            _, body, _ = client.send("/reset", {"task_id": "train-1"})
            address = next(p["image_url"] for p in body["observation_content"] if p["type"] == "input_image")
            assert address.startswith(urls["env"] + "/media/0-")
            assert address in body["observation"]
            found.append(address.removeprefix(urls["env"]))
        assert found[0] != found[1]
        import urllib.request

        with urllib.request.urlopen(urls["env"] + found[0]) as reply:
            assert reply.headers["Content-Type"].startswith("image/")
            assert len(reply.read()) > 50
        one.send("/close", {})
        assert one.send(found[0])[0] == 404
        assert other.send("/media/../secret")[0] in (404, 405)


def test_metrics_of_rows(servers):
    rows = [{"reward": 1.0, "_ng_task_index": 0, "_ng_rollout_index": 0}]
    status, body, _ = Client(servers[0]["lookup"]).send("/aggregate_metrics", {"verify_responses": rows})
    assert status == 200
    assert body["key_metrics"]["mean/reward"] == 1.0
