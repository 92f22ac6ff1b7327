"""The environment server of NeMo Gym: admits an episode, has it run, and answers a result or a failure."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from sensorium.envs.episode import EpisodeError, Failure, Stage
from sensorium.rollouts.failures import failure_fields, failure_of, wire_kind, worth_retrying
from sensorium.rollouts.row_names import (
    FAILURE_CLASS,
    FAILURE_KIND,
    FAILURE_REASON,
    MASK,
    PARAMS,
    ROLLOUT_ID,
    is_episode_request,
)
from sensorium.servers.agent import AgentHost
from sensorium.servers.apps import add_post, build_app
from sensorium.servers.attendance import while_attended
from sensorium.servers.config import EnvironmentServerConfig
from sensorium.servers.errors import ServerError, error_body
from sensorium.servers.http import HttpClient, Reply, TransportError, failure_of_reply
from sensorium.servers.metrics import aggregate_at
from sensorium.servers.references import resolve
from sensorium.servers.replies import json_bytes, json_response
from sensorium.servers.runtime import Runtime
from sensorium.servers.security import build_access
from sensorium.servers.wire import AggregateRequest, EpisodeRequest, check, read_body, read_object

_NEVER_IN_RESULT = frozenset({"ng_trajectory", "ng_model_call_capture", "ng_perf"})
_REQUEST = {"type": "object", "description": "an episode request or a row", "additionalProperties": True}


class EnvironmentHost:
    """Owns episodes.

    Args:
        config: The server's.
        runtime: What the servers of a process share.
    """

    def __init__(self, config: EnvironmentServerConfig, runtime: Runtime) -> None:
        self._config, self._runtime = config, runtime
        self.http = HttpClient(runtime.api_key, apps=runtime.apps)
        self._places = asyncio.Semaphore(config.max_concurrent_episodes)

    async def relay(self, row: Mapping[str, Any], cookies: str | None) -> Response:
        """Pass a row on to the agent, whose answer is the answer; failures are rows, too."""
        try:
            reply = await self._ask(row, cookies)
        except EpisodeError as error:
            return json_response({**row, **failure_fields(error.failure), MASK: True})
        if reply.status == 200:
            return Response(reply.body, 200, media_type="application/json")
        if 400 <= reply.status < 500 and reply.status not in (408, 429):
            return Response(reply.body, reply.status, media_type="application/json")
        failure = failure_of_reply(reply, "agent", "the agent").failure
        return json_response({**row, **failure_fields(failure), MASK: True})

    async def episode(self, request: EpisodeRequest) -> dict[str, Any]:
        """Run an episode in NeMo Gym's materialised form."""
        answer = {"episode_id": request.episode_id.model_dump(), "task_id": request.task.task_id.model_dump()}
        row = materialised_row(request)
        try:
            reply = await self._ask(row, None)
            if reply.status != 200:
                raise failure_of_reply(reply, "agent", "the agent")
            result = self._result(reply, row)
        except EpisodeError as error:
            return {**answer, "result": None, "failure": failure_body(error.failure)}
        return {**answer, "result": result, "failure": None}

    async def aggregate(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Metrics of rows as the agent sees them; our own where it has no view.

        Raises:
            ServerError: The rows are none of rollouts.
        """
        return await aggregate_at(resolve(self._config.agent_server, self._runtime), self.http, rows)

    async def _ask(self, row: Mapping[str, Any], cookies: str | None) -> Reply:
        """Wait for a place, then ask the agent.

        Raises:
            EpisodeError: No place came free, the agent could not be asked, or took too long.
        """
        config = self._config
        try:
            async with asyncio.timeout(config.queue_timeout_seconds):
                await self._places.acquire()
        except TimeoutError as error:
            reason = f"No place came free within {config.queue_timeout_seconds:g} s."
            raise _failed("agent_request_failed", reason, "admission") from error
        agent = self._runtime.agents.get(config.agent_server.name or "")
        try:
            if agent is not None:
                return await self._hand(agent, row)
            address = resolve(config.agent_server, self._runtime)
            return await self.http.post(
                f"{address.url}/run",
                row,
                timeout_s=config.default_episode_timeout_seconds,
                headers={"Cookie": cookies} if cookies else None,
                api_key=address.api_key,
            )
        except TransportError as error:
            kind = "agent_timeout" if error.kind == "transport_timeout" else error.kind
            raise _failed(kind, error.reason, "agent") from error
        finally:
            self._places.release()

    async def _hand(self, agent: AgentHost, row: Mapping[str, Any]) -> Reply:
        """Have an agent of this process run a row; its answer is that of its server."""
        seconds = self._config.default_episode_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return Reply(200, json_bytes(await agent.answer(row)), {})
        except ServerError as error:
            return Reply(error.status, error_body(error.kind, error.message), error.headers)
        except TimeoutError as error:
            said = f"{agent.name} did not answer within {seconds:g} s."
            raise TransportError("transport_timeout", said) from error

    @staticmethod
    def _result(reply: Reply, row: Mapping[str, Any]) -> dict[str, Any]:
        try:
            made = reply.json()
        except ValueError:
            made = None
        if not isinstance(made, dict):
            raise _failed("answer_unreadable", "the agent answered no JSON object", "agent")
        if made.get(FAILURE_CLASS) is not None:
            failure = failure_of(made)
            assert failure is not None
            raise EpisodeError(failure)
        if made.get("reward") is None:
            kind = str(made.get(FAILURE_KIND) or "verifier_error")
            raise _failed(kind, str(made.get(FAILURE_REASON) or "there is no reward"), "verification")
        kept = {k: v for k, v in made.items() if not k.startswith("_ng_") and k not in _NEVER_IN_RESULT}
        return {"ng_agent_observations": None, **kept}


def materialised_row(request: EpisodeRequest) -> dict[str, Any]:
    """An episode request as a row: its data beside the request to the model."""
    given = dict(request.task.task_input)
    data = given.pop("task_data", None)
    row = {**given, **(data if isinstance(data, dict) else {})}
    row.setdefault(PARAMS, {"input": []})
    row.setdefault("task_id", request.task.task_id.task_id)
    return {**row, ROLLOUT_ID: request.episode_id.capture_key}


def failure_body(failure: Failure) -> dict[str, Any]:
    """A failure in NeMo Gym's form."""
    return {
        "failure_reason": failure.reason[:2000] or failure.kind,
        "terminal": not worth_retrying(failure),
        "failure_kind": wire_kind(failure.kind),
        "stage": failure.stage,
    }


def build_environment_app(
    config: EnvironmentServerConfig, name: str, runtime: Runtime | None = None
) -> FastAPI:
    """The app of an environment server.

    Raises:
        ConfigError: The address needs a key.
    """
    runtime = runtime or Runtime()
    host = EnvironmentHost(config, runtime)
    longest = (
        config.queue_timeout_seconds + config.default_episode_timeout_seconds + config.cleanup_timeout_seconds
    )
    app = build_app(
        f"environment server {name}",
        config,
        build_access(config, name),
        stops=[host.http.close],
        request_timeout_s=longest,
    )

    async def run(request: Request) -> Response:
        """Run an episode: an episode request, or a row as the agent takes it."""
        body = await read_object(request)
        if "episode_id" in body or is_episode_request(body):
            asked = check(body, EpisodeRequest)
            return json_response(await while_attended(request, host.episode(asked)))
        if not isinstance(body.get(PARAMS), dict):
            raise ServerError(422, "invalid_request", f"The row has no {PARAMS}.")
        return await while_attended(request, host.relay(body, request.headers.get("cookie")))

    async def aggregate(request: Request) -> Response:
        """Metrics of rows."""
        body = await read_body(request, AggregateRequest)
        return json_response(await host.aggregate(body.verify_responses))

    add_post(app, "/run", run, _REQUEST)
    add_post(app, "/aggregate_metrics", aggregate, AggregateRequest)
    app.state.host = host
    return app


def _failed(kind: str, reason: str, stage: Stage) -> EpisodeError:
    return EpisodeError(Failure(kind=kind, reason=reason, stage=stage))
