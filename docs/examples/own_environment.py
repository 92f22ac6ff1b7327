"""An environment of one's own: an archive that is searched for a number."""

import asyncio
import random
from typing import Any

from sensorium.core import Config
from sensorium.envs import Action, Env, EnvDefinition, Expert, Task, ToolEnv, ToolError, tool
from sensorium.envs.validation import validate_tasks


class ArchiveEnv(ToolEnv):
    """Boxes with letters; one of them names the price."""

    async def _reset(self, task: Task, seed: int) -> None:
        self.boxes: dict[str, str] = dict(task.data["boxes"])
        self.opened: dict[str, str] = {}

    async def _observe(self) -> Any:
        return {f"{name}.txt": text for name, text in self.opened.items()} or None

    @tool()
    async def open_box(self, name: str) -> str:
        """Open a box; what is in it can be read from then on.

        Args:
            name: Of the box, e.g. box-3.
        """
        if name not in self.boxes:
            raise ToolError(f"there is no {name}; boxes: {', '.join(self.boxes)}")
        self.opened[name] = self.boxes[name]
        return f"{name} is open"

    @tool()
    async def answer(self, price: int) -> str:
        """Give the final answer.

        Args:
            price: In euros.
        """
        self.finish(1.0 if price == self.task.hidden["price"] else 0.0)
        return "thank you"


class Archive(EnvDefinition[Config]):
    """Find the price of a lamp."""

    name = "archive"
    summary = "find a price in one of several boxes"
    config_type = Config
    system = "Open boxes until you know the price, then answer."

    def make(self, config: Config) -> Env:
        """A new environment."""
        return ArchiveEnv()

    def tasks(self, config: Config, *, split: str = "train", count: int = 100, seed: int = 0) -> list[Task]:
        """Tasks of a split."""
        return [self.task(config, f"{split}-{seed}-{number}") for number in range(count)]

    def task(self, config: Config, task_id: str) -> Task:
        """The task with this id: everything in it follows from the id."""
        rng = random.Random(task_id)
        price, right = rng.randint(10, 99), rng.randrange(5)
        letters = {f"box-{n}": "Dear aunt, the weather is fine." for n in range(5)}
        letters[f"box-{right}"] = f"The lamp was sold for {price} euros."
        hidden = {"price": price, "box": f"box-{right}"}
        question = "What did the lamp cost?"
        return Task(id=task_id, env=self.name, instruction=question, data={"boxes": letters}, hidden=hidden)

    def expert(self, task: Task) -> Expert:
        """The way to solve it: tells that it can be solved."""
        yield Action.call("open_box", name=task.hidden["box"])
        yield Action.call("answer", price=task.hidden["price"])


if __name__ == "__main__":
    archive = Archive()
    tasks = archive.tasks(Config(), count=5)
    attempts = asyncio.run(validate_tasks(archive, Config(), tasks))
    print(f"{sum(attempt.is_valid for attempt in attempts)} of {len(attempts)} tasks are valid")
