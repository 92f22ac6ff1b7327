"""The real verifiers, in an environment of its own, evaluates environments of ours."""

import importlib
import json
import os
import subprocess
import types
from pathlib import Path

import pytest
from chat_server import ChatServer, Reply, completion

from sensorium.core import MissingDependencyError
from sensorium.envs import find_env

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "benchmarks" / "peers" / "verifiers" / "bin" / "python"
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
needs_verifiers = pytest.mark.skipif(
    not PYTHON.exists(), reason="verifiers is not installed here; `make bench-peers` installs it"
)


def in_verifiers(script, *arguments):
    """What verifiers found, and what it asked the model."""
    with ChatServer(script) as server:
        command = [str(PYTHON), str(Path(__file__).with_name("in_verifiers.py")), server.base_url, *arguments]
        path = f"{ROOT / 'src'}:{ROOT / 'tests/support'}"
        given = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "VF_LOG_LEVEL": "ERROR"}
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]), server.asked


def say(text="", *calls):
    tool_calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text or None, "tool_calls": tool_calls or None}
    reason = "tool_calls" if calls else "stop"
    body = completion(text, message=message, finish_reason=reason) | {"created": 0}
    return Reply(body=json.dumps(body).encode())


def played(asked):
    """The model looks both items up, guesses for the second task, and solves the first."""
    definition = find_env("lookup")
    settings = definition.config_type()
    tasks = [definition.task(settings, f"test-0-{number}") for number in range(2)]
    shown = json.dumps(asked.payload["messages"])
    task = next(task for task in tasks if task.instruction in shown)
    hidden, heard = task.hidden, [m for m in asked.payload["messages"] if m["role"] == "tool"]
    if heard:
        return say("", ("submit", {"answer": hidden["answer"] if task is tasks[0] else -1}))
    pair = [("lookup", {"item": item, "attribute": hidden["attribute"]}) for item in hidden["items"]]
    return say("I look.", *pair, ("lookup", {"item": "nothing"}))


@needs_verifiers
def test_verifiers_plays_an_environment_with_tools():
    told, asked = in_verifiers(played, "lookup")
    assert "MultiTurnEnv" in told["class"]
    assert told["tools"] == ["lookup", "calculate", "submit"]
    assert [row["info"]["task_id"] for row in told["rows"]] == ["train-0-0", "train-0-1"]
    assert "answer" not in told["rows"][0]["info"]
    rewards = {json.dumps(one["prompt"])[:400]: one["reward"] for one in told["outputs"]}
    assert sorted(rewards.values()) == [0.0, 1.0]
    good = max(told["outputs"], key=lambda one: one["reward"])
    assert [m["role"] for m in good["prompt"]] == ["system", "user"]
    assert good["prompt"][1]["content"].startswith("## Task\n")
    roles = [m["role"] for m in good["completion"]]
    assert roles == ["assistant", "tool", "tool", "tool", "assistant", "tool"]
    assert [m["tool_call_id"] for m in good["completion"] if m["role"] == "tool"] == ["c0", "c1", "c2", "c0"]
    assert good["completion"][-1]["content"] == "submitted"
    assert "Field required" in good["completion"][3]["content"]
    assert (good["error"], good["stop_condition"]) == (None, "has_final_env_response")
    assert good["metrics"]["success"] == 1.0
    assert good["metrics"]["num_steps"] == 2.0
    assert good["verdict"]["status"] == "success"
    assert told["open"] == 0
    offered = [tool["function"]["name"] for tool in asked[0].payload["tools"]]
    assert offered == ["lookup", "calculate", "submit"]


def looks(asked):
    heard = [m for m in asked.payload["messages"] if m["role"] == "tool"]
    return say("", ("answer", {"text": "the-hidden-answer-train-0"})) if heard else say("", ("look", {}))


@needs_verifiers
def test_pictures_are_seen():
    told, asked = in_verifiers(looks, "picture_env:Pictures")
    assert asked[0].pictures
    assert max(len(one.pictures) for one in asked) == 3, "the first, that of the answer, the new state"
    assert sorted(one["reward"] for one in told["outputs"]) == [0.0, 1.0]
    assert all(one["error"] is None for one in told["outputs"])


def crashes(asked):
    heard = [m for m in asked.payload["messages"] if m["role"] == "tool"]
    return say("", ("answer", {"text": "x"})) if heard else say("", ("crash", {}))


@needs_verifiers
def test_a_broken_tool_is_an_error_and_no_score():
    told, _ = in_verifiers(crashes, "picture_env:Pictures")
    for one in told["outputs"]:
        assert "InfraError" in json.dumps(one["error"])
        assert one["verdict"]["reward"] is None
    assert told["open"] == 0


@needs_verifiers
def test_a_plain_answer_is_judged_and_its_group_played():
    told, _ = in_verifiers(lambda asked: say("aeiou"), "letters", "3")
    assert told["tools"] == []
    assert [one["reward"] for one in told["outputs"]] == [1.0] * 6


def test_without_verifiers_it_is_said_how_to_get_it(monkeypatch):
    from sensorium.interop.verifiers import load_environment

    def imported(name):
        if name == "verifiers":
            raise ImportError("No module named 'verifiers'")
        return real(name)

    real = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", imported)
    with pytest.raises(MissingDependencyError, match=r"pip install 'verifiers>=0\.1\.14,<0\.4'"):
        load_environment("lookup")
    newer = types.SimpleNamespace(__version__="0.4.0")
    monkeypatch.setattr(importlib, "import_module", lambda name: newer if name == "verifiers" else real(name))
    with pytest.raises(MissingDependencyError, match=r"0\.4\.0 has no MultiTurnEnv"):
        load_environment("lookup")
