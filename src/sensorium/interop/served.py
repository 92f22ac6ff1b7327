"""Environments of ours as other clients play them: tasks by number, episodes that begin again."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from pydantic import Field

from sensorium.core import ConfigError, parse_config
from sensorium.envs.base import Action, Task
from sensorium.envs.definition import EnvDefinition, find_env
from sensorium.envs.episode import EpisodeError, Failure, Opening, Turn
from sensorium.representations import ObservationPipeline
from sensorium.rollouts.env_session import EnvSession
from sensorium.servers.config import HostingConfig
from sensorium.servers.errors import ServerError
from sensorium.servers.runtime import Runtime
from sensorium.servers.sessions import Hosted, SessionTable


class ServedConfig(HostingConfig):
    """Hosts episodes for clients of another library; views are what is appended to a conversation."""

    environment: str = Field(min_length=1)
    """Its name, or ``package.module:Definition``."""
    split: str = "train"
    """Tasks that clients get by number are of this split."""
    num_tasks: int = Field(default=100, ge=1)
    """How many of them; fewer when the environment has no more."""
    task_seed: int = 0
    """Of the choice of tasks."""


class Play:
    """What one client plays: a task, begun as often as it likes.

    Args:
        make: A new episode.
        task: The problem.
    """

    def __init__(self, make: Callable[[], EnvSession], task: Task) -> None:
        self._make = make
        self.task = task
        self._session: EnvSession | None = None

    @property
    def num_steps(self) -> int:
        """Actions of the present episode."""
        return self._session.num_steps if self._session is not None else 0

    async def reset(self, task: Task | None = None, seed: int | None = None) -> Opening:
        """Begin, or begin again; what was open before is closed."""
        await self.close()
        self.task = task or self.task
        session = self._session = self._make()
        try:
            return await session.start(self.task, seed=seed)
        except EpisodeError:
            await self.close()
            raise

    async def act(self, action: Action) -> Turn:
        """Act; with its end the environment is given back.

        Raises:
            EpisodeError: It is over, was not begun, or broke; also at the end of an episode in which a tool
                broke, since what it earned does not count.
        """
        session = self._session
        if session is None:
            raise EpisodeError(
                Failure(kind="session_lost", reason="No episode was begun; reset comes first.", terminal=True)
            )
        turn = await session.act(action, session.num_steps)
        if turn.done:
            verdict = await session.verdict()
            await session.close()
            if verdict.failure is not None:
                raise EpisodeError(verdict.failure)
        return turn

    async def close(self) -> None:
        """Give the environment back."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class ServedTasks:
    """The tasks of an environment, and those who play them.

    Args:
        config: Which environment, and limits.
        runtime: What the servers of a process share.

    Raises:
        ConfigError: There is no such environment, or its settings do not fit.
    """

    def __init__(self, config: ServedConfig, runtime: Runtime | None = None) -> None:
        self.config = config
        self.definition: EnvDefinition[Any] = find_env(config.environment)
        settings = (runtime or Runtime()).environment_settings(self.definition, config.config)
        self.env_config = parse_config(self.definition.config_type, settings)
        if config.split not in self.definition.splits:
            known = ", ".join(self.definition.splits)
            raise ConfigError(f"{config.environment} has no split {config.split!r}. Known: {known}.")
        base = ObservationPipeline(config.pipeline)
        self._pipeline = base.with_settings({"context_management": {"drop_full_history": False}})
        self.table: SessionTable[Play] = SessionTable(config.sessions)
        self._tasks: Sequence[Task] | None = None
        self._learning = asyncio.Lock()
        self._drawn = 0

    async def tasks(self) -> Sequence[Task]:
        """All tasks that have numbers."""
        async with self._learning:
            if self._tasks is None:
                self._tasks = await asyncio.to_thread(
                    self.definition.tasks,
                    self.env_config,
                    split=self.config.split,
                    count=self.config.num_tasks,
                    seed=self.config.task_seed,
                )
        return self._tasks

    async def task(self, number: int | None = None, id: str | None = None) -> Task:
        """The task with a number or an id; without either, one after another.

        Raises:
            ServerError: There is none (404).
        """
        if id is not None:
            try:
                return await asyncio.to_thread(self.definition.task, self.env_config, id)
            except ConfigError as error:
                raise ServerError(404, "task_invalid", str(error)) from error
        known = await self.tasks()
        if number is None:
            number = self._drawn % max(1, len(known))
            self._drawn += 1
        if not 0 <= number < len(known):
            raise ServerError(404, "task_invalid", f"There is no task {number}; there are {len(known)}.")
        return known[number]

    async def open(self, task: Task, id: str | None = None) -> Hosted[Play]:
        """A place for a client.

        Raises:
            ServerError: There are too many, or the name is taken.
        """
        id = id or self.table.new_id()
        return await self.table.open(id, json.dumps([task.id]), lambda: Play(self._session, task))

    async def run(self, session: Hosted[Play], doing: Callable[[Play], Coroutine[Any, Any, Any]]) -> Any:
        """Do something in a session, one after another, to its end."""

        async def do() -> Any:
            async with session.lock:
                return await doing(session.held)

        return await self.table.run(session, do())

    def _session(self) -> EnvSession:
        env = self.definition.make(self.env_config)
        return EnvSession(env, self._pipeline, self.config.episode, system=self.definition.system)
