"""What a row says of its episode: how the model is asked, and what stands for a task that is elsewhere."""

import re
from collections.abc import Mapping
from typing import Any

from sensorium.core import EpisodeStatus
from sensorium.envs.base import Task
from sensorium.envs.episode import Failure, Verdict
from sensorium.policies.chat_agent import AgentConfig
from sensorium.rollouts.row_names import PARAMS
from sensorium.rollouts.task_rows import extra_body, instruction_of, row_seed
from sensorium.rollouts.trajectory import Trajectory

_SAMPLING = (
    "temperature",
    "top_p",
    "max_output_tokens",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
)
_PLAIN_CHOICES = ("auto", "required", "none")
_ROLLOUT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")


def row_agent(config: AgentConfig, params: Mapping[str, Any]) -> AgentConfig:
    """How the model is asked for a row: what its request says, laid over the server's settings."""
    given = {name: params[name] for name in _SAMPLING if params.get(name) is not None}
    given |= {k: v for k, v in extra_body({PARAMS: params}).items() if k != "seed"}
    changes: dict[str, Any] = {}
    for theirs, ours in {
        "temperature": "temperature",
        "top_p": "top_p",
        "max_output_tokens": "max_tokens",
    }.items():
        if isinstance(given.get(theirs), int | float):
            changes[ours] = given.pop(theirs)
    if given.get("tool_choice") in _PLAIN_CHOICES:
        changes["tool_choice"] = given.pop("tool_choice")
    given.pop("max_output_tokens", None)
    if given.get("parallel_tool_calls") is True:  # the ordinary case need not be said
        del given["parallel_tool_calls"]
    if given:
        changes["extra"] = {**config.extra, **given}
    return config.updated(changes) if changes else config


def failed_trajectory(row: Mapping[str, Any], failure: Failure) -> Trajectory:
    """The record of an episode that did not begin."""
    verdict = Verdict(status=EpisodeStatus.ERROR, reward=None, failure=failure)
    return Trajectory(task=named_task(row, "remote", "row"), seed=row_seed(row), verdict=verdict)


def named_task(row: Mapping[str, Any], env: str, id: str) -> Task:
    """A task as far as its agent knows it."""
    return Task(id=id, env=env, instruction=instruction_of(row))


def is_rollout_id(text: str) -> bool:
    """Whether a text may stand in a path as the name of a rollout."""
    return _ROLLOUT_ID.match(text) is not None
