"""What OpenEnv's clients send and are sent."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sensorium.core import SensoriumError
from sensorium.envs.base import Action, ToolCall
from sensorium.envs.episode import Opening, Turn
from sensorium.interop.served import Play
from sensorium.llm.messages import AnyBlock, Message
from sensorium.servers.errors import ServerError, error_response, problems_text
from sensorium.servers.guard import read_json
from sensorium.servers.replies import as_text, shown_blocks
from sensorium.servers.sessions import Hosted


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str = ""
    """Its answer carries the same one; made when empty."""
    name: str
    """Of a tool that the reset told."""
    arguments: dict[str, Any] = Field(default_factory=dict)


class ActionBody(BaseModel):
    """What an agent does."""

    model_config = ConfigDict(extra="forbid")

    text: str = ""
    """What the agent says."""
    calls: list[_Call] = Field(default_factory=list)
    """Tools that it calls, in their order."""
    tool_name: str | None = None
    """One call in OpenEnv's form."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Of `tool_name`."""
    type: str | None = None
    """``call_tool`` of OpenEnv's form; not needed."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    def action(self) -> Action:
        """As one of ours; calls without an id get one."""
        calls = list(self.calls)
        if self.tool_name is not None:
            calls.append(_Call(name=self.tool_name, arguments=self.arguments))
        made = [
            ToolCall(id=one.id or f"call_{number}", name=one.name, arguments=one.arguments)
            for number, one in enumerate(calls)
        ]
        return Action(text=self.text, calls=tuple(made))


class ObservationBody(BaseModel):
    """What came of a reset or a step."""

    text: str
    content: list[dict[str, Any]]
    results: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    metadata: dict[str, Any]


class StateBody(BaseModel):
    """Where an episode is."""

    episode_id: str | None
    step_count: int
    task_id: str | None


class ResetBody(BaseModel):
    """What a reset may say; whatever else is sent is not used."""

    seed: int | None = Field(default=None, ge=0)
    episode_id: str | None = Field(default=None, min_length=1, max_length=255)
    task_id: str | None = None
    task_index: int | None = None


def opened(opening: Opening, session: Hosted[Play]) -> dict[str, Any]:
    """The answer to a reset."""
    messages = opening.view.messages
    blocks = shown_blocks(messages, system=True)
    metadata = {"task_id": session.held.task.id}
    seen = _observed(blocks, [], [dict(one["function"]) for one in opening.tools], metadata)
    return {"observation": seen, "reward": None, "done": False, "metadata": metadata}


def stepped(turn: Turn) -> dict[str, Any]:
    """The answer to a step."""
    messages = turn.view.messages if turn.view is not None else ()
    shown = {one.tool_call_id: one.content for one in messages if one.role == "tool"}
    results = []
    for result in turn.results:
        content = shown.get(result.call_id, result.content)
        told = {"call_id": result.call_id, "name": result.name, "failure": result.failure}
        results.append(told | {"text": as_text(content), "content": _parts(content)})
    blocks = shown_blocks(one for one in messages if one.role != "tool")
    metadata: dict[str, Any] = {**turn.metrics, "reward_components": turn.reward_components}
    metadata |= {"truncated": True} if turn.truncated else {}
    return {
        "observation": _observed(blocks, results, [], metadata),
        "reward": turn.reward,
        "done": turn.done,
        "metadata": metadata,
    }


def _observed(
    blocks: tuple[AnyBlock, ...],
    results: list[dict[str, Any]],
    tools: list[dict[str, Any]],
    metadata: dict[str, Any],
) -> dict[str, Any]:
    return {
        "text": as_text(blocks),
        "content": _parts(blocks),
        "results": results,
        "tools": tools,
        "metadata": metadata,
    }


def _parts(blocks: tuple[AnyBlock, ...]) -> list[dict[str, Any]]:
    content = Message(role="user", content=blocks, as_list=True).chat()["content"]
    return content if isinstance(content, list) else []


def state_of(session: Hosted[Play]) -> dict[str, Any]:
    """Where an episode is, as in `StateBody`."""
    play = session.held
    id = session.notes.get("episode_id")
    return {"episode_id": id, "step_count": play.num_steps, "task_id": play.task.id}


def read_message(text: str) -> dict[str, Any]:
    """A message of a WebSocket.

    Raises:
        ServerError: It is none.
    """
    said = read_json(text.encode("utf-8", "surrogatepass"))
    if not isinstance(said, dict) or not isinstance(said.get("type"), str):
        raise ServerError(422, "VALIDATION_ERROR", "A message is an object with a type.")
    if not isinstance(said.get("data") or {}, dict):
        raise ServerError(422, "VALIDATION_ERROR", "The data of a message is an object.")
    return said


def error_data(error: Exception) -> dict[str, Any]:
    """An error as OpenEnv's clients read it; of unexpected ones only a number is told, the rest is logged."""
    if isinstance(error, ValidationError):
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        said = f"Invalid message: {problems_text(problems)}"
        return {"message": said, "code": "VALIDATION_ERROR", "errors": problems}
    known = {
        "invalid_json": "INVALID_JSON",
        "session_limit": "CAPACITY_REACHED",
        "session_lost": "SESSION_ERROR",
        "UNKNOWN_TYPE": "UNKNOWN_TYPE",
        "VALIDATION_ERROR": "VALIDATION_ERROR",
        "task_invalid": "VALIDATION_ERROR",
    }
    if isinstance(error, ServerError):
        return {"message": error.message, "code": known.get(error.kind, "EXECUTION_ERROR")}
    if isinstance(error, SensoriumError):
        return {"message": str(error), "code": "EXECUTION_ERROR"}
    body = json.loads(bytes(error_response(error).body))
    return {"message": body["detail"], "code": "EXECUTION_ERROR"}
