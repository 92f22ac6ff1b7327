"""An episode on a resources server of ours: the same prompts as in one's own process."""

import asyncio
import random
import secrets
import time
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError

from sensorium.core import EpisodeStatus
from sensorium.envs.base import Action, Task
from sensorium.envs.episode import EpisodeError, Failure, Opening, Stage, Turn, Verdict
from sensorium.servers.http import HttpClient, Reply, TransportError, failure_of_reply
from sensorium.servers.identity import SESSION_HEADER

ResultT = TypeVar("ResultT")


class RemoteEpisode:
    """An `Episode` behind a resources server.

    A request whose answer was lost is sent again: the session is named here, and steps have numbers, so
    nothing is done twice.

    Args:
        http: Connections.
        url: Of the server.
        row: What to send to ``/reset`` to name the task; its id by default.
        max_steps: Of the agent; the environment has its own limit.
        reset_timeout_s: Of beginning.
        step_timeout_s: Of one step.
        replaces: Whole prompts or a conversation; by default what the server is configured for.
        api_key: Of the server, where it is not that of `http`.
    """

    def __init__(
        self,
        http: HttpClient,
        url: str,
        *,
        row: dict[str, Any] | None = None,
        max_steps: int | None = None,
        reset_timeout_s: float = 300.0,
        step_timeout_s: float = 300.0,
        replaces: bool | None = None,
        api_key: str | None = None,
    ) -> None:
        self._http, self._url, self._row, self._max_steps = http, url.rstrip("/"), row, max_steps
        self._reset_timeout_s, self._step_timeout_s = reset_timeout_s, step_timeout_s
        self._context = None if replaces is None else "replace" if replaces else "append"
        self._api_key = api_key
        self._id = secrets.token_hex(16)
        self._begun = self._cut = False
        self._verdict: Verdict | None = None

    async def start(self, task: Task, *, seed: int | None = None) -> Opening:
        """Begin; see `Episode.start`."""
        body: dict[str, Any] = self._row if self._row is not None else {"task_id": task.id}
        body = {**body, "seed": seed, "reply": "turn", "context": self._context}
        self._begun = True  # the answer may be lost
        reply = await self._post("/reset", body, self._reset_timeout_s, "seed")
        return _read(lambda: Opening.model_validate(reply.json()["opening"]), "seed", self._url)

    async def act(self, action: Action, step_id: int) -> Turn:
        """Act; see `Episode.act`."""
        body = {"action": action.model_dump(mode="json"), "step_id": step_id, "reply": "turn"}
        reply = await self._post("/step", body, self._step_timeout_s, "agent")
        answer = _read(reply.json, "agent", self._url)
        turn = _read(lambda: Turn.model_validate(answer["turn"]), "agent", self._url)
        if answer.get("verdict") is not None:
            self._verdict = _read(
                lambda: Verdict.model_validate(answer["verdict"]), "verification", self._url
            )
        elif self._max_steps is not None and step_id + 1 >= self._max_steps:
            self._cut = True
            return turn.model_copy(update={"truncated": True, "view": None})
        return turn

    async def verdict(self, answer: str = "") -> Verdict:
        """How it ended; see `Episode.verdict`."""
        if self._verdict is None:
            reply = await self._post("/verdict", {"answer": answer}, self._step_timeout_s, "verification")
            verdict = _read(lambda: Verdict.model_validate(reply.json()), "verification", self._url)
            if self._cut and verdict.status is EpisodeStatus.FAILURE:
                verdict = verdict.model_copy(update={"status": EpisodeStatus.TRUNCATED})
            self._verdict = verdict
        return self._verdict

    async def close(self) -> None:
        """End the session, unless the server did that already; where it cannot be told, it expires there."""
        if not self._begun or self._verdict is not None:
            return
        self._begun = False
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
