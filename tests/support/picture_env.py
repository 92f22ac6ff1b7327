"""An environment that shows pictures, breaks, and dawdles as its tests ask."""

import asyncio
import base64
import io
from typing import ClassVar

from PIL import Image

from sensorium.core import Config, ConfigError
from sensorium.envs import Action, EnvDefinition, Task, ToolEnv, tool
from sensorium.llm.messages import ImageBlock, TextBlock


class PicturesConfig(Config):
    closing_fails: bool = False


def picture(number, size=(48, 32)):
    image = Image.new("RGB", size, (40 * number % 256, 90, 200))
    image.putpixel((number % size[0], 3), (255, 255, 255))
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


class PicturesEnv(ToolEnv):
    open: ClassVar[set] = set()
    steps: ClassVar[list] = []

    def __init__(self, config):
        super().__init__()
        self._config = config

    async def _reset(self, task, seed):
        self._number = 0
        type(self).open.add(id(self))

    async def _observe(self):
        return {"camera": Image.open(io.BytesIO(picture(self._number))), "count": f"step {self._number}"}

    @tool()
    async def look(self, closer: bool = False) -> list:
        """Look.

        Args:
            closer: Whether to go nearer.
        """
        self._number += 1
        data = base64.b64encode(picture(self._number + 100)).decode()
        block = ImageBlock(url=f"data:image/png;base64,{data}", width=48, height=32)
        return [TextBlock(text=f"seen {self._number}"), block]

    @tool(timeout_s=30)
    async def dawdle(self, seconds: float) -> str:
        """Take time.

        Args:
            seconds: How long.
        """
        await asyncio.sleep(seconds)
        self._number += 1
        type(self).steps.append(self._number)
        return "done"

    @tool()
    async def crash(self) -> str:
        """Break."""
        raise KeyError("/secret/path of the host")

    @tool()
    async def answer(self, text: str) -> str:
        """Answer.

        Args:
            text: The answer.
        """
        self.finish(1.0 if text == self.task.hidden["answer"] else 0.0, looks=float(self._number))
        return "submitted"

    async def _close(self):
        type(self).open.discard(id(self))
        if self._config.closing_fails:
            raise OSError("cannot close")


class Pictures(EnvDefinition[PicturesConfig]):
    name = "pictures"
    summary = "pictures for tests"
    config_type = PicturesConfig
    system = "Look, then answer."

    def make(self, config):
        return PicturesEnv(config)

    def tasks(self, config, *, split="train", count=100, seed=0):
        return [self.task(config, f"{split}-{n}") for n in range(count)]

    def task(self, config, task_id):
        if not task_id.startswith(("train-", "test-")):
            raise ConfigError(f"pictures has no task {task_id!r}")
        return Task(
            id=task_id,
            env=self.name,
            instruction="What do you see?",
            hidden={"answer": f"the-hidden-answer-{task_id}"},
        )

    def expert(self, task):
        yield Action.call("answer", text=task.hidden["answer"])
