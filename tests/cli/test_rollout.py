import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from aiohttp import web
from thread_server import Serving

from sensorium.cli.main import main
from sensorium.rollouts.journal import read_rows

TIMES = ("wall_s", "model_s", "env_s", "created_at")


class Endpoint:
    """A chat model that looks facts up, calculates and answers as the seed says; `delay_s` a reply."""

    def __init__(self, delay_s=0.0):
        self.delay_s, self.asked, self.hangs_after = delay_s, 0, 10**9
        self.server = Serving(("POST", "/v1/chat/completions", self.answer))

    async def answer(self, request):
        body = await request.json()
        self.asked += 1
        await asyncio.sleep(60.0 if self.asked > self.hangs_after else self.delay_s)
        seed = body.get("seed", 0)
        done = "Previous actions" in json.dumps(body["messages"])
        call = ("submit", {"answer": seed % 7}) if done else ("calculate", {"expression": f"{seed % 5} + 2"})
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 10, "completion_tokens": 2}
        return web.json_response({"id": "x", "model": "m", "choices": [choice], "usage": usage})

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *error):
        self.server.__exit__()

    def words(self, output, *more):
        where = ("--env", "lookup", "--model-url", f"{self.server.url}/v1", "--model", "m")
        return ["rollout", *where, "--output", os.fspath(output), "--concurrency", "4", *more]


def without_times(value):
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if name not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def in_order(path):
    rows = [without_times(row) for row in read_rows(path)]
    return sorted(rows, key=lambda row: (row["_ng_task_index"], row["_ng_rollout_index"]))


@pytest.fixture
def start():
    processes = []

    def run(words):
        command = [sys.executable, "-m", "sensorium.cli.main", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, **pipes))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def wait_for_rows(path, count):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.01)
    raise AssertionError(f"no {count} rows in time")


def test_after_kill_9_a_resumed_run_has_exactly_the_rows_of_an_uninterrupted_one(tmp_path, capsys, start):
    size = ("--limit", "12", "--num-repeats", "2", "--seed", "5")
    killed, whole = tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    with Endpoint() as endpoint:
        endpoint.hangs_after = 17
        process = start(endpoint.words(killed, *size))
        wait_for_rows(killed, 5)
        assert main(endpoint.words(killed, *size, "--resume")) == 2
        assert "being written by another process" in capsys.readouterr().err
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with killed.open("ab") as file:  # what a write leaves that was cut by the kill
            file.write(b'{"reward": 1.0, "response": {"out')
        before = [without_times(row) for row in list(read_rows(killed))]
        assert 5 <= len(before) < 24
        endpoint.hangs_after = 10**9
        assert main(endpoint.words(killed, *size, "--num-repeats", "3", "--resume")) == 2
        assert "num_repeats was 2, is 3" in capsys.readouterr().err
        endpoint.asked = 0
        assert main(endpoint.words(killed, *size, "--resume")) == 0
        said = capsys.readouterr()
        assert "the last line was torn; 33 bytes of it were cut off" in said.err
        assert endpoint.asked == 2 * (24 - len(before)), "nothing is done twice"
        assert main(endpoint.words(whole, *size, "--concurrency", "1")) == 0
    assert len(in_order(whole)) == 24
    assert in_order(killed) == in_order(whole)
    rewards = {row["reward"] for row in in_order(whole)}
    assert all(row in in_order(killed) for row in before)
    assert rewards <= {0.0, 1.0}
    mine, theirs = (
        json.loads(path.with_name(f"{path.stem}_aggregate_metrics.json").read_text())
        for path in (killed, whole)
    )
    assert mine == theirs


def test_an_interrupted_run_finishes_what_is_open_and_can_go_on(tmp_path, start):
    output = tmp_path / "out.jsonl"
    with Endpoint(delay_s=0.1) as endpoint:
        process = start(endpoint.words(output, "--limit", "40"))
        wait_for_rows(output, 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finishing open episodes" in said
    assert "not_run" in said
    assert "Traceback" not in said
    rows = list(read_rows(output))
    assert 2 <= len(rows) <= 20
    assert not (tmp_path / "out_failures.jsonl").exists(), "open episodes were finished"


def test_a_second_interrupt_stops_at_once_and_records_open_episodes(tmp_path, start):
    output = tmp_path / "out.jsonl"
    with Endpoint() as endpoint:
        endpoint.hangs_after = 0
        process = start(endpoint.words(output, "--limit", "40"))
        until = time.monotonic() + 60
        while endpoint.asked < 4 and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 130, said
        failures = list(read_rows(tmp_path / "out_failures.jsonl"))
        assert [row["_ng_failure_class"] for row in failures] == ["cancelled"] * 4
        assert all("reward" not in row for row in failures)
        endpoint.hangs_after = 10**9
        assert main(endpoint.words(output, "--limit", "40", "--resume")) == 0
    assert len(in_order(output)) == 40


def test_rows_that_cannot_be_run_are_told_before_anything_runs(tmp_path, capsys):
    tasks, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    tasks.write_text('{"task_id": "train-0-0"}\n{"task_id": "nothing"}\n{broken\n{"task_id": "test-0-1"}\n')
    with Endpoint() as endpoint:
        words = endpoint.words(output, "--input", os.fspath(tasks))
        assert main(words) == 2
        said = capsys.readouterr().err
        assert "line 2: lookup has no task 'nothing'" in said
        assert "line 3: not JSON" in said
        assert "2 of 4 rows cannot be run" in said
        assert endpoint.asked == 0
        assert not output.exists()
        assert main([*words, "--skip-bad", "--json"]) == 0
        out, err = capsys.readouterr()
    assert "line 2" in err
    told = json.loads(out)
    assert (told["num_rollouts"], told["num_done"], told["num_bad_rows"]) == (2, 2, 2)
    assert told["metrics"][0]["key_metrics"]["mean/input_tokens"] == 20.0


def test_an_endpoint_that_is_not_there_ends_the_run_with_exit_status_3(tmp_path, capsys):
    output = tmp_path / "out.jsonl"
    words = [
        "rollout",
        "--env",
        "lookup",
        "--limit",
        "2",
        "--model-url",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
    ]
    assert main([*words, "--output", os.fspath(output), "--max-attempts", "1", "--timeout-s", "1"]) == 3
    assert "2 of 2 rollouts have no result" in capsys.readouterr().err
    assert main(["profile", os.fspath(output), "--json"]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert (profile["num_rollouts"], profile["expected"]) == (0, 2)
    assert sum(one["lost"] for one in profile["failures"]) == 2


def test_flags_that_contradict_each_other_are_refused(tmp_path, capsys):
    output = os.fspath(tmp_path / "out.jsonl")
    for words, said in (
        (["--env", "lookup"], "--model-url URL --model NAME"),
        (["--config", "a.yaml", "--head", "http://x"], "contradict"),
        (["--head", "localhost:11000", "--input", "x"], "is no address"),
        (["--head", "http://127.0.0.1:9", "--input", "x"], "cannot be asked"),
        (["--retry-failed"], "goes with --resume"),
        (["--head", "http://x", "--episode.max_steps", "3"], "go with --env only"),
        (["a.b=3", "--url", "http://127.0.0.1:9", "--input", "x"], "goes with --config only"),
        (["--config", os.fspath(tmp_path / "none.yaml")], "none.yaml"),
    ):
        assert main(["rollout", "--output", output, *words]) == 2
        assert said in capsys.readouterr().err


def test_a_profile_tells_tasks_intervals_and_tokens(tmp_path, capsys):
    output = tmp_path / "out.jsonl"
    with Endpoint() as endpoint:
        assert main(endpoint.words(output, "--limit", "5", "--num-repeats", "2", "--sorted")) == 0
    capsys.readouterr()
    assert main(["profile", os.fspath(output)]) == 0
    said = capsys.readouterr().out
    for part in ("train-0-4", "10 of 10 rollouts", "95 % interval", "pass@2", "tokens", "seconds"):
        assert part in said
    assert main(["profile", os.fspath(output), "--json"]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert [task["num_rollouts"] for task in profile["tasks"]] == [2] * 5
    assert profile["tokens"] == {"input": 20.0, "output": 4.0, "total": 240.0}
    assert 0.0 <= profile["success"]["low"] <= profile["success"]["mean"] <= profile["success"]["high"] <= 1.0
    assert main(["profile", os.fspath(tmp_path / "none.jsonl")]) == 2


def test_an_agent_of_a_file_runs_in_this_process(tmp_path, capsys):
    pytest.importorskip("fastapi")
    output, config = tmp_path / "out.jsonl", tmp_path / "serve.yaml"
    with Endpoint() as endpoint:
        config.write_text(
            f"""
env: {{resources_servers: {{lookup: {{config: {{num_items: 4}}}}}}}}
model: {{responses_api_models: {{openai_model: {{base_url: "{endpoint.server.url}/v1", model: m}}}}}}
agent:
  responses_api_agents:
    chat_agent:
      max_steps: 1
      resources_server: {{type: resources_servers, name: env}}
      model_server: {{type: responses_api_models, name: model}}
"""
        )
        tasks = tmp_path / "in.jsonl"
        tasks.write_text('{"sensorium": {"env": "lookup", "task": "test-0-0"}}\n')
        words = [
            "rollout",
            "--config",
            os.fspath(config),
            "agent.responses_api_agents.chat_agent.max_steps=4",
            "--input",
            os.fspath(tasks),
            "--output",
            os.fspath(output),
        ]
        assert main(words) == 0
        assert main([*words, "--agent", "nobody", "--overwrite"]) == 2
        assert "no agent 'nobody'" in capsys.readouterr().err
    (row,) = read_rows(output)
    assert row["agent_ref"] == {"name": "agent"}
    assert row["sensorium"]["num_steps"] == 2
