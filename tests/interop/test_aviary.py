import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from live_servers import Client, running

from sensorium.core import ConfigError, parse_config
from sensorium.envs import find_env
from sensorium.interop.aviary import is_state

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "benchmarks" / "peers" / "aviary" / "bin" / "python"
needs_aviary = pytest.mark.skipif(
    not PYTHON.exists(), reason="Aviary is not installed here; `make bench-peers` installs it"
)


def in_aviary(*arguments, **environment):
    command = [str(PYTHON), str(Path(__file__).with_name("in_aviary.py")), *arguments]
    given = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@needs_aviary
def test_an_environment_of_aviary_is_one_of_ours():
    told = in_aviary("play")
    assert told["tasks"] == ["train-0", "train-1", "train-2"]
    size = told["first"]["state-1"]
    assert told["first"] == {"request": "Make it 3.", "state-1": size, "state-2": "level 0"}
    assert size > 50  # a picture in bytes
    turn = told["tools"][0]
    assert (turn["type"], turn["function"]["name"]) == ("function", "turn")
    assert turn["function"]["parameters"]["properties"]["by"]["type"] == "integer"
    assert [one["function"]["name"] for one in told["tools"]] == ["turn", "smash"]
    assert [one[:2] for one in told["results"]] == [
        ["a", None],
        ["b", "invalid_arguments"],
        ["c", "invalid_arguments"],
        ["d", "refused"],
        ["e", "unknown_tool"],
        ["f", "invalid_arguments"],
    ]
    assert told["results"][0][2] == "turned by 2"
    assert told["results"][1][2] == "turn: by: expected integer, found 'much'"
    assert told["results"][2][2] == "turn: missing: by"
    assert told["picture"] == [16, 12]
    assert told["second"] == {"request": "Make it 3.", "state": "level 2"}
    assert told["notes"] == ["Nearly."]
    assert told["no_call"][0][0].startswith("No tool calls received")
    assert told["last"] == [None, 1.0, True, {"env_return": 1.0}]
    assert told["closed"] == 1
    assert "has 3 tasks" in told["train-7"]
    assert "no split 'test'" in told["test-0"]
    assert "Expected an id like train-17" in told["lamp"]
    assert told["dummy"] == [{"request": "Write a 5 word story via print_story"}, 1.0, True]


@needs_aviary
@pytest.mark.parametrize("key", ["", "a-secret"])
def test_clients_of_aviary_play_environments_of_ours(key, monkeypatch):
    pytest.importorskip("fastapi")
    from sensorium.interop.aviary_server import AviaryServerConfig, build_aviary_app

    monkeypatch.setenv("SENSORIUM_API_KEY", key)
    config = AviaryServerConfig(environment="picture_env:Pictures", num_tasks=3)
    with running(("env", lambda runtime: build_aviary_app(config))) as urls:
        told = in_aviary("client", urls["env"], SENSORIUM_API_KEY=key)
    assert told["length"] == 3
    roles = [one[0] for one in told["opening"]]
    assert roles == ["system", "user"]
    assert told["opening"][1][1:3] == [True, None]
    assert "What do you see?" in told["opening"][1][3]
    assert told["tools"] == ["look", "dawdle", "crash", "answer", "fetch_part"]
    assert told["step"] == [
        ["ToolResponseMessage", True, None],
        ["ToolResponseMessage", False, {"failure": "invalid_arguments"}],
        ["Message", True, {"is_env_state": True}],
    ]
    assert told["images"] == 1
    assert told["outcome"] == [0.0, False, False]
    assert any("No tool was called" in one for one in told["no_call"])
    assert "done" in told["at_once"]
    assert told["again"] == 2
    assert told["end"] == [["tool"], [1.0, True, False]]
    assert told["after"][0] == 409
    assert "Traceback" not in told["after"][1]
    assert told["closed_twice"] == 404
    assert told["broken"] == [500, "tool_crashed"]
    assert (told["info"], told["closed_old"], told["left"]) == ([2, True], True, [])
    assert told["bad"] == [404, False]
    assert told["round"] == [True, 1, ["text", "image"], 1.0, True]
    assert told["no_key"] == (401 if key else 200)


def test_nonsense_neither_breaks_our_server_nor_is_answered_with_a_trace():
    pytest.importorskip("fastapi")
    from sensorium.interop.aviary_server import AviaryServerConfig, build_aviary_app

    rng = random.Random(0)
    values = [None, 0, -1, 1e300, "", "x", [], {}, [[]], {"a": 1}, True, "\ud800", {"role": 5}]
    calls = [{"tool_calls": [value]} for value in values]
    calls += [{"tool_calls": [{"id": 1, "function": value}]} for value in values]
    calls += [{"tool_calls": [{"function": {"name": value, "arguments": value}}]} for value in values]
    calls += [{"content": value, "role": "user"} for value in values]
    config = AviaryServerConfig(environment="picture_env:Pictures", num_tasks=3)
    with running(("env", lambda runtime: build_aviary_app(config))) as urls:
        client = Client(urls["env"])
        id = client.send("/start", {"task_idx": 0})[1]["env_id"]
        assert client.send("/reset", {"env_id": id})[0] == 200
        bodies = [
            {key: value} for value in values for key in ("task_idx", "task_kwargs", "env_id", "last_used")
        ]
        for path in ("/start", "/reset", "/step", "/close", "/close_old_envs"):
            for body in [*values, *rng.sample(bodies, 20)]:
                status, said, _ = client.send(path, body)
                assert status < 500, (path, body, said)
                assert "Traceback" not in str(said)
        id = client.send("/start", {"task_kwargs": {"task_id": "train-2"}})[1]["env_id"]
        client.send("/reset", {"env_id": id})
        for action in [*values, *calls]:
            status, said, _ = client.send("/step", {"env_id": id, "action": action})
            if status >= 500 or "episode is over" in str(said):  # an episode has 30 steps
                assert "over" in str(said), (action, said)
                client.send("/reset", {"env_id": id})
        assert client.send("/close", {"env_id": id})[0] == 200


def test_aviary_is_asked_for_only_when_it_is_used(monkeypatch):
    for name in ("aviary", "aviary.env"):
        monkeypatch.setitem(sys.modules, name, None)  # as where it is not installed
    definition = find_env("sensorium.interop.aviary:Aviary")
    config = parse_config(definition.config_type, {"dataset": "gsm8k"})
    with pytest.raises(ConfigError, match="pip install fhaviary"):
        definition.tasks(config)


def test_an_environment_in_this_process():
    aviary = pytest.importorskip("aviary.core", reason="fhaviary is not installed in this environment")
    message = aviary.Message(content="x", info={"is_env_state": True})
    assert is_state(message)
    assert not is_state(aviary.Message(content="x"))
