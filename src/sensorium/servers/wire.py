"""Bodies of requests: NeMo Gym's typed ones, which take no other keys, and our own."""

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.requests import Request

from sensorium.envs.base import Action, ToolCall
from sensorium.servers.errors import ServerError, problems_text
from sensorium.servers.guard import read_json

_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
ModelT = TypeVar("ModelT", bound=BaseModel)


class Strict(BaseModel):
    """Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Open(BaseModel):
    """Unknown keys are kept."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)


class EpisodeId(Strict):
    """Which attempt of which rollout."""

    rollout_id: str = Field(pattern=_ID, max_length=200)
    attempt: int = Field(default=0, ge=0)

    @field_validator("rollout_id")
    @classmethod
    def _names_no_attempt(cls, value: str) -> str:
        """`capture_key` would be that of another attempt."""
        if re.search(r"-a[1-9][0-9]*$", value):
            raise ValueError("must not end like the number of an attempt: -a1")
        return value

    @property
    def capture_key(self) -> str:
        """Both in one, as it stands in paths."""
        return self.rollout_id if self.attempt == 0 else f"{self.rollout_id}-a{self.attempt}"


class TaskId(Strict):
    """Which task of which set."""

    taskset: str = Field(min_length=1)
    task_id: str = Field(min_length=1)


class SeedSessionRequest(Strict):
    """NeMo Gym's typed ``/seed_session``."""

    resources_session_id: str = Field(min_length=1, max_length=200)
    episode_id: EpisodeId
    task_id: TaskId
    task_data: dict[str, Any]


class CloseSessionRequest(Strict):
    """NeMo Gym's ``/close_session``."""

    resources_session_id: str = Field(min_length=1, max_length=200)
    episode_id: EpisodeId


class ResetRequest(Open):
    """``/reset``: a row of NeMo Gym, or the name of a task."""

    task_id: Any = None
    """Id of a task of the environment; in rows it may also stand elsewhere."""
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    context: Literal["replace", "append"] | None = None
    """Whether observations are whole prompts or go on a conversation; without it, our clients get what the
    server's observation config says, others a conversation."""
    reply: Literal["gymnasium", "turn"] = "gymnasium"
    """``turn`` answers with the complete opening and turns, for our clients."""
    close_on_disconnect: bool = False
    """End the episode when the client goes away in the middle of a request."""


class StepRequest(Open):
    """``/step``: an action, or a row of NeMo Gym with the model's response."""

    action: Action | None = None
    step_id: int | None = Field(default=None, ge=0)
    """Number of the step, from 0: the last one may be sent again, and is not done again."""
    response: dict[str, Any] | None = None
    reply: Literal["gymnasium", "turn"] = "gymnasium"


class VerdictRequest(Strict):
    """``/verdict``."""

    answer: str = ""
    """What the agent said last."""


class VerifyRequest(Open):
    """``/verify``: a row with the model's response."""

    responses_create_params: dict[str, Any] | None = None
    response: dict[str, Any] | None = None


class AggregateRequest(Open):
    """``/aggregate_metrics``."""

    verify_responses: list[dict[str, Any]]


class EpisodeTask(Strict):
    """A task in NeMo Gym's materialised form."""

    task_id: TaskId
    task_input: dict[str, Any]


class EpisodeRequest(Strict):
    """``/run`` of an environment server."""

    episode_id: EpisodeId
    task: EpisodeTask


class ToolAccess(Open):
    """Where an agent's session finds tools."""

    kind: Literal["direct_http", "mcp"]
    name: str
    required: bool = True
    base_url: str | None = None
    cookies: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    connection: dict[str, Any] | None = None


class AgentSessionRequest(Strict):
    """``/v1/agent_sessions``."""

    agent_session_id: str = Field(min_length=1, max_length=200)
    episode_id: EpisodeId
    task_id: TaskId
    tool_accesses: list[ToolAccess] = Field(default_factory=list)
    sandbox_access: dict[str, Any] | None = None


class AgentCloseRequest(Strict):
    """``/v1/agent_sessions/close``."""

    agent_session_id: str = Field(min_length=1, max_length=200)
    episode_id: EpisodeId


async def read_body(request: Request, model: type[ModelT]) -> ModelT:
    """The body of a request.

    Raises:
        ServerError: It is no JSON (400) or does not fit (422).
    """
    return check(await read_object(request), model)


async def read_object(request: Request) -> dict[str, Any]:
    """The body of a request, which must be a JSON object; nothing counts as an empty one.

    Raises:
        ServerError: It is something else.
    """
    value = read_json(await request.body())
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ServerError(
            422, "invalid_request", f"The body is a JSON {type(value).__name__}; expected an object."
        )
    return value


def check(value: Mapping[str, Any], model: type[ModelT]) -> ModelT:
    """A body as one of the models here.

    Raises:
        ServerError: It does not fit (422); the message names what, not what it found.
    """
    try:
        return model.model_validate(value)
    except RecursionError as error:
        raise ServerError(422, "invalid_request", "The body is nested too deeply.") from error
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise ServerError(422, "invalid_request", problems_text(problems)) from error


def response_action(response: Mapping[str, Any] | None) -> Action:
    """The action in a model's response: what it says, and the calls it makes."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    output = (response or {}).get("output")
    for item in output if isinstance(output, list) else ():
        if not isinstance(item, Mapping):
            continue
        if item.get("type") == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            id = str(item.get("call_id") or f"call_{len(calls)}")
            calls.append(ToolCall.from_chat({"id": id, "function": function}))
        elif item.get("type", "message") == "message" and item.get("role", "assistant") == "assistant":
            texts.append(message_text(item.get("content")))
    return Action(text="\n".join(text for text in texts if text), calls=tuple(calls))


def last_answer(response: Mapping[str, Any] | None) -> str:
    """What a model said at the end of a trajectory, after its last call."""
    output = (response or {}).get("output")
    for item in reversed(output if isinstance(output, list) else []):
        if not isinstance(item, Mapping):
            continue
        kind = item.get("type", "message")
        if kind in ("function_call", "function_call_output"):
            return ""
        if kind == "message" and item.get("role", "assistant") == "assistant":
            return message_text(item.get("content"))
    return ""


def message_text(content: Any) -> str:
    """The text in the content of a message."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def body_schema(schema: type[BaseModel] | Mapping[str, Any], description: str = "") -> dict[str, Any]:
    """What OpenAPI says of a route's body, which the route reads itself."""
    inner = schema.model_json_schema() if isinstance(schema, type) else dict(schema)
    inner = _inlined(inner, inner.pop("$defs", {}))
    content = {"application/json": {"schema": inner}}
    return {"requestBody": {"description": description, "content": content, "required": True}}


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema without references, which would lead outside of where it stands."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return _inlined(definitions[reference.rpartition("/")[2]], definitions)
        return {key: _inlined(value, definitions) for key, value in schema.items()}
    return [_inlined(one, definitions) for one in schema] if isinstance(schema, list) else schema
