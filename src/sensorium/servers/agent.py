"""The agent server: runs whole episodes of rows with a model, on any resources server."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from sensorium.core import ConfigError, ModelError
from sensorium.envs.base import Task
from sensorium.envs.episode import Episode, Failure
from sensorium.policies.chat_agent import ChatAgent
from sensorium.rollouts.episode import run_episode
from sensorium.rollouts.row_names import (
    FAILURE_KIND,
    FAILURE_REASON,
    MASK,
    OURS,
    PARAMS,
    ROLLOUT_ID,
)
from sensorium.rollouts.rows import rollout_row
from sensorium.rollouts.task_rows import row_seed, row_task
from sensorium.rollouts.trajectory import Trajectory
from sensorium.servers.agent_rows import failed_trajectory, is_rollout_id, named_task, row_agent
from sensorium.servers.agent_sessions import AgentSessions, add_session_routes
from sensorium.servers.apps import add_post, build_app
from sensorium.servers.attendance import while_attended
from sensorium.servers.config import AgentServerConfig
from sensorium.servers.errors import ServerError
from sensorium.servers.foreign import GymnasiumEpisode, ToolEpisode, check_prompt
from sensorium.servers.hosting import EpisodeHost
from sensorium.servers.http import HttpClient, TransportError
from sensorium.servers.metrics import aggregate, aggregate_at
from sensorium.servers.model_client import ServedModel
from sensorium.servers.neighbour import NeighbourEpisode
from sensorium.servers.references import Address, ProtocolFinder, resolve
from sensorium.servers.remote import Limits, RemoteEpisode
from sensorium.servers.replies import json_response
from sensorium.servers.runtime import Runtime
from sensorium.servers.security import build_access
from sensorium.servers.wire import AggregateRequest, read_body, read_object

_log = logging.getLogger(__name__)
_WAITS = 8.0
"""Episodes that a request may wait for, in their longest time."""
_ROW = {
    "type": "object",
    "description": "a row of tasks",
    "properties": {PARAMS: {"type": "object", "additionalProperties": True}},
    "additionalProperties": True,
}


class AgentHost:
    """Runs episodes.

    Args:
        config: The server's.
        name: Of the instance.
        runtime: What the servers of a process share.
    """

    def __init__(self, config: AgentServerConfig, name: str, runtime: Runtime) -> None:
        self.config, self.name, self.runtime = config, name, runtime
        self.http = HttpClient(runtime.api_key, apps=runtime.apps)
        self._protocols = ProtocolFinder(self.http)
        seconds = config.tool_timeout_s
        self._limits = Limits(max_steps=config.max_steps, reset_s=seconds, step_s=seconds)
        self._places = asyncio.Semaphore(config.max_concurrent_episodes)
        self._running: set[asyncio.Task[dict[str, Any]]] = set()
        self._stopping = False

    async def run(
        self, row: Mapping[str, Any], *, prefix: str = "", url: str | None = None
    ) -> dict[str, Any]:
        """Run the episode of a row; failures do not raise, they are in the row.

        Args:
            row: An input row.
            prefix: In front of the model's path, where calls are recorded.
            url: Of the resources server, instead of the configured one.
        """
        if self._stopping:
            raise ServerError(503, "shutdown", "The server is stopping.", {"Retry-After": "5"})
        doing = asyncio.ensure_future(self._run(row, prefix, url))
        self._running.add(doing)
        doing.add_done_callback(self._running.discard)
        try:
            await asyncio.wait({doing})
        finally:
            if not doing.done():  # whoever asked is gone
                doing.cancel()
                await asyncio.gather(doing, return_exceptions=True)
        if not doing.cancelled():
            return doing.result()
        failure = Failure(kind="shutdown", reason="The server was stopped before the episode ended.")
        return self.finished(failed_trajectory(row, failure), row, {})

    async def answer(self, row: Mapping[str, Any], recorded_as: Any = None) -> dict[str, Any]:
        """What ``/run`` answers to a row: the row with what came of it.

        Args:
            row: An input row.
            recorded_as: Name of the rollout under which calls are recorded, where the row names none.

        Raises:
            ServerError: It is no row, or the server is stopping.
        """
        if not isinstance(row.get(PARAMS), dict):
            raise ServerError(422, "invalid_request", f"The row has no {PARAMS}.")
        rollout = row.get(ROLLOUT_ID) or recorded_as
        recorded = self.config.record_calls and isinstance(rollout, str) and is_rollout_id(rollout)
        made = await self.run(row, prefix=f"/ng-rollout/{rollout}" if recorded else "")
        return {key: value for key, value in made.items() if key != ROLLOUT_ID}

    async def aggregate(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Metrics of rows as the resources server sees them; our own where it has no view.

        Raises:
            ServerError: The rows are none of rollouts.
        """
        if self.config.resources_server is None:
            return await aggregate(rows)
        return await aggregate_at(resolve(self.config.resources_server, self.runtime), self.http, rows)

    async def drain(self, grace_s: float) -> None:
        """Take no more episodes, let those that run end, and record those that do not."""
        self._stopping = True
        if self._running:
            await asyncio.wait(set(self._running), timeout=grace_s)
        left = set(self._running)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _run(self, row: Mapping[str, Any], prefix: str, url: str | None) -> dict[str, Any]:
        async with self._places:
            try:
                episode, task = await self._episode(row, url)
                trajectory = await self.play(episode, task, row, prefix)
            except TransportError as error:
                failed = Failure(kind=error.kind, reason=error.reason[:2000], stage="seed")
                return self.finished(failed_trajectory(row, failed), row, {})
            except (ConfigError, ServerError, ModelError, ValueError, TypeError) as error:
                failed = Failure(kind="task_invalid", reason=str(error)[:2000], stage="seed", terminal=True)
                return self.finished(failed_trajectory(row, failed), row, {})
            except Exception as error:
                _log.exception("an episode of %s failed", self.name)
                failed = Failure(kind="agent_run_error", reason=f"The agent broke: {type(error).__name__}.")
                return self.finished(failed_trajectory(row, failed), row, {})
        return self.finished(trajectory, row, getattr(episode, "extra", {}))

    async def play(
        self, episode: Episode, task: Task, row: Mapping[str, Any], prefix: str = ""
    ) -> Trajectory:
        """Run an episode that was made."""
        params = row.get(PARAMS)
        agent = ChatAgent(
            self.model(prefix), row_agent(self.config.agent, params if isinstance(params, dict) else {})
        )
        return await run_episode(
            agent, episode, task, seed=row_seed(row), timeout_s=self.config.episode_timeout_s
        )

    def model(self, prefix: str = "") -> ServedModel:
        """The model that is asked."""
        reference = self.config.model_server
        address = resolve(reference, self.runtime)
        return ServedModel(
            self.http,
            address.url,
            path=f"{prefix}/v1/responses",
            timeout_s=self.config.model_timeout_s,
            api_key=address.api_key,
            answers=self.runtime.models.get(reference.name or "") if not prefix else None,
        )

    def resources(self) -> Address:
        """Where the resources server is.

        Raises:
            ConfigError: None is configured.
        """
        if self.config.resources_server is None:
            raise ConfigError(f"{self.name} has no resources_server.")
        return resolve(self.config.resources_server, self.runtime)

    async def _episode(self, row: Mapping[str, Any], url: str | None) -> tuple[Episode, Task]:
        config = self.config
        host = self._neighbour() if url is None else None
        if host is not None:
            task = _task_of(row, host.definition.name)
            return NeighbourEpisode(host, _naming(row), self._limits), task
        address = Address(url) if url is not None else self.resources()
        protocol, env = await self._protocols.find(address, config.protocol)
        if protocol == "sensorium":
            named, key = _naming(row), address.api_key
            remote = RemoteEpisode(self.http, address.url, row=named, limits=self._limits, api_key=key)
            return remote, _task_of(row, env or "remote")
        params = row.get(PARAMS)
        check_prompt(params if isinstance(params, Mapping) else {})
        kind = GymnasiumEpisode if protocol == "gymnasium" else ToolEpisode
        foreign = kind(
            self.http,
            address.url,
            row,
            max_steps=config.max_steps,
            timeout_s=config.tool_timeout_s,
            api_key=address.api_key,
        )
        return foreign, named_task(row, "remote", "row")

    def _neighbour(self) -> EpisodeHost | None:
        """The resources server, where it is in this process and spoken to in our own way."""
        reference = self.config.resources_server
        if reference is None or reference.name is None or self.config.protocol not in ("auto", "sensorium"):
            return None
        return self.runtime.episodes.get(reference.name)

    def finished(
        self, trajectory: Trajectory, row: Mapping[str, Any], extra: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The row with what came of it."""
        made = rollout_row(trajectory, {**extra, **row}, model="")
        if trajectory.verdict.failure is None:
            made |= {MASK: False, FAILURE_KIND: None, FAILURE_REASON: None}
        else:
            made[MASK] = True
        return made


def _task_of(row: Mapping[str, Any], env: str) -> Task:
    """The task of a row as far as its agent knows it."""
    return row_task(row, env, lambda id: named_task(row, env, id))


def _naming(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a resources server of ours is sent of a row: what names the task."""
    ours = row.get(OURS)
    known = isinstance(ours, Mapping) and isinstance(ours.get("task"), str | Mapping)
    return {OURS: ours} if known else {key: value for key, value in row.items() if key != "seed"}


def build_agent_app(config: AgentServerConfig, name: str, runtime: Runtime | None = None) -> FastAPI:
    """The app of an agent server; ``app.state.host`` is its `AgentHost`.

    Raises:
        ConfigError: The address needs a key.
    """
    runtime = runtime or Runtime()
    access = build_access(config, name)
    host = runtime.agents[name] = AgentHost(config, name, runtime)
    sessions = AgentSessions(host)

    async def stop() -> None:
        await sessions.table.shut()
        await host.http.close()

    app = build_app(
        f"agent {name}",
        config,
        access,
        middleware=[sessions.cookies],
        starts=[sessions.table.start],
        stops=[stop],
        request_timeout_s=_WAITS * config.episode_timeout_s,
    )
    app.state.host, app.state.drain = host, host.drain
    routes = _Routes(host)
    add_post(app, "/run", routes.run, _ROW)
    add_post(app, "/aggregate_metrics", routes.aggregate, AggregateRequest)
    add_session_routes(app, sessions)
    return app


class _Routes:
    def __init__(self, host: AgentHost) -> None:
        self._host = host

    async def run(self, request: Request) -> Response:
        """Run the episode of a row; the answer is the row with what came of it."""
        row = await read_object(request)
        recorded_as = request.scope.get("state", {}).get("rollout_id")
        return json_response(await while_attended(request, self._host.answer(row, recorded_as)))

    async def aggregate(self, request: Request) -> Response:
        """Metrics of rows."""
        body = await read_body(request, AggregateRequest)
        return json_response(await self._host.aggregate(body.verify_responses))
