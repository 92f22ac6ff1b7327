"""Write letters of one kind: a task on which a tiny model can be seen to learn within seconds."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from sensorium.core import Config, ConfigError
from sensorium.envs.base import Action, Env, Task
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.envs.tool_env import ToolEnv

_KINDS = {"vowels": "aeiou", "digits": "0123456789", "capitals": "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_SOLVED = 0.9


class LettersEnv(ToolEnv):
    """One plain answer; the reward is the share of its characters that are of the right kind."""

    async def _reset(self, task: Task, seed: int) -> None:
        self._wanted = set(task.data["letters"])

    async def _observe(self) -> Any:
        return None

    async def _said(self, text: str) -> str:
        share = sum(letter in self._wanted for letter in text) / max(1, len(text))
        self.finish(share, success=float(share >= _SOLVED))
        return ""


class LettersConfig(Config):
    """Which kinds of letters are asked for."""

    kinds: tuple[str, ...] = Field(default=("vowels",), min_length=1)
    """Of vowels, digits and capitals."""


class Letters(EnvDefinition[LettersConfig]):
    """Write letters of the kind that is asked for."""

    name = "letters"
    summary = "write letters of one kind; a toy that a tiny model learns within seconds"
    config_type = LettersConfig

    def make(self, config: LettersConfig) -> Env:
        """A new environment."""
        return LettersEnv()

    def tasks(
        self, config: LettersConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """One task for each kind, numbered on as often as `count` asks."""
        self.check_split(split)
        kinds = [config.kinds[number % len(config.kinds)] for number in range(count)]
        return [self.task(config, f"{split}-{kind}-{number}") for number, kind in enumerate(kinds)]

    def task(self, config: LettersConfig, task_id: str) -> Task:
        """The task with this id."""
        split, _, rest = task_id.partition("-")
        kind, _, number = rest.partition("-")
        if split not in self.splits or kind not in _KINDS or not number.isdigit():
            raise ConfigError(
                f"letters has no task {task_id!r}. Expected an id like train-vowels-0; kinds are "
                f"{', '.join(_KINDS)}."
            )
        instruction = f"Write {kind}."
        return Task(id=task_id, env=self.name, instruction=instruction, data={"letters": _KINDS[kind]})

    def expert(self, task: Task) -> Expert:
        """Write them."""
        yield Action(text=task.data["letters"])
