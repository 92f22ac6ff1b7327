"""Servers of ours and of NeMo Gym for the tests in `tests/compat`."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "compat" / "golden"

LOOKUP = """
lookup:
  resources_servers:
    lookup: {domain: agent}
policy_model:
  responses_api_models:
    openai_model: {openai_base_url: "${policy_base_url}", openai_api_key: k, openai_model: mock}
lookup_agent:
  responses_api_agents:
    simple_agent:
      resources_server: {type: resources_servers, name: lookup}
      model_server: {type: responses_api_models, name: policy_model}
      max_steps: 8
"""
"""Our look-up environment; the mock model submits 3 at once."""
TOOL_ARGUMENTS: dict[str, Any] = {
    "increment_counter": {"count": 3},
    "get_weather": {"city": "Oslo"},
    "submit": {"answer": 3},
}
"""Tools that the mock model calls where it is offered one, with what."""


def typed_server(name: str, resources: str, agent: str, *, transports: str = "direct_http") -> str:
    """YAML of an environment server of NeMo Gym's that runs typed episodes."""
    offered = f"resources_tool_transports: [{transports}]\n      " if transports else ""
    return f"""
{name}:
  environment_servers:
    single_agent_turn:
      entrypoint: app.py
      resources_server: {{type: resources_servers, name: {resources}}}
      agent_server: {{type: responses_api_agents, name: {agent}}}
      {offered}cleanup_timeout_seconds: 30
"""


def golden(name: str) -> Any:
    """A golden file; `capture_nemo` writes them."""
    return json.loads((GOLDEN / name).read_text())


@dataclass(frozen=True)
class Ours:
    """Servers of ours that are up."""

    head: str
    urls: dict[str, str]

    @property
    def head_port(self) -> int:
        """For NeMo Gym's flags."""
        return int(self.head.rpartition(":")[2])


@contextmanager
def serving(folder: Path, config: str, overrides: Sequence[str] = ()) -> Iterator[Ours]:
    """``sensorium serve`` a YAML text in a process of its own."""
    path, ready = folder / "serve.yaml", folder / "ready.json"
    path.write_text(config)
    command = [sys.executable, "-m", "sensorium.cli.main", "serve", str(path), *overrides]
    log = folder / "serve.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, "--port", "0", "--ready-file", str(ready)], stdout=said, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + 60.0
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"sensorium serve did not start:\n{log.read_text()[-4000:]}")
                time.sleep(0.05)
            told = json.loads(ready.read_text())
            yield Ours(told["head"], told["servers"])
        finally:
            process.terminate()
            try:
                process.wait(timeout=30.0)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def lookup_rows(count: int, agent: str | None = None) -> list[dict[str, Any]]:
    """Tasks as ``sensorium envs tasks lookup`` writes them."""
    from sensorium.envs import find_env
    from sensorium.rollouts.task_rows import task_row

    definition = find_env("lookup")
    config = definition.config_type()
    tools = definition.make(config).tools
    return [task_row(task, agent=agent, tools=tools) for task in definition.tasks(config, count=count)]


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
