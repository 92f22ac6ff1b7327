"""Tasks of the look-up environment and their solution."""

import random
from collections.abc import Sequence

from pydantic import Field

from sensorium.core import Config, ConfigError, derive_seed
from sensorium.envs.base import Action, Env, Task
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.envs.lookup.env import LookupEnv

_ITEMS = (
    "apple",
    "bolt",
    "cable",
    "drum",
    "easel",
    "flask",
    "gear",
    "hinge",
    "iron",
    "jar",
    "kettle",
    "lamp",
)
_ATTRIBUTES = ("price", "weight", "stock", "width")
_OPERATIONS = {"sum": "+", "difference": "-", "product": "*"}


class LookupConfig(Config):
    """How large the tables are."""

    num_items: int = Field(default=5, ge=2, le=len(_ITEMS))
    """Rows."""


class Lookup(EnvDefinition[LookupConfig]):
    """Questions about a table behind a tool."""

    name = "lookup"
    summary = "look facts up in a table, calculate with them, answer with a number"
    config_type = LookupConfig
    system = "Answer the question with the tools. Never guess a number: look it up, calculate, then submit."

    def make(self, config: LookupConfig) -> Env:
        """A new environment."""
        return LookupEnv()

    def tasks(
        self, config: LookupConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of a split."""
        self.check_split(split)
        return [self.task(config, f"{split}-{seed}-{number}") for number in range(count)]

    def task(self, config: LookupConfig, task_id: str) -> Task:
        """The task with this id."""
        split, *numbers = task_id.split("-")
        if split not in self.splits or len(numbers) != 2 or not all(n.isdigit() for n in numbers):
            raise ConfigError(f"lookup has no task {task_id!r}. Expected an id like train-0-17.")
        rng = random.Random(derive_seed("lookup", task_id))
        items = rng.sample(_ITEMS, config.num_items)
        facts = {item: {a: rng.randint(2, 99) for a in _ATTRIBUTES} for item in items}
        (one, other), attribute = rng.sample(items, 2), rng.choice(_ATTRIBUTES)
        operation = rng.choice(sorted(_OPERATIONS))
        a, b = facts[one][attribute], facts[other][attribute]
        answer = {"sum": a + b, "difference": a - b, "product": a * b}[operation]
        return Task(
            id=task_id,
            env=self.name,
            instruction=f"What is the {operation} of the {attribute} of {one} and that of {other}?",
            data={"facts": facts},
            hidden={"answer": answer, "items": [one, other], "attribute": attribute, "operation": operation},
        )

    def expert(self, task: Task) -> Expert:
        """Look both up, calculate, submit."""
        hidden = task.hidden
        found = []
        for item in hidden["items"]:
            step = yield Action.call("lookup", item=item, attribute=hidden["attribute"])
            found.append(step.info.results[0].text)
        sign = _OPERATIONS[hidden["operation"]]
        step = yield Action.call("calculate", expression=f"{found[0]} {sign} {found[1]}")
        yield Action.call("submit", answer=float(step.info.results[0].text))
