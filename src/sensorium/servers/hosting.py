"""Episodes of one environment that a server hosts, whatever protocol they are played through."""

import asyncio
import json
import logging
from collections.abc import Coroutine, Mapping
from typing import Any

from starlette.requests import Request

from sensorium.core import ConfigError, EnvError, parse_config
from sensorium.envs.base import Action, Task
from sensorium.envs.definition import EnvDefinition, find_env
from sensorium.envs.episode import EpisodeError, Failure, Opening, Stage, Turn, Verdict
from sensorium.representations import ObservationPipeline, fetch_tool
from sensorium.rollouts.env_session import EnvSession
from sensorium.rollouts.known_tasks import KnownTasks
from sensorium.rollouts.row_names import OURS
from sensorium.rollouts.task_rows import row_task
from sensorium.servers.attendance import disconnected
from sensorium.servers.config import ResourcesConfig
from sensorium.servers.errors import ServerError
from sensorium.servers.identity import is_named_by_client, session_id, set_session
from sensorium.servers.media import MediaStore, pictures_of
from sensorium.servers.runtime import Runtime
from sensorium.servers.sessions import Hosted, SessionTable

_log = logging.getLogger(__name__)
_MAX_TOLD = 10


class HostedEpisode:
    """An episode with its verdict, which is kept when the environment is closed.

    Args:
        id: Of its session; pictures in its prompts belong to it.
        session: The episode.
        media: Where its pictures are.
    """

    def __init__(self, id: str, session: EnvSession, media: MediaStore) -> None:
        self._id, self._media = id, media
        self._session: EnvSession | None = session
        self._num_steps = 0
        self._last: tuple[int, Turn] | None = None
        self._verdict: Verdict | None = None

    @property
    def num_steps(self) -> int:
        """Actions so far."""
        return self._session.num_steps if self._session is not None else self._num_steps

    async def start(self, task: Task, seed: int | None) -> Opening:
        """Begin."""
        with pictures_of(self._id):
            return await self._open("seed").start(task, seed=seed)

    async def act(self, action: Action, step_id: int) -> Turn:
        """Act."""
        if self._last is not None and step_id == self._last[0]:
            return self._last[1]
        with pictures_of(self._id):
            turn = await self._open("agent").act(action, step_id)
        self._last = (step_id, turn)
        return turn

    async def verdict(self, answer: str = "") -> Verdict:
        """How it ended; what was said first stays."""
        if self._verdict is None:
            with pictures_of(self._id):
                self._verdict = await self._open("verification").verdict(answer)
        return self._verdict

    async def close(self) -> None:
        """Close the environment, drop the pictures, keep the verdict."""
        session, self._session = self._session, None
        if session is None:
            return
        self._num_steps = session.num_steps
        try:
            if self._verdict is None:
                self._verdict = await session.verdict()
        finally:
            await session.close()
            self._media.forget(self._id)

    def _open(self, stage: Stage) -> EnvSession:
        if self._session is None:
            raise EpisodeError(
                Failure(kind="episode_over", reason="The episode is over.", stage=stage, terminal=True)
            )
        return self._session


Session = Hosted[HostedEpisode]


class EpisodeHost:
    """Begins, plays and ends episodes of one environment.

    Args:
        config: The server's.
        name: Of the server; the environment's by default.
        runtime: What the servers of a process share.

    Raises:
        ConfigError: There is no such environment, or its settings do not fit.
    """

    def __init__(self, config: ResourcesConfig, name: str, runtime: Runtime) -> None:
        self.config, self.name, self.runtime = config, name, runtime
        self.definition: EnvDefinition[Any] = find_env(config.environment or name)
        settings = runtime.environment_settings(self.definition, config.config)
        self.env_config = parse_config(self.definition.config_type, settings)
        self.media = MediaStore(
            runtime.signer,
            lambda: config.public_url or runtime.url_of(name),
            lifetime_s=config.media_lifetime_s,
            max_mb=config.media_max_mb,
            prefix=f"{runtime.worker}-",
        )
        self._pipelines = _pipelines(config, self.media)
        self._known = KnownTasks(lambda task_id: self.definition.task(self.env_config, task_id))
        self.table: SessionTable[HostedEpisode] = SessionTable(config.sessions, prefix="s")
        schemas = self._known_tools()
        self.tools = [*schemas, fetch_tool()] if config.episode.fetch_tool else schemas
        """Tools that are known before any episode."""

    def _known_tools(self) -> list[dict[str, Any]]:
        try:
            return [dict(one) for one in self.definition.make(self.env_config).tools]
        except EnvError:  # there are none before a task is known
            return []

    async def shut(self) -> None:
        """Close all episodes, and record which were open."""
        tasks = [str(one.notes.get("task")) for one in self.table.open_sessions()]
        if tasks:
            shown = ", ".join(tasks[:_MAX_TOLD]) + (", ..." if len(tasks) > _MAX_TOLD else "")
            _log.warning("%s stops with %d open episodes: %s", self.name, len(tasks), shown)
        await self.table.shut()

    @property
    def replaces(self) -> bool:
        """Whether the observation config asks for whole prompts."""
        return self.config.context_management.drop_full_history

    async def task_of(self, row: Mapping[str, Any]) -> Task:
        """The task that a row names; making it may take its time, off the event loop.

        Raises:
            ServerError: There is none of this name (404), or the row may not bring its own (422).
        """
        ours = row.get(OURS)
        named: Any = ours.get("task") if isinstance(ours, Mapping) else None
        named = row.get("task_id") if named is None else named
        if not isinstance(named, str) and not self.config.accept_rows:
            said = (
                f"Name a task of {self.definition.name}: task_id, or sensorium.task in a row. "
                "Tasks that a row brings itself are taken with accept_rows: true."
            )
            raise ServerError(422, "task_invalid", said)
        try:
            if isinstance(named, str) and named in self._known:
                return row_task(row, self.definition.name, self._known)
            return await asyncio.to_thread(row_task, row, self.definition.name, self._known)
        except ConfigError as error:
            raise ServerError(404 if isinstance(named, str) else 422, "task_invalid", str(error)) from error

    async def begin_for(
        self,
        request: Request,
        row: Mapping[str, Any],
        *,
        seed: int | None,
        replaces: bool,
        id: str | None = None,
    ) -> tuple[Session, Opening]:
        """Begin an episode in the session that a request names, or in a new one; it is sent the cookie.

        Args:
            request: Names the session, unless its body does that.
            row: Names the task.
            seed: Of the environment.
            replaces: Whole prompts instead of a conversation.
            id: Of the session, where the body says it.

        Raises:
            ServerError: See `begin`.
            EpisodeError: See `begin`.
        """
        chosen = id if id is not None else session_id(request) if is_named_by_client(request) else None
        if chosen is None:
            task = await self.task_of(row)
            chosen = await self._of_cookie(session_id(request), _fingerprint(task, seed, replaces))
        session, opening = await self.begin(row, seed=seed, replaces=replaces, id=chosen)
        set_session(request, session.id)
        return session, opening

    async def begin(
        self, row: Mapping[str, Any], *, seed: int | None, replaces: bool, id: str | None = None
    ) -> tuple[Session, Opening]:
        """Begin an episode, or find it when it was begun before and nothing was done in it.

        Args:
            row: Names the task.
            seed: Of the environment.
            replaces: Whole prompts instead of a conversation.
            id: Of the session; a new one when None.

        Raises:
            ServerError: See `SessionTable.open` and `task_of`.
            EpisodeError: The environment cannot be set up.
        """
        task = await self.task_of(row)
        chosen = id or self.table.new_id()

        def make() -> HostedEpisode:
            env = self.definition.make(self.env_config)
            pipeline = self._pipelines[replaces]
            session = EnvSession(env, pipeline, self.config.episode, system=self.definition.system)
            return HostedEpisode(chosen, session, self.media)

        session = await self.table.open(chosen, _fingerprint(task, seed, replaces), make)
        session.notes["task"] = task.id
        try:
            return session, await self.table.run(session, session.held.start(task, seed))
        except EpisodeError:
            await self.table.discard(chosen)
            raise

    async def _of_cookie(self, id: str | None, fingerprint: str) -> str | None:
        """The session of a cookie when this is the same beginning again; else it ends, another one begins."""
        known = self.table.find(id)
        if known is None or id is None:
            return None
        if known.fingerprint == fingerprint and not known.held.num_steps and not known.finished:
            return id
        await self.table.close(id)
        return None

    def session(self, request: Request) -> Session:
        """The session that a request names.

        Raises:
            ServerError: There is none.
        """
        return self.table.get(session_id(request))

    async def act(self, session: Session, action: Action, step_id: int | None = None) -> Turn:
        """Act; an action without a number is the next one. With the episode its environment closes."""

        async def do() -> Turn:
            async with session.lock:
                number = session.held.num_steps if step_id is None else step_id
                turn = await session.held.act(action, number)
                if turn.done:
                    await session.held.verdict()
                    await self.table.finish(session)
                return turn

        return await self.table.run(session, do())

    async def attended(self, request: Request, session: Session, doing: Coroutine[Any, Any, Turn]) -> Turn:
        """Do something for a client; when it goes away meanwhile, and asked for that, its session ends."""
        if not session.notes.get("close_on_disconnect"):
            return await doing
        task = asyncio.ensure_future(doing)
        gone = asyncio.ensure_future(disconnected(request))
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            is_gone = not task.done()
            try:
                return await task
            finally:
                if is_gone:
                    await self.table.close(session.id)
        finally:
            gone.cancel()
            task.cancel()  # the wait for it; what was begun in the session is finished

    async def verdict(self, session: Session, answer: str = "") -> Verdict:
        """How an episode ended; afterwards its environment is closed."""

        async def do() -> Verdict:
            async with session.lock:
                verdict = await session.held.verdict(answer)
                await self.table.finish(session)
                return verdict

        return await self.table.run(session, do())


def _fingerprint(task: Task, seed: int | None, replaces: bool) -> str:
    """What a session was begun with."""
    return json.dumps([task.id, seed, replaces])


def _pipelines(config: ResourcesConfig, media: MediaStore) -> dict[bool, ObservationPipeline]:
    """Whether views are whole prompts -> the pipeline that makes them; they share caches."""
    base = ObservationPipeline(config.pipeline, serve=media.keep)
    return {
        drops: base
        if config.context_management.drop_full_history is drops
        else base.with_settings({"context_management": {"drop_full_history": drops}})
        for drops in (True, False)
    }
