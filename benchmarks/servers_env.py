"""The environments of `servers`, for our servers: what NeMo Gym's and OpenEnv's do on their side."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field
from servers_work import TOOL_PROMPT, picture

from sensorium.core import Config, ConfigError
from sensorium.envs.base import Action, Env, Task
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.envs.tool_env import ToolEnv
from sensorium.envs.tools import tool


class WeatherEnv(ToolEnv):
    """One tool with a constant answer; what is said at last ends the episode."""

    async def _reset(self, task: Task, seed: int) -> None:
        self._asked = False

    async def _observe(self) -> Any:
        return None

    async def _said(self, text: str) -> str:
        self.finish(1.0 if self._asked else 0.0)
        return ""

    @tool()
    async def get_weather(self, city: str) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        self._asked = True
        return f"The weather in {city} is cold."


class PicturesEnv(ToolEnv):
    """Shows another picture after every move; what is said at last ends the episode.

    Args:
        image_size: Pixels of each side.
    """

    def __init__(self, image_size: int) -> None:
        super().__init__()
        self._size = image_size

    async def _reset(self, task: Task, seed: int) -> None:
        self._number = int(task.data["number"])

    async def _observe(self) -> Any:
        pixels = np.frombuffer(picture(self._number % 256, self._size), np.uint8)
        return pixels.reshape(self._size, self._size, 3)

    async def _said(self, text: str) -> str:
        self.finish(0.0)
        return ""

    @tool()
    async def move(self, move: int) -> str:
        """Go on to the next picture.

        Args:
            move: Anything.
        """
        self._number += 1
        return ""


class NoConfig(Config):
    """Nothing to set."""


class PicturesConfig(Config):
    """How large the pictures are."""

    image_size: int = Field(default=64, ge=16)


class _Counted(EnvDefinition[Any]):
    """Tasks that differ in a number alone."""

    instruction = ""

    def tasks(self, config: Any, *, split: str = "train", count: int = 100, seed: int = 0) -> Sequence[Task]:
        """Tasks of a split."""
        return [self.task(config, f"{split}-{number}") for number in range(count)]

    def task(self, config: Any, task_id: str) -> Task:
        """The task with this id."""
        split, _, number = task_id.partition("-")
        if split not in self.splits or not number.isdigit():
            raise ConfigError(f"{self.name} has no task {task_id!r}. Expected an id like train-17.")
        data = {"number": int(number)}
        return Task(id=task_id, env=self.name, instruction=self.instruction, data=data)

    def expert(self, task: Task) -> Expert:
        """Say something."""
        yield Action(text="done")


class Weather(_Counted):
    """Episodes with one call of a tool."""

    name = "weather"
    summary = "one tool with a constant answer"
    config_type = NoConfig
    instruction = TOOL_PROMPT

    def make(self, config: NoConfig) -> Env:
        """A new environment."""
        return WeatherEnv()


class Pictures(_Counted):
    """Episodes of pictures."""

    name = "pictures"
    summary = "another picture after every move"
    config_type = PicturesConfig
    instruction = "How many bright blocks are there?"

    def make(self, config: PicturesConfig) -> Env:
        """A new environment."""
        return PicturesEnv(config.image_size)
