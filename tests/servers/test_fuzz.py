import json
import random
import string
import subprocess
import sys

import pytest
from live_servers import Client, resources, running

from sensorium.servers.config import AgentServerConfig, CustomModelConfig, EnvironmentServerConfig

CONVERSATION = {"context_management": {"drop_full_history": False}}
OK = {200, 400, 404, 405, 409, 413, 422}


def apps():
    from sensorium.servers.agent import build_agent_app
    from sensorium.servers.environment import build_environment_app
    from sensorium.servers.model import build_model_app

    model = CustomModelConfig(factory="scripted_models:says")
    agent = AgentServerConfig.model_validate(
        {"resources_server": {"name": "lookup"}, "model_server": {"name": "model"}, "max_steps": 3}
    )
    episodes = EnvironmentServerConfig.model_validate({"agent_server": {"name": "agent"}})
    return [
        resources("lookup", "lookup", **CONVERSATION),
        resources("picture_env:Pictures", "pictures"),
        ("model", lambda runtime: build_model_app(model, "model", runtime)),
        ("agent", lambda runtime: build_agent_app(agent, "agent", runtime)),
        ("episodes", lambda runtime: build_environment_app(episodes, "episodes", runtime)),
    ]


class Strange:
    """Values that nobody expects, the same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self):
        pool = string.printable + "\x00ßé漢字🙂\u202e\ufeff'\"\\%{}$;"
        return "".join(self.random.choices(pool, k=self.random.choice([0, 1, 3, 20, 300])))

    def value(self, depth=0):
        kinds = ["text", "number", "huge", "none", "flag"] + (["list", "map"] if depth < 4 else [])
        match self.random.choice(kinds):
            case "text":
                return self.text()
            case "number":
                return self.random.choice([0, -1, 1.5, 1e308, -1e-308, 2**63, self.random.randint(-99, 99)])
            case "huge":
                return 10 ** self.random.choice([20, 300])
            case "none":
                return None
            case "flag":
                return self.random.random() < 0.5
            case "list":
                return [self.value(depth + 1) for _ in range(self.random.randint(0, 4))]
            case _:
                return {self.text(): self.value(depth + 1) for _ in range(self.random.randint(0, 4))}

    def arguments(self):
        names = ["item", "attribute", "expression", "answer", "ref", "page", "closer", "text", self.text()]
        return {name: self.value() for name in self.random.sample(names, self.random.randint(0, 4))}

    def body(self):
        """The body of a step: nearly right, or not at all."""
        calls = [
            {
                "id": self.random.choice(["a", "b", self.text()]),
                "name": self.random.choice(["lookup", "calculate", "fetch_part", "look", self.text()]),
                "arguments": self.random.choice([self.arguments(), self.text(), self.value()]),
            }
            for _ in range(self.random.randint(0, 3))
        ]
        items = [
            {
                "type": "function_call",
                "call_id": self.value(),
                "name": self.value(),
                "arguments": self.value(),
            },
            {"type": "message", "role": "assistant", "content": self.value()},
            self.value(),
        ]
        return self.random.choice(
            [
                {"action": {"text": self.text(), "calls": calls}},
                {"action": self.value()},
                {"response": {"output": self.random.sample(items, 2)}},
                {"response": self.value(), "step_id": self.value()},
                {"action": {"calls": calls}, "reply": self.random.choice(["turn", "gymnasium", self.text()])},
                self.value(),
            ]
        )

    def raw(self):
        text = json.dumps(self.value()).encode()
        cut = self.random.randint(0, len(text))
        return self.random.choice([text[:cut], text + b"}", bytes(self.random.randbytes(cut % 50)), text])


def attack(url, task, count, seed):
    """Send strange things in sessions that begin anew when they end; returns the statuses."""
    strange, client, statuses = Strange(seed), Client(url), set()
    tools = ["lookup", "calculate", "fetch_part", "submit", "look", "crash", "answer", "no_such_tool"]
    for number in range(count):
        if number % 20 == 0:
            client.cookies = {}
            assert client.send("/reset", {"task_id": task})[0] == 200
        match strange.random.randint(0, 3):
            case 0:
                sent = f"/{strange.random.choice(tools)}", strange.arguments(), None
            case 1:
                sent = "/step", strange.body(), None
            case 2:
                sent = (
                    f"/{strange.random.choice([*tools, 'step', 'verify', 'reset', 'verdict'])}",
                    None,
                    strange.raw(),
                )
            case _:
                paths = ["/verify", "/seed_session", "/close_session", "/aggregate_metrics", "/verdict"]
                sent = strange.random.choice(paths), strange.value(), None
        status = client.send(sent[0], sent[1], raw=sent[2], method="POST")[0]
        assert status in OK, (status, sent)
        statuses.add(status)
    return statuses


def bystander(client, number):
    """A session beside it goes on as if nothing was."""
    return client.send("/calculate", {"expression": f"{number} + 1"})[:2] == (200, number + 1)


def under_attack(count):
    with running(*apps()) as urls:
        quiet = Client(urls["lookup"])
        quiet.send("/seed_session", {"task_id": "train-0-0"})
        seen = set()
        rounds = max(1, count // 200)
        for number in range(min(rounds, 25)):
            share = count // min(rounds, 25)
            seen |= attack(urls["lookup"], "train-0-1", share // 2, 2 * number)
            seen |= attack(urls["pictures"], "train-1", share // 2, 2 * number + 1)
            assert bystander(quiet, number)
        assert {200, 422} <= seen


def test_strange_arguments_and_steps_end_nothing():
    under_attack(600)


@pytest.mark.slow
def test_ten_thousand_strange_arguments_and_steps_end_nothing():
    under_attack(10_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lookup", "pictures", "model", "agent", "episodes"])
def test_schemathesis_finds_no_server_error(name):
    with running(*apps()) as urls:
        options = ["--checks", "not_a_server_error", "--max-examples", "40", "--mode", "all", "--seed", "1"]
        options += ["--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all", "--no-color"]
        found = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", f"{urls[name]}/openapi.json", *options],
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]
