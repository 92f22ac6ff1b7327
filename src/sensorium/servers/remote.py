"""An episode on a resources server of ours: the same prompts as in one's own process."""

import asyncio
import random
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from sensorium.core import EpisodeStatus
from sensorium.envs.base import Action, Task
from sensorium.envs.episode import EpisodeError, Failure, Opening, Stage, Turn, Verdict
from sensorium.servers.http import HttpClient, Reply, TransportError, failure_of_reply
from sensorium.servers.identity import SESSION_HEADER

ResultT = TypeVar("ResultT")


class Limits(NamedTuple):
    """Of an episode, beside those of its environment."""

    max_steps: int | None = None
    """Answers of the agent."""
    reset_s: float = 300.0
    """Of beginning."""
    step_s: float = 300.0
    """Of one step."""


class ServedEpisode(ABC):
    """What is the same wherever the resources server runs: the agent's own limit of steps.

    Args:
        limits: Beside those of the environment.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._begun = self._cut = False
        self._verdict: Verdict | None = None

    async def start(self, task: Task, *, seed: int | None = None) -> Opening:
        """Begin; see `Episode.start`."""
        self._begun = True  # the answer may be lost
        return await self._open(task, seed)

    async def act(self, action: Action, step_id: int) -> Turn:
        """Act; see `Episode.act`."""
        turn, self._verdict = await self._step(action, step_id)
        most = self._limits.max_steps
        if self._verdict is None and most is not None and step_id + 1 >= most:
            self._cut = True
            return turn.model_copy(update={"truncated": True, "view": None})
        return turn

    async def verdict(self, answer: str = "") -> Verdict:
        """How it ended; see `Episode.verdict`."""
        if self._verdict is None:
            verdict = await self._judge(answer)
            if self._cut and verdict.status is EpisodeStatus.FAILURE:
                verdict = verdict.model_copy(update={"status": EpisodeStatus.TRUNCATED})
            self._verdict = verdict
        return self._verdict

    async def close(self) -> None:
        """End the session, unless the server did that already; where it cannot be told, it expires there."""
        if self._begun and self._verdict is None:
            self._begun = False
            await self._end()

    @abstractmethod
    async def _open(self, task: Task, seed: int | None) -> Opening: ...

    @abstractmethod
    async def _step(self, action: Action, step_id: int) -> tuple[Turn, Verdict | None]:
        """Act; when that ends the episode the verdict comes along."""

    @abstractmethod
    async def _judge(self, answer: str) -> Verdict: ...

    @abstractmethod
    async def _end(self) -> None: ...


class RemoteEpisode(ServedEpisode):
    """An `Episode` behind a resources server.

    A request whose answer was lost is sent again: the session is named here, and steps have numbers, so
    nothing is done twice.

    Args:
        http: Connections.
        url: Of the server.
        row: What to send to ``/reset`` to name the task; its id by default.
        limits: Beside those of the environment.
        replaces: Whole prompts or a conversation; by default what the server is configured for.
        api_key: Of the server, where it is not that of `http`.
    """

    def __init__(
        self,
        http: HttpClient,
        url: str,
        *,
        row: dict[str, Any] | None = None,
        limits: Limits | None = None,
        replaces: bool | None = None,
        api_key: str | None = None,
    ) -> None:
        super().__init__(limits or Limits())
        self._http, self._url, self._row = http, url.rstrip("/"), row
        self._context = None if replaces is None else "replace" if replaces else "append"
        self._api_key = api_key
        self._id = secrets.token_hex(16)

    async def _open(self, task: Task, seed: int | None) -> Opening:
        body: dict[str, Any] = self._row if self._row is not None else {"task_id": task.id}
        body = {**body, "seed": seed, "reply": "turn", "context": self._context}
        reply = await self._post("/reset", body, self._limits.reset_s, "seed")
        return _read(lambda: Opening.model_validate(reply.json()["opening"]), "seed", self._url)

    async def _step(self, action: Action, step_id: int) -> tuple[Turn, Verdict | None]:
        body = {"action": action.model_dump(mode="json"), "step_id": step_id, "reply": "turn"}
        reply = await self._post("/step", body, self._limits.step_s, "agent")
        answer = _read(reply.json, "agent", self._url)
        turn = _read(lambda: Turn.model_validate(answer["turn"]), "agent", self._url)
        if answer.get("verdict") is None:
            return turn, None
        return turn, _read(lambda: Verdict.model_validate(answer["verdict"]), "verification", self._url)

    async def _judge(self, answer: str) -> Verdict:
        reply = await self._post("/verdict", {"answer": answer}, self._limits.step_s, "verification")
        return _read(lambda: Verdict.model_validate(reply.json()), "verification", self._url)

    async def _end(self) -> None:
        headers = {SESSION_HEADER: self._id}
        try:
            await self._http.post(
                f"{self._url}/close", {}, timeout_s=10.0, headers=headers, api_key=self._api_key
            )
        except TransportError:
            return

    async def _post(self, path: str, body: Any, timeout_s: float, stage: Stage) -> Reply:
        """Send until there is an answer other than to come again later, or time is up."""
        headers, url = {SESSION_HEADER: self._id}, f"{self._url}{path}"
        until = time.monotonic() + timeout_s
        while True:
            left = until - time.monotonic()
            try:
                reply = await self._http.post(
                    url, body, timeout_s=max(0.1, left), headers=headers, repeat=True, api_key=self._api_key
                )
            except TransportError as error:
                raise EpisodeError(Failure(kind=error.kind, reason=error.reason, stage=stage)) from error
            if reply.status == 200:
                return reply
            pause = reply.retry_after_s
            if reply.status not in (429, 503) or pause is None or time.monotonic() + pause >= until:
                raise failure_of_reply(reply, stage, url)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))


def _read(reading: Callable[[], ResultT], stage: Stage, url: str) -> ResultT:
    """What an answer holds.

    Raises:
        EpisodeError: It holds something else.
    """
    try:
        return reading()
    except (ValidationError, ValueError, KeyError, TypeError) as error:
        reason = f"{url} answered what is no {stage} of an episode: {error}"[:2000]
        raise EpisodeError(
            Failure(kind="answer_unreadable", reason=reason, stage=stage, terminal=True)
        ) from error
