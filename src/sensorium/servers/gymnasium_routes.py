"""Episodes by reset and step: text for any client, everything for our own."""

import asyncio
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from sensorium.envs.base import Action, ToolResult
from sensorium.envs.episode import Opening, Turn
from sensorium.rollouts.rows import row_tool
from sensorium.servers.apps import add_get, add_post
from sensorium.servers.errors import ServerError
from sensorium.servers.hosting import EpisodeHost, Session
from sensorium.servers.identity import session_id
from sensorium.servers.replies import as_text, content_parts, has_media, json_response, shown_blocks
from sensorium.servers.wire import (
    ResetRequest,
    StepRequest,
    VerdictRequest,
    read_body,
    response_action,
)

CAPABILITIES = {"supports_explicit_close": True, "supports_step_idempotency": True}
_MAX_TASKS = 1000


def add_gymnasium_routes(app: FastAPI, host: EpisodeHost) -> None:
    """Add ``/reset``, ``/step``, ``/close``, and our own ``/verdict`` and ``/tasks``."""
    routes = _Routes(host)
    add_post(app, "/reset", routes.reset, ResetRequest)
    add_post(app, "/step", routes.step, StepRequest)
    add_post(app, "/close", routes.close, {"type": "object"})
    add_post(app, "/verdict", routes.verdict, VerdictRequest)
    add_get(app, "/tasks", routes.tasks)


class _Routes:
    def __init__(self, host: EpisodeHost) -> None:
        self._host = host

    async def reset(self, request: Request) -> Response:
        """Begin an episode."""
        body = await read_body(request, ResetRequest)
        ours = body.reply == "turn"
        replaces = self._host.replaces if ours else False
        if body.context is not None:
            replaces = body.context == "replace"
        row = body.model_dump(exclude_none=True, exclude={"seed", "context", "reply", "close_on_disconnect"})
        session, opening = await self._host.begin_for(request, row, seed=body.seed, replaces=replaces)
        session.notes["close_on_disconnect"] = body.close_on_disconnect
        if ours:
            return json_response({"session_id": session.id, "opening": opening, "info": CAPABILITIES})
        return json_response(_opened(session, opening))

    async def step(self, request: Request) -> Response:
        """Act."""
        body = await read_body(request, StepRequest)
        session = self._host.session(request)
        asked = (body.model_extra or {}).get("_ng_step_request_id")
        asked = asked if isinstance(asked, str) else None
        if asked is not None and (known := session.reply(asked)) is not None:
            return json_response(known)
        if body.action is None and body.response is None:
            raise ServerError(422, "invalid_request", "Send an action, or a row with the model's response.")
        action = body.action if body.action is not None else response_action(body.response)
        doing = self._act(session, action, body.step_id, asked)
        turn = await self._host.attended(request, session, doing)
        if body.reply == "turn":
            verdict = await self._host.verdict(session) if turn.done else None
            return json_response({"turn": turn, "verdict": verdict})
        answer = _stepped(turn)
        if asked is not None:
            session.remember(asked, answer)
        return json_response(answer)

    async def _act(self, session: Session, action: Action, step_id: int | None, asked: str | None) -> Turn:
        """Act once for each id of a request, however often it comes and even at the same time."""
        if asked is None:
            return await self._host.act(session, action, step_id)
        steps: dict[str, int] = session.notes.setdefault("steps", {})
        number = steps.setdefault(asked, session.held.num_steps)
        while len(steps) > 4:
            steps.pop(next(iter(steps)))
        return await self._host.act(session, action, number)

    async def close(self, request: Request) -> Response:
        """End the episode and its session."""
        id = session_id(request)
        closed = await self._host.table.close(id) if id is not None else False
        return json_response({"closed": closed})

    async def verdict(self, request: Request) -> Response:
        """How the episode ended; it is over afterwards."""
        body = await read_body(request, VerdictRequest)
        return json_response(await self._host.verdict(self._host.session(request), body.answer))

    async def tasks(self, split: str = "train", count: int = 100, seed: int = 0) -> Response:
        """Tasks of the environment, without what is hidden."""
        definition = self._host.definition
        if not 0 <= count <= _MAX_TASKS:
            raise ServerError(422, "invalid_request", f"count is {count}; expected 0 to {_MAX_TASKS}.")
        if split not in definition.splits:
            raise ServerError(
                422, "invalid_request", f"There is no such split. Known: {', '.join(definition.splits)}."
            )
        found = await asyncio.to_thread(
            definition.tasks, self._host.env_config, split=split, count=count, seed=seed
        )
        return json_response(
            {"env": definition.name, "tasks": [task.public().model_dump() for task in found]}
        )


def _opened(session: Session, opening: Opening) -> dict[str, Any]:
    blocks = shown_blocks(opening.view.messages)
    system = [message.text for message in opening.view.messages if message.role == "system"]
    info = {
        **CAPABILITIES,
        "session_id": session.id,
        "system": "\n".join(system),
        "tools": [row_tool(one) for one in opening.tools],
    }
    return {"observation": as_text(blocks), "observation_content": content_parts(blocks), "info": info}


def _stepped(turn: Turn) -> dict[str, Any]:
    messages = turn.view.messages if turn.view is not None else ()
    by_call = {message.tool_call_id: message.content for message in messages if message.role == "tool"}
    outputs = [_output(result, by_call.get(result.call_id, result.content)) for result in turn.results]
    blocks = shown_blocks(message for message in messages if message.role != "tool")
    info = {
        "tool_outputs": outputs,
        "reward_components": turn.reward_components,
        "metrics": turn.metrics,
    }
    return {
        "observation": as_text(blocks) if blocks else None,
        "observation_content": content_parts(blocks) if blocks else [],
        "reward": turn.reward,
        "terminated": turn.terminated,
        "truncated": turn.truncated,
        "info": info,
    }


def _output(result: ToolResult, content: Any) -> dict[str, Any]:
    made = {"call_id": result.call_id, "output": as_text(content), "failure": result.failure}
    return made | ({"output_content": content_parts(content)} if has_media(content) else {})
