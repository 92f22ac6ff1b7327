"""Environments of ours for Aviary's `TaskDatasetClient` and `TaskEnvironmentClient`.

Beyond Aviary's own server: calls of one environment wait for each other, environments that nobody uses are
closed by themselves, there is a limit to their number, the end of an episode frees its environment, and an
error tells no traceback. The present state is marked in `info`, so that Aviary's agents can hide old ones.
"""

import time
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from sensorium.core import ModelError
from sensorium.envs.base import Action
from sensorium.envs.episode import Turn
from sensorium.interop.served import Play, ServedConfig, ServedTasks
from sensorium.llm.messages import AnyBlock, ImageBlock, Message, TextBlock
from sensorium.servers.apps import add_get, add_post, build_app
from sensorium.servers.errors import ServerError
from sensorium.servers.replies import as_text, json_response
from sensorium.servers.runtime import Runtime
from sensorium.servers.security import build_access
from sensorium.servers.sessions import Hosted
from sensorium.servers.wire import read_body

__all__ = ["AviaryServerConfig", "build_aviary_app"]


class AviaryServerConfig(ServedConfig):
    """A server for Aviary's clients."""

    port: int = Field(default=8041, ge=0, le=65535)
    """Aviary's own is 8041."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Start(_Body):
    task_idx: int | None = None
    task_kwargs: dict[str, Any] | None = None


class _Named(_Body):
    env_id: str


class _Step(_Named):
    action: dict[str, Any]


class _Flush(_Body):
    last_used: float = Field(default=3600.0, ge=0.0)


def build_aviary_app(config: AviaryServerConfig, runtime: Runtime | None = None) -> FastAPI:
    """The app; ``app.state.tasks`` is its `ServedTasks`.

    Clients send the key in ``X-API-Key`` (``TaskDatasetClient(url, api_key=...)``).

    Raises:
        ConfigError: The environment does not exist, its settings do not fit, or the address needs a key.
    """
    served = ServedTasks(config, runtime)
    access = build_access(config, config.environment)

    title = f"{served.definition.name} for Aviary: {served.definition.summary}"
    app = build_app(title, config, access, starts=[served.table.start], stops=[served.table.shut])
    app.state.tasks = served
    routes = _Routes(served)
    add_post(app, "/start", routes.start, _Start)
    add_post(app, "/reset", routes.reset, _Named)
    add_post(app, "/step", routes.step, _Step)
    add_post(app, "/close", routes.close, _Named)
    add_post(app, "/close_old_envs", routes.close_old, _Flush)
    add_get(app, "/info", routes.info)
    return app


class _Routes:
    def __init__(self, served: ServedTasks) -> None:
        self._served = served

    async def start(self, request: Request) -> Response:
        """Choose a task; its environment is made at the reset."""
        body = await read_body(request, _Start)
        kwargs = body.task_kwargs or {}
        if (body.task_kwargs is not None and body.task_idx is not None) or kwargs.keys() - {"task_id"}:
            said = "Send task_idx, or task_kwargs with a task_id, or neither."
            raise ServerError(422, "invalid_request", said)
        id = str(kwargs["task_id"]) if "task_id" in kwargs else None
        session = await self._served.open(await self._served.task(body.task_idx, id))
        return json_response({"env_id": session.id})

    async def reset(self, request: Request) -> Response:
        """Begin, or begin again."""
        session = self._session((await read_body(request, _Named)).env_id)
        opening = await self._served.run(session, Play.reset)
        messages = [_message(one) for one in opening.view.messages]
        return json_response([messages, [_tool(one) for one in opening.tools]])

    async def step(self, request: Request) -> Response:
        """Act."""
        body = await read_body(request, _Step)
        session = self._session(body.env_id)
        try:
            action = Action.from_message(Message.from_chat({"role": "assistant"} | body.action))
        except ModelError as error:
            raise ServerError(422, "invalid_request", str(error)) from error
        turn = await self._served.run(session, lambda play: play.act(action))
        return json_response([_messages(turn, action), turn.reward, turn.terminated, turn.truncated])

    async def close(self, request: Request) -> Response:
        """Give an environment back."""
        id = (await read_body(request, _Named)).env_id
        self._session(id)
        await self._served.table.close(id)
        return json_response({"env_id": id})

    async def close_old(self, request: Request) -> Response:
        """Close what was not used for so many seconds."""
        body = await read_body(request, _Flush)
        now, table = time.monotonic(), self._served.table
        old = [one.id for one in table.open_sessions() if not one.busy and now - one.used_s > body.last_used]
        return json_response({"closed_env_ids": [id for id in old if await table.close(id)]})

    async def info(self) -> Response:
        """How many tasks there are, and what is open."""
        running = [one.id for one in self._served.table.open_sessions()]
        return json_response({"dataset_size": len(await self._served.tasks()), "running_env_ids": running})

    def _session(self, id: str) -> Hosted[Play]:
        session = self._served.table.find(id)
        if session is None:
            raise ServerError(404, "session_lost", "There is no such environment; it was closed or expired.")
        return session


def _messages(turn: Turn, action: Action) -> list[dict[str, Any]]:
    """What came of an action, in Aviary's form."""
    if turn.view is None:
        return [_message(one.message(), one.name, one.failure) for one in turn.results]
    known = {one.call_id: one for one in turn.results}
    said = turn.view.messages
    users = [one for one in said if one.role == "user"]
    made = []
    for message in said:
        result = known.get(message.tool_call_id or "")
        if message.role == "tool" and result is not None:
            made.append(_message(message, result.name, result.failure))
        else:
            # The state comes last; notes, which are plain text, are said where no tool answered.
            alone = not action.calls and len(users) == 1 and len(message.content) == 1
            is_state = message is said[-1] and message.role == "user" and not alone
            made.append(_message(message, info={"is_env_state": True} if is_state else None))
    return made


def _message(
    message: Message,
    name: str | None = None,
    failure: str | None = None,
    info: dict[str, Any] | None = None,
) -> dict[str, Any]:
    blocks = tuple(_known(block) for block in message.content)
    content = Message(role="user", content=blocks).chat()["content"]
    made: dict[str, Any] = {
        "role": "system" if message.role == "developer" else message.role,
        "content": content,
        "info": info,
    }
    if message.role == "tool":
        made |= {"name": name or "", "tool_call_id": message.tool_call_id or ""}
        made |= {"info": {"failure": failure}} if failure else {}
    return made


def _known(block: AnyBlock) -> AnyBlock:
    """Aviary knows text and pictures; all else is said in words."""
    known = isinstance(block, TextBlock | ImageBlock)
    return block if known else TextBlock(text=as_text([block]))


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    """Aviary wants a description and the list of what is required."""
    function = dict(tool["function"])
    parameters = {"type": "object", "properties": {}, "required": [], **(function.get("parameters") or {})}
    return {
        "type": "function",
        "function": {**function, "description": function.get("description") or "", "parameters": parameters},
    }
