"""Tasks of the one-call environment and their solution."""

import random
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from sensorium.core import Config, ConfigError, derive_seed
from sensorium.envs.base import Action, Env, Task
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.envs.one_call.env import OneCallEnv

Kind = Literal["arithmetic", "facts"]

_ITEMS: dict[str, tuple[str, ...]] = {
    "train": (
        "apple", "bolt", "cable", "drum", "easel", "flask", "gear", "hinge", "jar", "kettle", "ladder",
        "mirror", "needle", "oven", "pillow", "rope", "saddle", "stool", "violin", "wagon",
    ),
    "test": (
        "anchor", "basket", "candle", "desk", "engine", "fan", "guitar", "hammer", "iron", "jacket", "knife",
        "lamp", "magnet", "nail", "organ", "pencil", "razor", "spoon", "tent", "umbrella",
    ),
}  # fmt: skip
_ATTRIBUTES = ("price", "weight", "stock", "width", "height", "age")
_ASKED = (
    "What is the {attribute} of the {item}?",
    "Tell me the {attribute} of the {item}.",
    "Find the {attribute} of the {item}.",
)
_OPERATIONS: dict[str, tuple[str, ...]] = {
    "+": ("What is {a} plus {b}?", "What is the sum of {a} and {b}?", "Add {a} and {b}."),
    "-": ("What is {a} minus {b}?", "Subtract {b} from {a}."),
    "*": ("What is {a} times {b}?", "What is the product of {a} and {b}?", "Multiply {a} by {b}."),
}
_SMALLEST, _LARGEST = 11, 999
_TABLE_ITEMS = 4


class OneCallConfig(Config):
    """What is asked."""

    kinds: tuple[Kind, ...] = Field(default=("arithmetic", "facts"), min_length=1)
    """``arithmetic``: two numbers, to be calculated with. ``facts``: an attribute of an item, to be looked
    up."""


class OneCall(EnvDefinition[OneCallConfig]):
    """Choose the tool, write the call, copy the arguments; the test has other items and other numbers."""

    name = "one_call"
    summary = "answer a question with one call of the right tool, with the right arguments"
    config_type = OneCallConfig

    def make(self, config: OneCallConfig) -> Env:
        """A new environment."""
        return OneCallEnv()

    def tasks(
        self, config: OneCallConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of a split, of each kind in turn."""
        self.check_split(split)
        kinds = [config.kinds[number % len(config.kinds)] for number in range(count)]
        return [self.task(config, f"{split}-{kind}-{seed}-{number}") for number, kind in enumerate(kinds)]

    def task(self, config: OneCallConfig, task_id: str) -> Task:
        """The task with this id."""
        split, _, rest = task_id.partition("-")
        kind, _, numbers = rest.partition("-")
        seed, _, number = numbers.partition("-")
        rng = random.Random(derive_seed("one_call", task_id))
        match kind:
            case "arithmetic" if split in self.splits and seed.isdigit() and number.isdigit():
                return self._task(task_id, {}, *_arithmetic(rng, split))
            case "facts" if split in self.splits and seed.isdigit() and number.isdigit():
                items = rng.sample(_ITEMS[split], _TABLE_ITEMS)
                facts = {item: {a: rng.randint(2, 999) for a in _ATTRIBUTES} for item in items}
                return self._task(task_id, facts, *_fact(rng, facts))
        raise ConfigError(f"one_call has no task {task_id!r}. Expected an id like train-facts-0-17.")

    def _task(self, task_id: str, facts: dict[str, Any], asked: str, hidden: dict[str, Any]) -> Task:
        return Task(id=task_id, env=self.name, instruction=asked, data={"facts": facts}, hidden=hidden)

    def expert(self, task: Task) -> Expert:
        """The call."""
        yield Action.call(task.hidden["tool"], **task.hidden["arguments"])


def _arithmetic(rng: random.Random, split: str) -> tuple[str, dict[str, Any]]:
    """A question and its solution; a quarter of the first numbers is kept for the test."""
    a, b = rng.randint(_SMALLEST, _LARGEST), rng.randint(_SMALLEST, _LARGEST)
    while (a % 4 == 3) != (split == "test"):
        a = rng.randint(_SMALLEST, _LARGEST)
    operation = rng.choice(sorted(_OPERATIONS))
    asked = rng.choice(_OPERATIONS[operation]).format(a=a, b=b)
    answer = {"+": a + b, "-": a - b, "*": a * b}[operation]
    call = {"expression": f"{a} {operation} {b}"}
    return asked, {"tool": "calculate", "arguments": call, "answer": answer}


def _fact(rng: random.Random, facts: dict[str, dict[str, int]]) -> tuple[str, dict[str, Any]]:
    """A question and its solution."""
    item, attribute = rng.choice(sorted(facts)), rng.choice(_ATTRIBUTES)
    asked = rng.choice(_ASKED).format(item=item, attribute=attribute)
    call = {"item": item, "attribute": attribute}
    return asked, {"tool": "lookup", "arguments": call, "answer": facts[item][attribute]}
