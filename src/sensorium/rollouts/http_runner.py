"""Runs rows at servers that speak NeMo Gym's protocol, ours or NeMo Gym's own."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sensorium.core import ConfigError, ModelError, require
from sensorium.envs.episode import EpisodeError, Failure, Stage
from sensorium.llm.replies import error_text
from sensorium.llm.retries import retry_after_s
from sensorium.rollouts import row_names as names
from sensorium.rollouts.failures import failure_fields, known_stage
from sensorium.rollouts.jsonl import dumps, loads
from sensorium.rollouts.routes import Route, Routes, read_routes
from sensorium.rollouts.run_record import without_places

if TYPE_CHECKING:
    import aiohttp

_NOT_BEGUN = frozenset({429, 502, 503, 504})
_MAX_REPLY_BYTES = 512 * 1024 * 1024
_HEAD_TIMEOUT_S = 30.0
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 15.0
_AGGREGATE_TIMEOUT_S = 300.0


class HttpRunner:
    """Posts rows to ``/run``, as NeMo Gym's collector does; servers are found through the head server.

    Args:
        head: Address of the head server.
        url: Address of one agent or environment server, instead of a head server.
        api_key: Sent as bearer token; in no message.
        taskset_routes: Taskset -> environment server, for rows in the form of episode requests.
    """

    def __init__(
        self,
        head: str | None = None,
        *,
        url: str | None = None,
        api_key: str | None = None,
        taskset_routes: Mapping[str, str] | None = None,
    ) -> None:
        self._aiohttp = require("aiohttp", extra="serve", purpose="collecting rollouts from servers")
        self._head = head.rstrip("/") if head else None
        self._url = url.rstrip("/") if url else None
        self._api_key = api_key
        self._taskset_routes = dict(taskset_routes or {})
        self._session: aiohttp.ClientSession | None = None
        self._routes: Routes | None = None
        self._used: dict[str, Route] = {}

    @property
    def identity(self) -> Mapping[str, Any]:
        """The settings of the servers that run the rows, apart from where they are."""
        return {
            "servers": {} if self._routes is None else without_places(self._routes.settings_of(self._used))
        }

    @property
    def needs_agent(self) -> bool:
        """Through a head server rows are sent to the agent that they name."""
        return self._url is None

    @property
    def needs_request(self) -> bool:
        """Agents of NeMo Gym refuse rows without."""
        return True

    async def open(self) -> None:
        """Ask the head server which servers there are.

        Raises:
            ConfigError: It cannot be reached, or answers something else.
        """
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        self._session = self._aiohttp.ClientSession(
            headers=headers,
            timeout=self._aiohttp.ClientTimeout(total=None),  # every call has a limit of its own
            cookie_jar=self._aiohttp.DummyCookieJar(),
            connector=self._aiohttp.TCPConnector(limit=0),  # episodes are limited, so connections are, too
        )
        try:
            if self._head is not None:
                config = await self._asked("/global_config_dict_yaml")
                instances = await self._asked("/server_instances")
                self._routes = read_routes(config, instances, self._head)
        except BaseException:
            await self.close()
            raise

    def problem(self, row: Mapping[str, Any]) -> str | None:
        """Whether there is a server for the row."""
        try:
            self._route(row)
        except ConfigError as error:
            return str(error)
        return None

    async def run(self, row: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """Post a row; see `RowRunner.run`."""
        route = self._route(row)
        is_request = names.is_episode_request(row)
        body = _episode_request(row) if is_request else row
        status, data = await self._patient_post(f"{route.url}/run", body, timeout_s)
        if status != 200:
            begun = status not in _NOT_BEGUN
            kind = "agent_run_error" if begun else "agent_request_failed"
            stage: Stage = "agent" if begun else "admission"
            said = f"{route.name} answered with status {status}: {self._hidden(_text(data))}"
            raise _failed(kind, said, stage, terminal=status in (400, 401, 403, 404, 405, 413, 422))
        try:
            reply = loads(data)
        except ValueError as error:
            raise _failed(
                "answer_unreadable", f"{route.name} answered, but not with JSON: {_text(data)}", "agent"
            ) from error
        if not isinstance(reply, dict):
            raise _failed("answer_unreadable", f"{route.name} answered with {type(reply).__name__}", "agent")
        result = _from_episode(reply, route.name) if is_request else reply
        if route.is_environment_server:
            result[names.ENVIRONMENT_SERVER] = route.name
            result[names.RESULT_TYPE] = route.implementation
        return result

    async def aggregate(self, server: str | None, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Ask the server for its view of the rows; see `RowRunner.aggregate`."""
        route = self._used.get(server or "")
        if route is None:
            return None
        body = {"verify_responses": list(rows)}
        try:
            status, data, _ = await self._post(f"{route.url}/aggregate_metrics", body, _AGGREGATE_TIMEOUT_S)
            reply = loads(data) if status == 200 else None
        except (EpisodeError, ValueError):
            return None
        return reply if isinstance(reply, dict) and "agent_metrics" in reply else None

    async def close(self) -> None:
        """Close connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            await asyncio.sleep(0.01)  # connections close one turn of the loop later

    def _route(self, row: Mapping[str, Any]) -> Route:
        if self._url is not None:
            route = Route(names.agent_name(row) or "agent", self._url)
            self._used[route.name] = route
            return route
        if self._routes is None:
            raise ConfigError("the runner is not open")
        if names.is_episode_request(row):
            taskset = row[names.MATERIALISED_TASK]["taskset"]
            route = self._routes.of_taskset(taskset, self._taskset_routes.get(taskset))
        else:
            route = self._routes.of_agent(names.agent_name(row) or "")
        self._used[route.name] = route
        return route

    async def _patient_post(self, url: str, body: Any, timeout_s: float) -> tuple[int, bytes]:
        """Send, and send again while the server says that it is too busy."""
        deadline = time.monotonic() + timeout_s
        pause = _FIRST_PAUSE_S
        while True:
            status, data, asked = await self._post(url, body, deadline - time.monotonic())
            if status != 429:
                return status, data
            wait_s = retry_after_s(asked)
            pause = min(_LONGEST_PAUSE_S, pause * 2) if wait_s is None else max(wait_s, _FIRST_PAUSE_S)
            if time.monotonic() + pause >= deadline:
                return status, data
            await asyncio.sleep(pause)

    async def _post(self, url: str, body: Any, timeout_s: float) -> tuple[int, bytes, str | None]:
        """Send, and read the answer.

        Raises:
            EpisodeError: There is none.
        """
        assert self._session is not None, "open() comes first"
        client = self._aiohttp
        begun = False
        try:
            async with asyncio.timeout(timeout_s):
                async with self._session.post(
                    url, data=dumps(body), headers={"Content-Type": "application/json"}, allow_redirects=False
                ) as response:
                    begun = True
                    data = await _body(response)
                    return response.status, data, response.headers.get("Retry-After")
        except TimeoutError as error:
            said = f"{url} did not answer within {timeout_s:g} s"
            raise _failed("transport_timeout", said, "agent") from error
        except client.ClientConnectorError as error:
            said = f"{url} cannot be reached: {error.os_error.strerror or error}"
            raise _failed("transport_unreachable", said, "admission") from error
        except (client.ClientError, OSError) as error:
            said = f"{url} broke the connection off{' in its answer' if begun else ''}: {error!r}"
            raise _failed("transport_peer_drop", self._hidden(said), "agent") from error

    async def _asked(self, path: str) -> Any:
        """What the head server says."""
        assert self._session is not None
        url = f"{self._head}{path}"
        try:
            async with asyncio.timeout(_HEAD_TIMEOUT_S), self._session.get(url) as response:
                data = await _body(response)
                status = response.status
        except (self._aiohttp.ClientError, OSError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            raise ConfigError(
                f"The head server cannot be asked at {url}: {reason}. Is it up (sensorium serve CONFIG), "
                "and is --head right?"
            ) from error
        if status != 200:
            raise ConfigError(f"{url} answered with status {status}: {self._hidden(_text(data))}")
        try:
            return loads(data)
        except ValueError as error:
            raise ConfigError(
                f"{url} did not answer with JSON, so it is no head server: {_text(data)}"
            ) from error

    def _hidden(self, text: str) -> str:
        return text.replace(self._api_key, "***") if self._api_key else text


async def _body(response: "aiohttp.ClientResponse") -> bytes:
    data = bytearray()
    async for piece in response.content.iter_any():
        data += piece
        if len(data) > _MAX_REPLY_BYTES:
            raise ModelError(f"The answer has over {_MAX_REPLY_BYTES:,} bytes.")
    return bytes(data)


def _text(data: bytes) -> str:
    return error_text(data[:8000].decode("utf-8", "replace"))


def _failed(kind: str, reason: str, stage: Stage, *, terminal: bool = False) -> EpisodeError:
    return EpisodeError(Failure(kind=kind, reason=reason, stage=stage, terminal=terminal))


def _episode_request(row: Mapping[str, Any]) -> dict[str, Any]:
    """A materialised task as the body of an episode request."""
    key = names.RowKey.of(row)
    return {
        "episode_id": {
            "rollout_id": row.get(names.ROLLOUT_ID) or f"{key.task}-{key.rollout}",
            "attempt": row.get(names.ATTEMPT_INDEX, 0),
        },
        "task": {"task_id": row[names.MATERIALISED_TASK], "task_input": row["task_input"]},
    }


def _from_episode(reply: Mapping[str, Any], server: str) -> dict[str, Any]:
    """The row in the reply to an episode request."""
    failure, result = reply.get("failure"), reply.get("result")
    identity = {names.TASK_ID: reply.get("task_id")}
    if isinstance(failure, Mapping):
        told = Failure(
            kind=str(failure.get("failure_kind") or "agent_run_error"),
            reason=str(failure.get("failure_reason") or "no reason given"),
            stage=known_stage(failure.get("stage")),
            terminal=bool(failure.get("terminal", False)),
        )
        return identity | failure_fields(told)
    if not isinstance(result, Mapping):
        raise _failed("answer_unreadable", f"{server} answered neither with a result nor a failure", "agent")
    return dict(result) | identity
