"""An episode on a resources server in the process of the agent: nothing is written as JSON and read again."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from sensorium.envs.base import Action, Task
from sensorium.envs.episode import EpisodeError, Failure, Opening, Stage, Turn, Verdict
from sensorium.llm.retries import retry_after_s
from sensorium.servers.errors import ServerError
from sensorium.servers.hosting import EpisodeHost
from sensorium.servers.http import is_terminal
from sensorium.servers.remote import Limits, ServedEpisode

ResultT = TypeVar("ResultT")


class NeighbourEpisode(ServedEpisode):
    """An `Episode` on a resources server of this process, with its sessions and limits.

    Args:
        host: Of the server.
        row: Names the task.
        limits: Beside those of the environment.
    """

    def __init__(self, host: EpisodeHost, row: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(limits)
        self._host, self._row = host, row
        self._id = host.table.new_id()

    async def close(self) -> None:
        """End the session; nobody else asks for what is remembered of it."""
        await super().close()
        await self._host.table.discard(self._id)

    async def _open(self, task: Task, seed: int | None) -> Opening:
        def begin() -> Awaitable[tuple[Any, Opening]]:
            return self._host.begin(self._row, seed=seed, replaces=self._host.replaces, id=self._id)

        _, opening = await self._patiently(begin, self._limits.reset_s, "seed")
        return opening

    async def _step(self, action: Action, step_id: int) -> tuple[Turn, Verdict | None]:
        async def act() -> tuple[Turn, Verdict | None]:
            session = self._host.table.get(self._id)
            turn = await self._host.act(session, action, step_id)
            return turn, await self._host.verdict(session) if turn.done else None

        return await self._patiently(act, self._limits.step_s, "agent")

    async def _judge(self, answer: str) -> Verdict:
        def judge() -> Awaitable[Verdict]:
            return self._host.verdict(self._host.table.get(self._id), answer)

        return await self._patiently(judge, self._limits.step_s, "verification")

    async def _end(self) -> None:
        # To the end, also when the agent is stopped meanwhile.
        await asyncio.shield(self._host.table.close(self._id))

    async def _patiently(
        self, doing: Callable[[], Awaitable[ResultT]], timeout_s: float, stage: Stage
    ) -> ResultT:
        """Do something, again after a while where the server asks for that.

        Raises:
            EpisodeError: The server refused, or took too long.
        """
        until = time.monotonic() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    try:
                        return await doing()
                    except ServerError as error:
                        pause = retry_after_s(error.headers.get("Retry-After"))
                        if error.status not in (429, 503) or pause is None:
                            raise self._failed(error, stage) from error
                        if time.monotonic() + pause >= until:
                            raise self._failed(error, stage) from error
                    await asyncio.sleep(pause * random.uniform(0.5, 1.5))
        except TimeoutError as error:
            reason = f"{self._host.name} did not answer within {timeout_s:g} s."
            raise EpisodeError(Failure(kind="transport_timeout", reason=reason, stage=stage)) from error

    def _failed(self, error: ServerError, stage: Stage) -> EpisodeError:
        reason = f"{self._host.name} answered {error.status}: {error.message}"[:2000]
        return EpisodeError(
            Failure(kind=error.kind, reason=reason, stage=stage, terminal=is_terminal(error.status))
        )
