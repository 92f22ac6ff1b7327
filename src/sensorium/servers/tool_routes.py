"""NeMo Gym's protocol of tools: seed a session, call tools by their names, have the whole verified."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from sensorium.core import ConfigError, EpisodeStatus
from sensorium.envs.base import Action, ToolCall
from sensorium.envs.episode import EpisodeError, Failure, Verdict
from sensorium.rollouts.failures import failure_fields
from sensorium.rollouts.rows import row_tool
from sensorium.servers.apps import add_get, add_post
from sensorium.servers.errors import ServerError
from sensorium.servers.guard import read_json
from sensorium.servers.hosting import EpisodeHost, Session
from sensorium.servers.identity import set_session
from sensorium.servers.mcp_access import tool_metadata
from sensorium.servers.metrics import aggregate
from sensorium.servers.replies import (
    PARTS_TYPE,
    as_text,
    content_parts,
    has_media,
    json_response,
    turn_blocks,
)
from sensorium.servers.wire import (
    AggregateRequest,
    CloseSessionRequest,
    SeedSessionRequest,
    VerifyRequest,
    check,
    last_answer,
    read_body,
    read_object,
)

RESERVED = frozenset(
    {
        "seed_session",
        "verify",
        "aggregate_metrics",
        "close_session",
        "reverify_mode",
        "reset",
        "step",
        "close",
    }
    | {"verdict", "tasks", "mcp", "media", "openapi.json", "health", "healthz", "livez", "readyz"}
)
"""Names that no tool may have: a model would call the server's own routes."""
_ROW = {
    "type": "object",
    "description": "a row of tasks, or NeMo Gym's typed request",
    "additionalProperties": True,
}


def add_tool_routes(app: FastAPI, host: EpisodeHost) -> None:
    """Add the routes of the protocol.

    Raises:
        ConfigError: A tool has the name of one of the server's own routes.
    """
    names = [one["function"]["name"] for one in host.tools]
    if taken := sorted(RESERVED.intersection(names)):
        raise ConfigError(
            f"{host.definition.name} has a tool called {taken[0]}, which is a route of the server."
        )
    routes = _Routes(host)
    add_post(app, "/seed_session", routes.seed, _ROW)
    add_post(app, "/verify", routes.verify, VerifyRequest)
    add_post(app, "/close_session", routes.close, CloseSessionRequest)
    add_post(app, "/aggregate_metrics", routes.aggregate, AggregateRequest)
    add_get(app, "/reverify_mode", routes.reverify_mode)
    for tool in host.tools:
        function = tool["function"]
        schema = function.get("parameters") or {"type": "object"}
        add_post(
            app, f"/{function['name']}", routes.tool, schema, summary=function.get("description", "")[:100]
        )
    # Tools that are known only within an episode; also says what is wrong with names that no tool has.
    add_post(app, "/{tool_name}", routes.tool)


class _Routes:
    def __init__(self, host: EpisodeHost) -> None:
        self._host = host

    async def seed(self, request: Request) -> Response:
        """Begin an episode: by NeMo Gym's typed request, or by a row."""
        body = await read_object(request)
        if "resources_session_id" not in body:
            session, opening = await self._host.begin_for(request, body, seed=None, replaces=False)
            ours = {"session_id": session.id, "tools": [row_tool(one) for one in opening.tools]}
            return json_response({"sensorium": ours})
        typed = check(body, SeedSessionRequest)
        id = typed.resources_session_id
        row = {"task_id": typed.task_id.task_id, **typed.task_data}
        session, _ = await self._host.begin_for(request, row, seed=None, replaces=False, id=id)
        self._check_owner(session, typed.episode_id.capture_key)
        tools = tool_metadata(self._host, id)
        return json_response({"resources_session_id": id, "resources_tools": tools, "sandbox_access": None})

    async def tool(self, request: Request) -> Response:
        """Call a tool; its answer is what the model reads."""
        session = self._host.session(request)
        name = request.path_params.get("tool_name") or request.url.path.rpartition("/")[2]
        body = await request.body()
        try:
            arguments = read_json(body)
        except ServerError:
            arguments = body.decode("utf-8", "replace")
        call = {"function": {"name": name, "arguments": arguments}, "id": "call"}
        made = ToolCall.from_chat(call)
        if not isinstance(arguments, dict | str | None):
            made = made.model_copy(update={"arguments": str(arguments)})
        turn = await self._host.attended(request, session, self._host.act(session, Action(calls=(made,))))
        blocks = turn_blocks(turn)
        headers = {"X-Sensorium-Reward": repr(turn.reward), "X-Sensorium-Done": str(int(turn.done))}
        asked = PARTS_TYPE in request.headers.get("accept", "") or request.query_params.get("parts") == "1"
        if asked or has_media(blocks):
            return json_response(content_parts(blocks), headers=headers)
        return Response(as_text(blocks).encode("utf-8", "replace"), 200, headers, "text/plain; charset=utf-8")

    async def verify(self, request: Request) -> Response:
        """Judge what was done."""
        body = await read_body(request, VerifyRequest)
        row = {key: value for key, value in body.model_dump().items() if not key.startswith("_ng_")}
        typed = False
        try:
            session = self._host.session(request)
            typed = "owner" in session.notes
            verdict = await self._host.verdict(session, last_answer(body.response))
        except ServerError as error:
            verdict = _failed(Failure(kind=error.kind, reason=error.message, stage="verification"))
        except EpisodeError as error:
            verdict = _failed(error.failure)
        return json_response(row | verdict_fields(verdict, typed=typed))

    async def close(self, request: Request) -> Response:
        """End a session; also one that was never begun, which then cannot be begun late."""
        body = await read_body(request, CloseSessionRequest)
        id = body.resources_session_id
        session = self._host.table.find(id)
        if session is not None:
            self._check_owner(session, body.episode_id.capture_key)
            set_session(request, id)
        await self._host.table.close(id)
        return json_response({"resources_session_id": id})

    async def aggregate(self, request: Request) -> Response:
        """Metrics of rows."""
        body = await read_body(request, AggregateRequest)
        return json_response(await aggregate(body.verify_responses))

    async def reverify_mode(self) -> Response:
        """Whether rows can be judged again without their episode; no: the state of the episode is judged."""
        return json_response("unsupported")

    @staticmethod
    def _check_owner(session: Session, owner: str) -> None:
        """Sessions that clients name belong to the episode that began them.

        Raises:
            ServerError: This is another one.
        """
        if session.notes.setdefault("owner", owner) != owner:
            raise ServerError(409, "session_conflict", "The session is one of another episode.")


def verdict_fields(verdict: Verdict, *, typed: bool = False) -> dict[str, Any]:
    """What a verdict adds to a row in the answer of ``/verify``.

    NeMo Gym's clients insist on a number as reward: that of a failed episode is masked, and counts nowhere.
    """
    ours = {"status": str(verdict.status), "num_steps": verdict.num_steps}
    if verdict.reward is not None and verdict.failure is None:
        numbers = {name: value for name, value in verdict.metrics.items() if not name.startswith("_")}
        components = {"reward_components": dict(verdict.reward_components)}
        masked = {"mask_sample": False, "failure_kind": None, "failure_reason": None}
        return {**numbers, "reward": verdict.reward, **components, **masked, "sensorium": ours}
    fields = failure_fields(verdict.failure)
    if typed:  # there it may have no key of the collector
        fields = {key: value for key, value in fields.items() if not key.startswith("_ng_")}
    return {"reward": 0.0, "mask_sample": True, **fields, "sensorium": ours | {"reward": None}}


def _failed(failure: Failure) -> Verdict:
    return Verdict(status=EpisodeStatus.ERROR, reward=None, failure=failure)
