"""Write down what the real NeMo Gym does, as the golden files of these tests.

    PYTHONPATH=benchmarks:tests/support .venv/bin/python tests/compat/capture_nemo.py [WHAT ...]

WHAT is servers, rollouts, metrics or validity; everything by default.

Needs `make bench-peers`. Identifiers, ports, paths and times are made equal, so that a second capture gives
the same files.
"""

import http.client
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nemo_peer
from cases import METRICS, VALIDITY
from compat_servers import GOLDEN, typed_server

HERE = Path(__file__).parent
CONFIGS = (
    "resources_servers/example_session_state_mgmt/configs/example_session_state_mgmt.yaml",
    "resources_servers/example_single_tool_call/configs/example_single_tool_call_single_agent_turn.yaml",
    "resources_servers/blackjack/configs/blackjack.yaml",
    "responses_api_models/openai_model/configs/openai_model.yaml",
)
_AGENT = "example_single_tool_call_session_agent"
TYPED = typed_server("weather_typed", "example_single_tool_call", _AGENT) + typed_server(
    "counter_typed", "example_session_state_mgmt_resources_server", _AGENT, transports=""
)
TOOLS: dict[str, Any] = {"increment_counter": {"count": 3}, "get_weather": {"city": "Oslo"}}


def tool(name: str, **properties: str) -> dict[str, Any]:
    """A tool in the form of the Responses API; `properties` are names and types."""
    parameters = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "name": name, "description": "", "strict": True, "parameters": parameters}


COUNTER_ROW: dict[str, Any] = {
    "responses_create_params": {
        "input": [{"role": "user", "content": "add 3"}],
        "tools": [tool("increment_counter", count="integer"), tool("get_counter_value")],
    },
    "expected_count": 6,
    "initial_count": 3,
}
WEATHER_ROW: dict[str, Any] = {
    "responses_create_params": {
        "input": [{"role": "user", "content": "what's it like in Oslo?"}],
        "tools": [tool("get_weather", city="string")],
    }
}
CARDS_ROW: dict[str, Any] = {
    "responses_create_params": {"input": [{"role": "user", "content": "Deal me in."}]}
}
EPISODE = {"rollout_id": "0-0", "attempt": 0}
TASK = {"taskset": "weather", "task_id": "0"}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 0,
    "model": "mock",
    "output": [
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "cold"},
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "<action>stand</action>", "annotations": []}],
        },
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


@dataclass
class Recorder:
    """A client of one server that keeps cookies by hand and notes what was said."""

    url: str
    label: str
    exchanges: list[dict[str, Any]]
    cookies: dict[str, str] = field(default_factory=dict)

    def call(self, name: str, method: str, path: str, body: Any = None) -> Any:
        """Make one request, note it, and return the parsed reply."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=120)
        headers = {"content-type": "application/json"}
        if self.cookies:
            headers["cookie"] = "; ".join(f"{key}={value}" for key, value in self.cookies.items())
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, headers)
        reply = connection.getresponse()
        answer = json.loads(reply.read())
        given: SimpleCookie = SimpleCookie()
        for value in reply.msg.get_all("set-cookie", []):
            given.load(value)
        self.cookies.update({key: morsel.value for key, morsel in given.items()})
        self.exchanges.append(
            {
                "name": f"{self.label}: {name}",
                "method": method,
                "path": path,
                "sends_cookie": "cookie" in headers,
                "request": body,
                "status": reply.status,
                "sets_cookies": sorted(given),
                "reply": answer,
            }
        )
        return answer


def capture_servers(running: nemo_peer.Running) -> None:
    """The bodies of every route."""
    exchanges: list[dict[str, Any]] = []

    def client(server: str, label: str) -> Recorder:
        return Recorder(running.urls[server], label, exchanges)

    _counter(client("example_session_state_mgmt_resources_server", "resources, legacy"))
    _weather(client("example_single_tool_call", "resources, typed"))
    cards = client("blackjack", "resources, gymnasium")
    cards.call("reset", "POST", "/reset", CARDS_ROW)
    cards.call("step", "POST", "/step", CARDS_ROW | {"response": RESPONSE})
    cards.call("no seed_session", "POST", "/seed_session", CARDS_ROW)
    _sessions(client("example_single_tool_call_session_agent", "agent sessions"))
    agent = client("example_session_state_mgmt_simple_agent", "agent, legacy")
    agent.call("run", "POST", "/run", COUNTER_ROW | {"_ng_task_index": 0, "_ng_rollout_index": 0})
    agent.call("v1 responses", "POST", "/v1/responses", {"input": "hello"})
    client("blackjack_gymnasium_agent", "agent, gymnasium").call("run", "POST", "/run", CARDS_ROW)
    _episodes(
        client("weather_typed", "environment server"),
        client("counter_typed", "environment server that fails"),
    )
    relay = client("example_session_state_mgmt_environment_server", "environment server, relay")
    relay.call("run", "POST", "/run", COUNTER_ROW)
    model = client("policy_model", "model")
    model.call("responses", "POST", "/v1/responses", {"input": "hello", "temperature": 0.5})
    chat = {"model": "x", "messages": [{"role": "user", "content": "hello"}]}
    model.call("chat completions", "POST", "/v1/chat/completions", chat)
    model.call("unknown field", "POST", "/v1/responses", {"input": "hello", "seed": 1})
    head = Recorder(f"http://127.0.0.1:{running.head_port}", "head", exchanges)
    for name, path in (("liveness", "/"), ("readiness", "/readyz"), ("instances", "/server_instances")):
        head.call(name, "GET", path)
    head.call("configuration", "GET", "/global_config_dict_yaml")
    write("servers.json", exchanges)


def _counter(server: Recorder) -> None:
    server.call("seed", "POST", "/seed_session", COUNTER_ROW)
    server.call("tool", "POST", "/increment_counter", {"count": 3})
    server.call("tool without arguments", "POST", "/get_counter_value", {})
    server.call("tool with a wrong argument", "POST", "/increment_counter", {"count": "x"})
    server.call("unknown tool", "POST", "/nope", {})
    server.call("verify", "POST", "/verify", COUNTER_ROW | {"response": RESPONSE})
    rows = [
        {"reward": 1.0, "_ng_task_index": 0, "_ng_rollout_index": 0},
        {"reward": 0.0, "_ng_task_index": 1, "_ng_rollout_index": 0, "mask_sample": True},
    ]
    server.call("aggregate metrics", "POST", "/aggregate_metrics", {"verify_responses": rows})
    server.call("aggregate metrics of nothing", "POST", "/aggregate_metrics", {"verify_responses": []})
    server.call("reverify mode", "GET", "/reverify_mode")
    server.call("liveness", "GET", "/")
    typed = {"resources_session_id": "s1", "episode_id": EPISODE, "task_id": TASK, "task_data": {}}
    server.call("typed seed of a legacy server", "POST", "/seed_session", typed)


def _weather(server: Recorder) -> None:
    typed = {"resources_session_id": "s1", "episode_id": EPISODE, "task_id": TASK, "task_data": {}}
    server.call("seed", "POST", "/seed_session", typed)
    server.call("repeated seed", "POST", "/seed_session", typed)
    other = typed | {"episode_id": {"rollout_id": "0-1", "attempt": 0}}
    server.call("seed of another episode", "POST", "/seed_session", other)
    server.call(
        "seed with an unknown field is taken for a legacy one", "POST", "/seed_session", typed | {"more": 1}
    )
    server.call("tool", "POST", "/get_weather", {"city": "Oslo"})
    server.call("verify", "POST", "/verify", WEATHER_ROW | {"response": RESPONSE})
    close = {"resources_session_id": "s1", "episode_id": EPISODE}
    server.call("close", "POST", "/close_session", close)
    server.call("repeated close", "POST", "/close_session", close)
    server.call("late seed", "POST", "/seed_session", typed)
    server.call("legacy seed", "POST", "/seed_session", WEATHER_ROW)


def _sessions(agent: Recorder) -> None:
    seed = {"agent_session_id": "a1", "episode_id": EPISODE, "task_id": TASK}
    agent.call("seed", "POST", "/v1/agent_sessions", seed)
    agent.call("repeated seed", "POST", "/v1/agent_sessions", seed)
    agent.call("responses", "POST", "/ng-rollout/0-0/v1/responses", {"input": "hello"})
    close = {"agent_session_id": "a1", "episode_id": EPISODE}
    agent.call("close", "POST", "/v1/agent_sessions/close", close)
    agent.call("repeated close", "POST", "/v1/agent_sessions/close", close)
    agent.call("late seed", "POST", "/v1/agent_sessions", seed)


def _episodes(works: Recorder, fails: Recorder) -> None:
    request = {
        "episode_id": EPISODE,
        "task": {"task_id": TASK, "task_input": WEATHER_ROW | {"task_data": {}}},
    }
    works.call("run", "POST", "/run", request)
    works.call("run without an identity", "POST", "/run", WEATHER_ROW)
    fails.call("run", "POST", "/run", request)


def capture_rollouts(running: nemo_peer.Running) -> None:
    """The files of `gym eval run`, with a row that fails, resumed twice, and of `gym eval profile`."""
    workspace = running.workspace
    folder = workspace.folder / "rollouts"
    folder.mkdir()
    rows = [COUNTER_ROW, COUNTER_ROW | {"expected_count": 7}, {"responses_create_params": {"input": "x"}}]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = folder / "out.jsonl"
    common = [
        "eval",
        "run",
        "--no-serve",
        "--agent=example_session_state_mgmt_simple_agent",
        f"--input={folder / 'in.jsonl'}",
        f"--output={output}",
        "--concurrency=1",
        "--num-repeats=2",
        "++route_failures_to_sidecar=true",
        "++num_repeats_add_seed=true",
        *workspace.overrides(running.head_port),
    ]
    workspace.gym(*common)
    names = sorted(path.name for path in folder.iterdir() if path.name != "in.jsonl")
    found: dict[str, Any] = {"input": rows, "files": names, "first": _files(folder)}
    found["resumed"] = []
    for _ in range(3):
        lines = output.read_bytes().splitlines(keepends=True)
        output.write_bytes(b"".join(lines[:-1]) + lines[-1][:-20])  # as after kill -9
        said = workspace.gym(*common, "--resume")
        after = [json.loads(line) for line in output.read_text().splitlines()]
        failures = [json.loads(line) for line in (folder / "out_failures.jsonl").read_text().splitlines()]
        found["resumed"].append(
            {
                "said": [line for line in said.stdout.splitlines() if line.startswith(("- ", "Dropped"))],
                "keys": sorted([row["_ng_task_index"], row["_ng_rollout_index"]] for row in after),
                "attempts": [
                    [row["_ng_task_index"], row["_ng_rollout_index"], row.get("_ng_attempt_index")]
                    for row in failures
                ],
            }
        )
    workspace.gym(
        "eval",
        "profile",
        f"--inputs={folder / 'out_materialized_inputs.jsonl'}",
        f"--rollouts={output}",
        "++allow_partial_rollouts=true",
    )
    profile = ("out_reward_profiling.jsonl", "out_agent_metrics.json", "out_repeat_level_metrics.json")
    found["profile"] = {name: _read(folder / name) for name in profile}
    write("rollouts.json", found)


def _files(folder: Path) -> dict[str, Any]:
    wanted = (
        "out.jsonl",
        "out_materialized_inputs.jsonl",
        "out_failures.jsonl",
        "out_aggregate_metrics.json",
    )
    return {name: _read(folder / name) for name in wanted} | {
        "rollout_verdicts.jsonl": _read(folder / "rollout_verdicts.jsonl")[:1]
    }


def _read(path: Path) -> Any:
    if path.suffix == ".json":
        return json.loads(path.read_text())
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(rows, key=lambda row: (row.get("_ng_task_index", 0), row.get("_ng_rollout_index", 0)))


def ask(what: str, questions: Any) -> Any:
    """Ask the interpreter that has NeMo Gym (see `in_nemo`)."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "questions.json", Path(folder) / "answers.json"
        source.write_text(json.dumps(questions))
        command = [str(nemo_peer.peer_python()), str(HERE / "in_nemo.py"), what, str(source), str(target)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder
        )
        if done.returncode != 0:
            raise RuntimeError(f"in_nemo {what} failed:\n{done.stdout[-3000:]}")
        return json.loads(target.read_text())


def capture_metrics() -> None:
    """What its metrics say about fixed rows."""
    answers = ask("metrics", METRICS)
    write("metrics.json", {name: case | {"expected": answers[name]} for name, case in METRICS.items()})


def capture_validity() -> None:
    """Which bodies its models take."""
    verdicts = ask("validity", VALIDITY)
    cases = [
        {"model": model, "body": body, "valid": valid}
        for (model, body), valid in zip(VALIDITY, verdicts, strict=True)
    ]
    write("validity.json", cases)


_EQUAL: tuple[tuple[str, str], ...] = (
    (r"127\.0\.0\.1:\d+", "127.0.0.1:0"),
    (r'"(port|pid|start_time|created_at|created)": [\d.]+', r'"\1": 0'),
    (r"port: \d+", "port: 0"),
    (r'"[^"]*/site-packages/', '"<site-packages>/'),
    (r"/tmp/\w+", "<folder>"),
    (r"(resp|msg|fc|call|chatcmpl)_\d+", r"\1_0"),
    (r'"duration_ms": [\d.]+', '"duration_ms": 0'),
    (r"(resources|agent)-session-[0-9a-f]{32}", r"\1-session-0"),
    (r'"Your hand: [^"]*"', '"Your hand: ..."'),
    (r'"(player|dealer)": "[^"]*"', r'"\1": "..."'),
    (r'"(player_value|dealer_value)": \d+', r'"\1": 20'),
    (r'"result": "(win|draw|loss)"', '"result": "win"'),
)


def write(name: str, content: Any) -> None:
    """Write a golden file with what changes from run to run made equal."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    for pattern, equal in _EQUAL:
        text = re.sub(pattern, equal, text)
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / name).write_text(compact(json.loads(text)) + "\n")
    print(f"written: {GOLDEN / name}")


def compact(value: Any, depth: int = 0, width: int = 108) -> str:
    """JSON with every part on one line that fits, so that the file stays short and differences readable."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + depth <= width or not isinstance(value, (dict, list)) or not value:
        return line
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{pad}{json.dumps(key)}: {compact(part, depth + 1, width)}" for key, part in value.items()]
        return "{\n" + ",\n".join(parts) + "\n" + " " * depth + "}"
    parts = [pad + compact(part, depth + 1, width) for part in value]
    return "[\n" + ",\n".join(parts) + "\n" + " " * depth + "]"


def _with_servers(wanted: Mapping[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, nemo_peer.mock_model(TOOLS) as model:
        workspace = nemo_peer.Workspace(Path(folder))
        (workspace.folder / "typed.yaml").write_text(TYPED)
        configs = [*CONFIGS, str(workspace.folder / "typed.yaml")]
        with nemo_peer.servers(workspace, configs, model.overrides) as running:
            for capture in wanted.values():
                capture(running)


def main() -> None:
    """Capture what is named, or everything."""
    with_servers = {"servers": capture_servers, "rollouts": capture_rollouts}
    without = {"metrics": capture_metrics, "validity": capture_validity}
    names = sys.argv[1:] or [*with_servers, *without]
    for name, capture in without.items():
        if name in names:
            capture()
    wanted = {name: capture for name, capture in with_servers.items() if name in names}
    if wanted:
        _with_servers(wanted)


if __name__ == "__main__":
    main()
