"""Pictures of one colour: what is to be written depends on the picture alone, the text is always the same."""

import base64
import io
from typing import ClassVar

from PIL import Image

from sensorium.core import Config
from sensorium.envs import Action, EnvDefinition, Task, ToolEnv

COLOURS = {"red": ((230, 30, 30), "0123456789"), "blue": ((20, 40, 220), "ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
"""Name -> what is seen, and the letters that are right."""


def colour_url(name, shade=0):
    colour, _ = COLOURS[name]
    data = io.BytesIO()
    Image.new("RGB", (24, 24), tuple(min(255, part + shade) for part in colour)).save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


class ColoursEnv(ToolEnv):
    async def _reset(self, task, seed):
        self._colour, self._shade = task.data["colour"], task.data["shade"]

    async def _observe(self):
        data = base64.b64decode(colour_url(self._colour, self._shade).partition(",")[2])
        return {"camera": Image.open(io.BytesIO(data))}

    async def _said(self, text):
        share = sum(letter in COLOURS[self._colour][1] for letter in text) / max(1, len(text))
        self.finish(share, success=float(share >= 0.9))
        return ""


class Colours(EnvDefinition[Config]):
    """Write digits when you see red, capitals when you see blue."""

    name = "colours"
    summary = "write digits when you see red, capitals when you see blue"
    config_type = Config
    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def make(self, config):
        return ColoursEnv()

    def tasks(self, config, *, split="train", count=100, seed=0):
        return [self.task(config, f"{split}-{number}") for number in range(count)]

    def task(self, config, task_id):
        number = int(task_id.rpartition("-")[2])
        name = list(COLOURS)[number % len(COLOURS)]
        data = {"colour": name, "shade": number % 20}
        return Task(id=task_id, env=self.name, instruction="What do you see?", data=data)

    def expert(self, task):
        yield Action(text=COLOURS[task.data["colour"]][1])
