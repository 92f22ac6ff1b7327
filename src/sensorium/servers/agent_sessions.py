"""The agent's loop alone: ``/v1/responses``, with tools of a session or of the caller's cookies."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request, cookie_parser
from starlette.responses import Response

from sensorium.core import EpisodeStatus
from sensorium.envs.base import Task
from sensorium.envs.episode import EpisodeError, Verdict
from sensorium.rollouts.row_names import PARAMS, RESPONSE
from sensorium.rollouts.rows import rollout_row
from sensorium.rollouts.task_rows import instruction_of
from sensorium.servers.apps import add_post
from sensorium.servers.errors import ServerError, error_response
from sensorium.servers.foreign import ToolEpisode, check_prompt
from sensorium.servers.identity import SessionCookies, cookie_name, session_id, set_session
from sensorium.servers.replies import json_response
from sensorium.servers.sessions import Hosted, SessionTable
from sensorium.servers.wire import (
    AgentCloseRequest,
    AgentSessionRequest,
    ToolAccess,
    read_body,
    read_object,
)

if TYPE_CHECKING:
    from sensorium.servers.agent import AgentHost

_CLASS = "SensoriumAgent"
_REQUEST = {
    "type": "object",
    "description": "a request of the responses API",
    "properties": {"input": {}},
    "required": ["input"],
    "additionalProperties": True,
}


class AgentSession:
    """What one session of an agent knows."""

    def __init__(self, access: ToolAccess | None) -> None:
        self.access = access
        self.cookies: dict[str, str] = dict(access.cookies) if access is not None else {}

    async def close(self) -> None:
        """Nothing is held."""


class AgentSessions:
    """Sessions of one agent server.

    Args:
        host: Runs episodes.
    """

    def __init__(self, host: "AgentHost") -> None:
        self.host = host
        self.table: SessionTable[AgentSession] = SessionTable(host.config.sessions)
        self.cookies = Middleware(
            SessionCookies,
            name=cookie_name(_CLASS, host.name),
            signer=host.runtime.signer,
            worker=host.runtime.worker,
        )

    async def seed(self, request: Request) -> Response:
        """Begin a session with the tools that it may use."""
        body = await read_body(request, AgentSessionRequest)
        direct = [one for one in body.tool_accesses if one.kind == "direct_http"]
        if body.sandbox_access is not None:
            raise ServerError(422, "invalid_request", "This agent uses no sandbox.")
        if [one.name for one in body.tool_accesses if one.kind == "mcp" and one.required] or len(direct) > 1:
            raise ServerError(
                422, "invalid_request", "This agent takes one direct_http access, and no MCP access."
            )
        if direct and direct[0].base_url is None:
            raise ServerError(422, "invalid_request", f"The access {direct[0].name} has no base_url.")
        access = direct[0] if direct else None
        session = await self.table.open(
            body.agent_session_id, body.model_dump_json(), lambda: AgentSession(access)
        )
        session.notes["owner"] = body.episode_id.capture_key
        set_session(request, session.id)
        return json_response({"agent_session_id": session.id})

    async def close(self, request: Request) -> Response:
        """End a session."""
        body = await read_body(request, AgentCloseRequest)
        id = body.agent_session_id
        session = self.table.find(id)
        if session is not None and session.notes.get("owner") != body.episode_id.capture_key:
            raise ServerError(409, "session_conflict", "The session is one of another episode.")
        cookies = session.held.cookies if session is not None else None
        await self.table.close(id)
        answer = {"agent_session_id": id, "agent_observations": None, "resources_cookies": cookies}
        return json_response(answer)

    async def respond(self, request: Request) -> Response:
        """Answer a request: model and tools in turns, until the model calls no more tools."""
        params = await read_object(request)
        if not isinstance(params.get("input"), str | list):
            raise ServerError(422, "invalid_request", "The request has no input.")
        check_prompt(params)
        row = {PARAMS: params}
        id = session_id(request)
        session: Hosted[AgentSession] | None = self.table.get(id) if id is not None else None
        sent = cookie_parser(request.headers.get("cookie", ""))
        episode = self._episode(row, session, {k: v for k, v in sent.items() if not k.startswith(_CLASS)})
        task = Task(id="request", env="remote", instruction=instruction_of(row))
        try:
            trajectory = await self.host.play(episode, task, row, self._prefix(request))
        except (TypeError, ValueError) as error:
            raise ServerError(422, "invalid_request", f"The request does not fit: {error}"[:500]) from error
        if session is not None:
            session.held.cookies = dict(episode.cookies)
        failure = trajectory.verdict.failure
        if failure is not None:
            return error_response(EpisodeError(failure))
        answer = json_response(rollout_row(trajectory, row)[RESPONSE])
        for name, value in episode.cookies.items():
            answer.headers.append("Set-Cookie", f"{name}={value}; Path=/")
        return answer

    def _episode(
        self, row: Mapping[str, Any], session: Hosted[AgentSession] | None, cookies: Mapping[str, str]
    ) -> "_LoopOnly":
        limits: dict[str, Any] = {
            "max_steps": self.host.config.max_steps,
            "timeout_s": self.host.config.tool_timeout_s,
        }
        if session is None:
            url = self.host.resources().url if self.host.config.resources_server is not None else ""
            return _LoopOnly(self.host.http, url, row, cookies=cookies, **limits)
        access = session.held.access
        url = (access.base_url or "") if access is not None else ""
        headers = access.headers if access is not None else {}
        return _LoopOnly(self.host.http, url, row, cookies=session.held.cookies, headers=headers, **limits)

    def _prefix(self, request: Request) -> str:
        rollout = request.scope.get("state", {}).get("rollout_id")
        return f"/ng-rollout/{rollout}" if rollout and self.host.config.record_calls else ""


class _LoopOnly(ToolEpisode):
    """An episode that others seeded and others have verified."""

    seeded = True

    async def verdict(self, answer: str = "") -> Verdict:
        """Nothing is judged here."""
        return Verdict(status=EpisodeStatus.FAILURE, reward=0.0)


def add_session_routes(app: FastAPI, sessions: AgentSessions) -> None:
    """Add the loop and its sessions."""
    add_post(app, "/v1/responses", sessions.respond, _REQUEST)
    add_post(app, "/v1/agent_sessions", sessions.seed, AgentSessionRequest)
    add_post(app, "/v1/agent_sessions/close", sessions.close, AgentCloseRequest)
