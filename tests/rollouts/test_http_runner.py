import asyncio
import contextlib
import json
import threading

import pytest
import yaml
from aiohttp import web
from thread_server import Serving

from sensorium.core import ConfigError
from sensorium.envs.episode import EpisodeError
from sensorium.rollouts.collect import CollectConfig
from sensorium.rollouts.http_runner import HttpRunner
from sensorium.rollouts.inputs import Inputs
from sensorium.rollouts.journal import read_rows
from sensorium.rollouts.progress import SilentReporter
from sensorium.rollouts.quota import RetryConfig
from sensorium.rollouts.run import RunOptions, run_rollouts
from sensorium.rollouts.task_rows import Repeats

PARAMS = {"responses_create_params": {"input": "hello"}}


class Stack:
    """A head server, an agent and two environment servers, as NeMo Gym lays them out."""

    def __init__(self, run, aggregate=None):
        self.seen, self.headers, self._run = [], [], run
        self.agent = Serving(("POST", "/run", self._answer), ("POST", "/aggregate_metrics", self._aggregate))
        self.head = Serving(
            ("GET", "/global_config_dict_yaml", self._config), ("GET", "/server_instances", self._instances)
        )
        self._view = aggregate
        self.max_steps = 8

    async def _answer(self, request):
        body = await request.json()
        self.seen.append(body)
        self.headers.append(dict(request.headers))
        made = self._run(body, len(self.seen))
        made = await made if asyncio.iscoroutine(made) else made
        return made if isinstance(made, web.StreamResponse) else web.json_response(made)

    async def _aggregate(self, request):
        if self._view is None:
            return web.json_response("ValueError('no')", status=500)
        return web.json_response(self._view(await request.json()))

    def config(self):
        def place(kind, name, **more):
            return {
                kind: {name: {"entrypoint": "app.py", "host": "127.0.0.1", "port": self.agent.port, **more}}
            }

        agent = {"type": "responses_api_agents", "name": "my_agent"}
        return {
            "head_server": {"host": "127.0.0.1", "port": 1},
            "policy_api_key": "sk-secret",
            "my_model": place("responses_api_models", "openai_model", openai_api_key="sk-secret"),
            "my_env": place("resources_servers", "counting"),
            "my_agent": place(
                "responses_api_agents",
                "simple_agent",
                max_steps=self.max_steps,
                resources_server={"type": "resources_servers", "name": "my_env"},
                model_server={"type": "responses_api_models", "name": "my_model"},
            ),
            "my_agent_front": place("environment_servers", "legacy_agent", agent_server=agent),
            "turns": place("environment_servers", "single_agent_turn", agent={"name": "x"}),
        }

    async def _config(self, request):
        return web.json_response(yaml.safe_dump(self.config()))

    async def _instances(self, request):
        return web.json_response([{"process_name": "my_env", "url": self.agent.url}])

    def __enter__(self):
        self.agent.__enter__()
        self.head.__enter__()
        return self

    def __exit__(self, *error):
        self.head.__exit__()
        self.agent.__exit__()


@contextlib.asynccontextmanager
async def opened(runner):
    await runner.open()
    try:
        yield runner
    finally:
        await runner.close()


def ask(stack, row, *, timeout_s=10.0, **settings):
    async def run():
        async with opened(HttpRunner(stack.head.url, **settings)) as runner:
            return await runner.run(row, timeout_s=timeout_s)

    return asyncio.run(run())


def good(body, count):
    return {"reward": 1.0, "response": {"output": [], "usage": {"input_tokens": 5}}, **body}


def test_a_row_goes_to_the_environment_server_in_front_of_its_agent():
    row = {
        **PARAMS,
        "agent_ref": {"name": "my_agent"},
        "expected": [1],
        "_ng_task_index": 0,
        "_ng_rollout_index": 0,
    }
    with Stack(good) as stack:
        made = ask(stack, row, api_key="k-1")
    assert stack.seen == [row]
    assert stack.headers[0]["Authorization"] == "Bearer k-1"
    assert made["_ng_environment_server"] == "my_agent_front"
    assert made["_ng_result_type"] == "legacy_agent"


def test_an_episode_request_is_sent_and_answered_in_its_form():
    row = {
        "task_id": {"taskset": "sums", "task_id": "7"},
        "task_input": {"responses_create_params": {"input": "x"}, "task_data": {}},
        "_ng_task_index": 3,
        "_ng_rollout_index": 1,
        "_ng_attempt_index": 2,
    }

    def answer(body, count):
        identity = {"episode_id": body["episode_id"], "task_id": body["task"]["task_id"]}
        if count == 1:
            return {**identity, "result": {"reward": 0.5, "response": {}}, "failure": None}
        failure = {
            "failure_reason": "gone",
            "terminal": True,
            "failure_kind": "session_lost",
            "stage": "verification",
        }
        return {**identity, "result": None, "failure": failure}

    with Stack(answer) as stack:
        made = ask(stack, row, taskset_routes={"sums": "turns"})
        failed = ask(stack, row, taskset_routes={"sums": "turns"})
        with pytest.raises(ConfigError, match="--route sums=NAME"):
            ask(stack, row)
    assert stack.seen[0] == {
        "episode_id": {"rollout_id": "3-1", "attempt": 2},
        "task": {"task_id": row["task_id"], "task_input": row["task_input"]},
    }
    assert (made["reward"], made["_ng_result_type"]) == (0.5, "single_agent_turn")
    assert (failed["_ng_failure_class"], failed["_ng_failure_stage"]) == ("session_lost", "verification")
    assert failed["_ng_failure_terminal"] is True


def test_an_unknown_agent_is_told_with_the_nearest_names():
    with Stack(good) as stack:

        async def run():
            async with opened(HttpRunner(stack.head.url)) as runner:
                return [
                    runner.problem({"agent_ref": {"name": name}})
                    for name in ("my_agnet", "my_agent", "turns")
                ]

        first, *others = asyncio.run(run())
    assert "Did you mean 'my_agent'" in first
    assert others == [None, None]


def test_the_identity_is_what_runs_the_rows_without_places_and_secrets():
    with Stack(good) as stack:

        async def run():
            async with opened(HttpRunner(stack.head.url)) as runner:
                runner.problem({"agent_ref": {"name": "my_agent"}})
                return runner.identity

        servers = asyncio.run(run())["servers"]
    assert sorted(servers) == ["my_agent", "my_agent_front", "my_env", "my_model"]
    assert servers["my_agent"]["responses_api_agents"]["simple_agent"]["max_steps"] == 8
    assert "sk-secret" not in json.dumps(servers)
    assert "127.0.0.1" not in json.dumps(servers)


@pytest.mark.parametrize(
    ("status", "kind", "terminal"),
    [
        (500, "agent_run_error", False),
        (422, "agent_run_error", True),
        (503, "agent_request_failed", False),
        (404, "agent_run_error", True),
    ],
)
def test_statuses_are_failures_with_what_the_server_said(status, kind, terminal):
    def answer(body, count):
        return web.json_response("ValueError('no such tool')", status=status)

    with Stack(answer) as stack, pytest.raises(EpisodeError) as failed:
        ask(stack, {**PARAMS, "agent_ref": {"name": "my_agent"}})
    assert (failed.value.failure.kind, failed.value.failure.terminal) == (kind, terminal)
    assert "no such tool" in failed.value.failure.reason


def test_a_busy_server_is_asked_again_within_the_limit():
    def answer(body, count):
        return (
            good(body, count)
            if count == 3
            else web.json_response({}, status=429, headers={"Retry-After": "0"})
        )

    with Stack(answer) as stack:
        assert ask(stack, {**PARAMS, "agent_ref": {"name": "my_agent"}})["reward"] == 1.0
        stack._run = lambda body, count: web.json_response({}, status=429, headers={"Retry-After": "60"})
        with pytest.raises(EpisodeError) as failed:
            ask(stack, {**PARAMS, "agent_ref": {"name": "my_agent"}}, timeout_s=1.0)
    assert failed.value.failure.kind == "agent_request_failed"


def test_silence_and_nonsense_are_told_apart():
    row = {**PARAMS, "agent_ref": {"name": "my_agent"}}
    kinds = []
    with Stack(lambda body, count: asyncio.sleep(5, {})) as stack:
        for run, timeout_s in (
            (stack._run, 0.2),
            (lambda body, count: web.Response(text="<html>"), 5.0),
            (lambda body, count: web.json_response([1]), 5.0),
        ):
            stack._run = run
            with pytest.raises(EpisodeError) as failed:
                ask(stack, row, timeout_s=timeout_s)
            kinds.append(failed.value.failure.kind)
    assert kinds == ["transport_timeout", "answer_unreadable", "answer_unreadable"]


def test_a_server_that_is_not_there():
    with Stack(good) as stack:

        async def run():
            async with opened(HttpRunner(stack.head.url)) as runner:
                await asyncio.to_thread(stack.agent.stop)
                with pytest.raises(EpisodeError) as failed:
                    await runner.run({**PARAMS, "agent_ref": {"name": "my_agent"}}, timeout_s=5.0)
                return failed.value.failure

        failure = asyncio.run(run())
    assert (failure.kind, failure.stage) == ("transport_unreachable", "admission")
    with pytest.raises(ConfigError, match="cannot be asked"):
        ask(stack, PARAMS)


def test_what_is_no_head_server_is_told():
    async def answer(request):
        return web.json_response({})

    with Serving(("GET", "/global_config_dict_yaml", answer), ("GET", "/server_instances", answer)) as server:

        async def run():
            async with opened(HttpRunner(server.url)):
                pass

        with pytest.raises(ConfigError, match="expected YAML"):
            asyncio.run(run())


def test_a_whole_run_with_a_server_that_dies_in_the_middle(tmp_path):
    dying = []

    def answer(body, count):
        if count > 60:
            if not dying:
                dying.append(threading.Thread(target=stack.agent.stop))
                dying[0].start()
            return asyncio.sleep(5, {})
        return good(body, count)

    rows = [{**PARAMS, "n": n, "agent_ref": {"name": "my_agent"}} for n in range(200)]
    inputs = Inputs(tmp_path / "in.jsonl", [(json.dumps(row), row) for row in rows], [])

    async def run():
        async with opened(HttpRunner(stack.head.url)) as runner:
            config = CollectConfig(concurrency=4, retries=RetryConfig(first_delay_s=0.01), timeout_s=5.0)
            out = tmp_path / "out.jsonl"
            return await run_rollouts(
                runner, inputs, Repeats(), out, RunOptions(collect=config), SilentReporter()
            )

    with Stack(answer) as stack:
        outcome, _ = asyncio.run(run())
        dying[0].join(10)
    assert outcome.exit_code == 3
    assert outcome.num_done == 60
    assert len(list(read_rows(tmp_path / "out.jsonl"))) == 60
    assert "transport" in outcome.stopped
    assert {one.kind for one in outcome.lost} <= {"transport_unreachable", "transport_peer_drop", "not_run"}


def test_the_server_is_asked_for_its_own_metrics(tmp_path):
    def view(body):
        rows = body["verify_responses"]
        assert "responses_create_params" not in rows[0]
        assert rows[0]["response"] == {"usage": {"input_tokens": 5}}
        return {
            "agent_metrics": {"mean/reward": 1.0, "own": 7},
            "key_metrics": {"own": 7},
            "group_level_metrics": [],
        }

    rows = [{**PARAMS, "agent_ref": {"name": "my_agent"}}]
    inputs = Inputs(tmp_path / "in.jsonl", [(json.dumps(row), row) for row in rows], [])

    async def run(name):
        async with opened(HttpRunner(stack.head.url)) as runner:
            runner.problem(rows[0])
            out = tmp_path / name
            return await run_rollouts(runner, inputs, Repeats(2), out, RunOptions(), SilentReporter())

    with Stack(good, view) as stack:
        _, (entry,) = asyncio.run(run("a.jsonl"))
        stack._view = None
        _, (own,) = asyncio.run(run("b.jsonl"))
    assert entry["agent_metrics"]["own"] == 7
    assert entry["_ng_environment_server"] == "my_agent_front"
    assert entry["agent_ref"] == {"name": "my_agent"}
    assert own["agent_metrics"]["mean/reward"] == 1.0
