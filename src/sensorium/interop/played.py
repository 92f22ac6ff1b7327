"""Tasks of an environment and conversations about them, for trainers of other libraries."""

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from sensorium.core import Config, ConfigError, parse_config
from sensorium.envs.base import Task
from sensorium.envs.definition import EnvDefinition, find_env
from sensorium.interop.loop_thread import LoopThread
from sensorium.representations import ObservationPipeline
from sensorium.representations.config import PipelineConfig
from sensorium.rollouts.config import EpisodeConfig
from sensorium.rollouts.env_session import EnvSession


class PlayedConfig(Config):
    """Which tasks another library's trainer plays, and how they are shown."""

    environment: str = Field(min_length=1)
    """Its name, or ``package.module:Definition``."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Settings of the environment."""
    split: str = "train"
    """Tasks are of this split."""
    num_tasks: int = Field(default=256, ge=1)
    """How many; fewer when the environment has no more."""
    task_seed: int = 0
    """Of the choice of tasks."""
    system: str | None = None
    """System prompt; None: the environment's."""
    pipeline: PipelineConfig = PipelineConfig()
    """What the agent is shown; views are appended to the conversation, since these trainers keep it."""
    episode: EpisodeConfig = EpisodeConfig(fetch_tool=False)
    """Limits. With ``fetch_tool`` the agent has one tool more than the environment declares."""


class Played:
    """One environment as others play it.

    Args:
        config: Which, and how it is shown.

    Raises:
        ConfigError: There is no such environment, its settings do not fit, or it has no such split.
    """

    def __init__(self, config: PlayedConfig) -> None:
        self.config = config
        self.definition: EnvDefinition[Any] = find_env(config.environment)
        self.settings = parse_config(self.definition.config_type, config.config)
        self.definition.check_split(config.split)
        self.system = self.definition.system if config.system is None else config.system
        pipeline = ObservationPipeline(config.pipeline)
        self._pipeline = pipeline.with_settings({"context_management": {"drop_full_history": False}})
        self._tasks: Sequence[Task] | None = None
        self._tools: tuple[dict[str, Any], ...] | None = None

    @property
    def tasks(self) -> Sequence[Task]:
        """All tasks, with what is hidden.

        Raises:
            ConfigError: There are none.
        """
        if self._tasks is None:
            found = self.definition.tasks(
                self.settings,
                split=self.config.split,
                count=self.config.num_tasks,
                seed=self.config.task_seed,
            )
            if not found:
                raise ConfigError(f"{self.config.environment} has no tasks in the split {self.config.split}.")
            self._tasks = found
        return self._tasks

    def task(self, task_id: str) -> Task:
        """The task with this id, with what is hidden.

        Raises:
            ConfigError: There is none.
        """
        return self.definition.task(self.settings, task_id)

    def session(self) -> EnvSession:
        """A new episode; its system prompt is the caller's business."""
        return EnvSession(self.definition.make(self.settings), self._pipeline, self.config.episode)

    def tools(self) -> tuple[dict[str, Any], ...]:
        """Tools in the chat-completions form, in the order of their declaration.

        The first task is begun to learn them, since many environments know them only then.

        Raises:
            EpisodeError: It cannot be begun.
        """
        if self._tools is None:
            loop = LoopThread("sensorium-tools")
            try:
                self._tools = loop.run(self._learn())
            finally:
                loop.close()
        return self._tools

    async def _learn(self) -> tuple[dict[str, Any], ...]:
        session = self.session()
        try:
            task = await asyncio.to_thread(lambda: self.tasks[0])
            return (await session.start(task)).tools
        finally:
            await session.close()
