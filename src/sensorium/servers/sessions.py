"""The table of episodes that a server hosts: begun once, closed once, and closed also when nobody does it."""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from sensorium.servers.config import SessionLimits
from sensorium.servers.errors import ServerError

_log = logging.getLogger(__name__)
_KEPT_REPLIES = 4
_MAX_FINISHED_PER_OPEN = 4


@runtime_checkable
class Closable(Protocol):
    """Holds something until it is closed."""

    async def close(self) -> None:
        """Give it back; may be called again."""
        ...


HeldT = TypeVar("HeldT", bound=Closable)
ResultT = TypeVar("ResultT")


class Hosted(Generic[HeldT]):
    """One entry of the table.

    Args:
        id: Its name.
        held: What it holds.
        fingerprint: What it was begun with; beginning it again with the same is harmless.
        now: Present time, seconds.
    """

    def __init__(self, id: str, held: HeldT, fingerprint: str, now: float) -> None:
        self.id, self.held, self.fingerprint = id, held, fingerprint
        self.begun_s = self.used_s = now
        self.lock = asyncio.Lock()
        self.busy = 0
        self.finished = False
        """What it held was given back; what is remembered can still be asked."""
        self.notes: dict[str, Any] = {}
        """What the routes remember of it."""
        self._replies: OrderedDict[str, Any] = OrderedDict()

    def reply(self, request_id: str) -> Any:
        """The answer that a request had before; None for a new one."""
        return self._replies.get(request_id)

    def remember(self, request_id: str, reply: Any) -> None:
        """Keep an answer, in case its request is sent again."""
        self._replies[request_id] = reply
        while len(self._replies) > _KEPT_REPLIES:
            self._replies.popitem(last=False)


class SessionTable(Generic[HeldT]):
    """Sessions by name.

    Args:
        limits: How many and for how long.
        prefix: Of the names that are made here, e.g. the number of the worker.
        clock: Seconds, for tests.
    """

    def __init__(
        self, limits: SessionLimits, *, prefix: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits, self._prefix, self._clock = limits, prefix, clock
        self._sessions: dict[str, Hosted[HeldT]] = {}
        self._closed: OrderedDict[str, float] = OrderedDict()
        self._running: set[asyncio.Task[Any]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._shut = False
        self._num_open = 0

    def __len__(self) -> int:
        """Sessions that hold something."""
        return self._num_open

    def open_sessions(self) -> list[Hosted[HeldT]]:
        """Those that hold something."""
        return [one for one in self._sessions.values() if not one.finished]

    def new_id(self) -> str:
        """A name that nobody guesses."""
        return f"{self._prefix}{secrets.token_hex(16)}"

    def find(self, id: str | None) -> Hosted[HeldT] | None:
        """The session of this name, which counts as used; None when there is none."""
        session = self._sessions.get(id) if id is not None else None
        if session is not None:
            session.used_s = self._clock()
        return session

    def get(self, id: str | None) -> Hosted[HeldT]:
        """The session of this name.

        Raises:
            ServerError: There is none (409): it was never begun, was closed, or expired.
        """
        session = self.find(id)
        if session is not None:
            return session
        if id is not None and id in self._closed:
            raise ServerError(
                409, "session_lost", "The session was closed, or nothing was heard of it too long."
            )
        raise ServerError(
            409, "session_lost", "There is no such session; begin one with /reset or /seed_session."
        )

    async def open(self, id: str, fingerprint: str, make: Callable[[], HeldT]) -> Hosted[HeldT]:
        """Begin a session, or find it when it was begun with the same before.

        Raises:
            ServerError: It was begun with something else or closed (409), or there are too many (429).
        """
        known = self.find(id)
        if known is not None:
            if known.fingerprint != fingerprint:
                raise ServerError(
                    409, "session_conflict", "A session of this name was begun with something else."
                )
            return known
        if id in self._closed:
            raise ServerError(409, "session_lost", "The session was closed; it cannot begin again.")
        if self._shut:
            raise ServerError(503, "shutdown", "The server is stopping.", {"Retry-After": "5"})
        if len(self) >= self._limits.max_sessions and await self.sweep():
            return await self.open(id, fingerprint, make)  # others may have come meanwhile
        if len(self) >= self._limits.max_sessions:
            said = (
                f"All {self._limits.max_sessions} sessions are open. Close one, or wait: those that are "
                f"idle for {self._limits.idle_timeout_s:g} s are closed."
            )
            raise ServerError(429, "session_limit", said, {"Retry-After": "2"})
        session = Hosted(id, make(), fingerprint, self._clock())
        self._sessions[id] = session
        self._num_open += 1
        self._forget_finished()
        return session

    async def run(self, session: Hosted[HeldT], doing: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Do something in a session to its end, even if whoever asked is gone; it cannot expire then."""
        session.busy += 1
        task = asyncio.ensure_future(self._tracked(session, doing))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_retrieved)
            raise

    async def _tracked(self, session: Hosted[HeldT], doing: Awaitable[ResultT]) -> ResultT:
        try:
            return await doing
        finally:
            session.busy -= 1
            session.used_s = self._clock()

    async def finish(self, session: Hosted[HeldT]) -> None:
        """Give back what a session holds; what is remembered of it stays until it is closed or expires."""
        if session.finished:
            return
        session.finished = True
        try:
            await session.held.close()
        except Exception:
            _log.exception("closing the session %s failed", session.id[:8])
        finally:
            self._num_open -= 1

    async def close(self, id: str) -> bool:
        """End a session; returns whether it was there. Under this name none can begin afterwards."""
        session = self._sessions.pop(id, None)
        self._closed[id] = self._clock()
        self._closed.move_to_end(id)
        while len(self._closed) > self._limits.max_remembered:
            self._closed.popitem(last=False)
        if session is not None:
            await self.finish(session)
        return session is not None

    async def discard(self, id: str) -> None:
        """Undo the beginning of a session, which may be tried again."""
        session = self._sessions.pop(id, None)
        if session is not None:
            await self.finish(session)

    async def sweep(self) -> int:
        """Close what is idle or too old; returns how many."""
        now = self._clock()
        limits = self._limits
        over = [
            one.id
            for one in self._sessions.values()
            if (not one.busy and now - one.used_s > limits.idle_timeout_s)
            or now - one.begun_s > limits.max_age_s
        ]
        while self._closed:
            oldest = next(iter(self._closed))
            if now - self._closed[oldest] <= limits.remember_closed_s:
                break
            del self._closed[oldest]
        await asyncio.gather(*(self.close(id) for id in over))
        return len(over)

    async def start(self) -> None:
        """Begin to look for idle sessions."""
        if self._sweeper is None:
            self._sweeper = asyncio.ensure_future(self._sweep_for_ever())

    async def shut(self, patience_s: float = 10.0) -> int:
        """Let what is under way finish, close all; returns how many were open."""
        self._shut = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
            self._sweeper = None
        if self._running:
            await asyncio.wait(set(self._running), timeout=patience_s)
        left = len(self)
        await asyncio.gather(*(self.close(id) for id in list(self._sessions)))
        for task in list(self._running):
            task.cancel()
        return left

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._limits.sweep_every_s)
            try:
                await self.sweep()
            except Exception:
                _log.exception("looking for idle sessions failed")

    def _forget_finished(self) -> None:
        """Keep the memory of finished sessions bounded."""
        most = (1 + _MAX_FINISHED_PER_OPEN) * self._limits.max_sessions
        if len(self._sessions) <= most:
            return
        for id in [one.id for one in self._sessions.values() if one.finished][: len(self._sessions) - most]:
            self._closed[id] = self._clock()
            del self._sessions[id]


def _retrieved(task: asyncio.Task[Any]) -> None:
    """Nobody waits for the result any more; an exception in it is no surprise."""
    if not task.cancelled():
        task.exception()
