import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
import yaml
from launched import Launched, gone
from live_servers import Client

FILE = """
lookup:
  resources_servers:
    lookup: {context_management: {drop_full_history: false}}
policy_model:
  responses_api_models:
    custom_model: {factory: "scripted_models:lookup_expert"}
lookup_agent:
  responses_api_agents:
    chat_agent:
      resources_server: {type: resources_servers, name: lookup}
      model_server: {type: responses_api_models, name: policy_model}
head_server: {port: 0}
"""
ROW = {"responses_create_params": {"input": []}, "sensorium": {"env": "lookup", "task": "train-0-0"}}


@pytest.fixture
def launched(tmp_path):
    made = []

    def launch(*arguments, **more):
        made.append(Launched(tmp_path, *arguments, **{"text": FILE, **more}))
        return made[-1]

    yield launch
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_everything_in_one_process_until_a_signal(launched, number):
    one = launched()
    told = one.ready()
    assert told["ready"] is True
    assert told["servers"].keys() == {
        "lookup",
        "policy_model",
        "lookup_agent",
        "lookup_agent_environment_server",
    }
    status, body, _ = Client(told["servers"]["lookup_agent_environment_server"]).send("/run", ROW)
    assert (status, body["reward"]) == (200, 1.0)
    head = Client(told["head"])
    config = yaml.safe_load(head.send("/global_config_dict_yaml")[1])
    assert config["lookup"]["resources_servers"]["lookup"]["port"] == int(
        told["servers"]["lookup"].rpartition(":")[2]
    )
    assert config["lookup_agent_environment_server"]["environment_servers"]["legacy_agent"]["agent_server"][
        "name"
    ]
    assert {one["process_name"] for one in head.send("/server_instances")[1]} == set(told["servers"])
    assert psutil.Process(one.process.pid).children(recursive=True) == []
    code, out, err = one.end(number)
    assert code == 0, err
    assert "ready after" in out
    assert not one.ready_file.exists()
    assert "Traceback" not in err


def test_a_process_for_each_server_ends_with_the_launcher_even_when_it_is_killed(launched):
    one = launched("--processes")
    told = one.ready()
    children = [child.pid for child in psutil.Process(one.process.pid).children(recursive=True)]
    assert len(children) == 4
    status, body, _ = Client(told["servers"]["lookup_agent"]).send("/run", ROW)
    assert (status, body["reward"]) == (200, 1.0)
    instances = Client(told["head"]).send("/server_instances")[1]
    assert {one["pid"] for one in instances} <= set(children)
    one.process.kill()
    assert gone(children)


def test_processes_stop_in_order(launched):
    one = launched("--processes", "--json")
    one.ready()
    children = [child.pid for child in psutil.Process(one.process.pid).children(recursive=True)]
    code, out, err = one.end()
    assert code == 0, err
    assert json.loads(out.splitlines()[0])["ready"] is True
    assert gone(children)


def test_a_taken_port_is_said_at_once(launched):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        one = launched(f"lookup.resources_servers.lookup.port={port}")
        _, err = one.process.communicate(timeout=60)
    assert one.process.returncode == 2
    assert f"lookup cannot listen on 127.0.0.1:{port}" in err
    assert "Traceback" not in err


def test_an_open_address_without_a_key_is_refused(launched):
    one = launched("--host", "0.0.0.0", env={"SENSORIUM_API_KEY": ""})
    _, err = one.process.communicate(timeout=60)
    assert one.process.returncode == 2
    assert "SENSORIUM_API_KEY" in err
    assert "Traceback" not in err


def test_servers_with_a_key_reach_each_other(launched):
    one = launched(env={"SENSORIUM_API_KEY": "secret-key-1"})
    told = one.ready()
    url = told["servers"]["lookup_agent_environment_server"]
    assert Client(url).send("/run", ROW)[0] == 401
    assert Client(url, Authorization="Bearer secret-key-1").send("/run", ROW)[1]["reward"] == 1.0


def test_wrong_settings_are_said(launched):
    one = launched("lookup.resources_servers.lookup.config.num_itms=3")
    _, err = one.process.communicate(timeout=60)
    assert one.process.returncode == 2
    assert "num_items" in err


def test_a_killed_resources_server_costs_the_episodes_that_were_in_it(launched):
    slow = FILE.replace(
        'custom_model: {factory: "scripted_models:lookup_expert"}',
        'custom_model: {factory: "scripted_models:lookup_expert", settings: {wait_s: 0.15}}',
    )
    one = launched("--processes", text=slow)
    told = one.ready()
    pids = {
        entry["process_name"]: entry["pid"] for entry in Client(told["head"]).send("/server_instances")[1]
    }
    rows = [ROW | {"sensorium": {"env": "lookup", "task": f"train-0-{number}"}} for number in range(24)]

    def run(row):
        return Client(told["servers"]["lookup_agent_environment_server"]).send("/run", row)

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(run, row) for row in rows]
        while sum(one.done() for one in asked) < 6:
            time.sleep(0.01)
        os.kill(pids["lookup"], signal.SIGKILL)
        answers = [one.result() for one in asked]
    assert {status for status, _, _ in answers} == {200}
    bodies = [body for _, body, _ in answers]
    lost = [body for body in bodies if "reward" not in body]
    assert 0 < len(lost) <= 4
    assert {body["_ng_failure_class"] for body in lost} <= {"session_lost", "transport_peer_drop"}
    assert all(body["reward"] == 1.0 for body in bodies if body not in lost)
    assert Client(told["head"]).send("/server_instances")[1][0]["pid"] != pids["lookup"]
    code, _, err = one.end()
    assert code == 0
    assert "its episodes are lost, it is started again" in err
