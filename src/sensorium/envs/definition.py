"""What an environment's folder offers: how it is made, which tasks there are, who solves them."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, ClassVar, Generic, TypeVar

from sensorium.core import Config, ConfigError, unknown_name
from sensorium.envs.base import Action, Env, Step, Task
from sensorium.envs.hosted import HostedEnvs

ConfigT = TypeVar("ConfigT", bound=Config)
Expert = Generator[Action, Step, None]
"""A scripted solution: yields actions, is sent what came of each."""


class EnvDefinition(ABC, Generic[ConfigT]):
    """One kind of environment."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line."""
    config_type: type[ConfigT]
    system: ClassVar[str] = ""
    """A system prompt that says how to play."""
    splits: ClassVar[tuple[str, ...]] = ("train", "test")
    """No task is in two of them."""

    @abstractmethod
    def make(self, config: ConfigT) -> Env:
        """A new environment; cheap, whatever is slow waits for `Env.reset`."""

    @abstractmethod
    def tasks(
        self, config: ConfigT, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks with what is hidden.

        Args:
            config: As for `make`.
            split: One of `splits`.
            count: How many; fewer when there are no more.
            seed: The same gives the same tasks, and the first of more tasks are those of fewer.

        Raises:
            ConfigError: There is no such split.
        """

    @abstractmethod
    def task(self, config: ConfigT, task_id: str) -> Task:
        """The task with this id, with what is hidden.

        Raises:
            ConfigError: There is none.
        """

    @abstractmethod
    def expert(self, task: Task) -> Expert:
        """A scripted solution of a task, which is given with what is hidden."""

    def hosted(self, config: ConfigT, num_envs: int, settings: Mapping[str, Any], kind: str) -> HostedEnvs:
        """Environments that a client steps by arrays, for environments that have such observations.

        Args:
            config: As for `make`.
            num_envs: How many.
            settings: What the client wants otherwise; checked here, since anybody may be a client.
            kind: ``vector``, or ``worlds``: those of an embodied task, without limits and seeds of episodes.

        Raises:
            ConfigError: There are none, or the settings do not fit.
        """
        raise ConfigError(f"{self.name} is played with tools; it has no observations as arrays.")

    def check_split(self, split: str) -> None:
        """See that there is such a split.

        Raises:
            ConfigError: There is none.
        """
        if split not in self.splits:
            raise ConfigError(
                f"{self.name} has no split {split!r}. Expected one of: {', '.join(self.splits)}."
            )

    def prepare(self, config: ConfigT) -> None:  # nothing to prepare is the ordinary case
        """Fetch or build once what tasks need; slow, may be called again."""


ENVIRONMENTS: dict[str, str] = {
    "code_repair": "sensorium.envs.code_repair.definition:CodeRepair",
    "embodied": "sensorium.envs.playable.definition:Playable",
    "grid": "sensorium.envs.grid.definition:Grid",
    "letters": "sensorium.envs.letters.definition:Letters",
    "lookup": "sensorium.envs.lookup.definition:Lookup",
    "notebook": "sensorium.envs.notebook.definition:NotebookAnalysis",
    "one_call": "sensorium.envs.one_call.definition:OneCall",
    "visual_qa": "sensorium.envs.visual_qa.definition:VisualQA",
}
"""Name -> definition, imported on demand."""
ADAPTERS: dict[str, str] = {
    "aviary": "sensorium.interop.aviary:Aviary",
    "gymnasium": "sensorium.envs.playable.definition:Playable",
    "mcp": "sensorium.interop.mcp:WithMcpTools",
    "openenv": "sensorium.interop.openenv:OpenEnv",
}
"""As `ENVIRONMENTS`, of environments that others have: their settings say which."""
ENTRY_POINTS = "sensorium.environments"
"""Entry-point group under which other packages add definitions."""


def list_envs() -> dict[str, str]:
    """Name -> where its definition is, of all that are installed."""
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)} | ENVIRONMENTS


def find_env(name: str) -> EnvDefinition[Any]:
    """The definition of an environment.

    Args:
        name: e.g. ``notebook``; ``openenv`` and the like for what others serve (`ADAPTERS`); or
            ``my_package.envs:MyDefinition`` for a class of one's own.

    Raises:
        ConfigError: There is none.
    """
    known = ADAPTERS | list_envs()
    address = known.get(name, name)
    module, colon, attribute = address.partition(":")
    if not colon:
        raise unknown_name("environment", name, known)
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"The environment {name!r} cannot be loaded from {address}: {error}.") from error
    if not (isinstance(kind, type) and issubclass(kind, EnvDefinition)):
        raise ConfigError(f"{address} is {kind!r}. Expected a subclass of sensorium.envs.EnvDefinition.")
    return kind()
