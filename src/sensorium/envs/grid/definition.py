"""Tasks of grid worlds, and who solves them."""

from collections.abc import Iterable, Iterator, Sequence

from sensorium.core import ConfigError, derive_seed
from sensorium.envs.base import Env, Task
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.envs.grid.config import GridConfig
from sensorium.envs.grid.env import GridEnv
from sensorium.envs.grid.world import GridWorld

_SEED_LIMIT = 2**31


class Grid(EnvDefinition[GridConfig]):
    """Worlds of MiniGrid and BabyAI."""

    name = "grid"
    summary = "walk through a grid world of MiniGrid or BabyAI, told in few words; a word is an action"
    config_type = GridConfig
    system = (
        "You walk through a grid world. You see what lies before you, then act once: with the tool `act`, or "
        "by answering with the bare name of an action. left and right turn you by a quarter, forward takes "
        "you one cell ahead; pickup, drop and toggle (open, close) act on the cell right ahead of you. "
        "Places are counted in cells: `2 left, 1 ahead`. What is behind you or behind walls is not seen; "
        "turn to look."
    )

    def make(self, config: GridConfig) -> Env:
        """A new environment; its world is built at the first reset."""
        return GridEnv(config)

    def tasks(
        self, config: GridConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of a split: as many worlds."""
        self.check_split(split)
        if seed < 0:
            raise ConfigError(f"The seed of tasks must be 0 or greater, found {seed}.")
        return list(self._tasks(config, (f"{split}-{seed}-{number}" for number in range(count))))

    def task(self, config: GridConfig, task_id: str) -> Task:
        """The task with this id."""
        return next(self._tasks(config, [task_id]))

    def expert(self, task: Task) -> Expert:
        """The shortest way, or what BabyAI's own player does.

        Raises:
            ConfigError: The task has none.
        """
        from sensorium.envs.grid.expert import grid_expert

        return grid_expert(task)

    def _tasks(self, config: GridConfig, ids: Iterable[str]) -> Iterator[Task]:
        world = GridWorld(config)  # what is to be done depends on the seed
        try:
            for task_id in ids:
                seed = self._world_seed(config, task_id)
                world.reset(seed)
                yield Task(
                    id=task_id,
                    env=self.name,
                    instruction=f"{world.mission[:1].upper()}{world.mission[1:]}.",
                    seed=seed,
                    data={"task": config.task, "seed": seed},
                    hidden={"config": config.model_dump(mode="json")},
                )
        finally:
            world.close()

    def _world_seed(self, config: GridConfig, task_id: str) -> int:
        split, _, rest = task_id.partition("-")
        seed, _, number = rest.partition("-")
        if split not in self.splits or not (seed.isdecimal() and number.isdecimal()):
            raise ConfigError(f"grid has no task {task_id!r}. Expected an id like train-0-17.")
        # Even seeds are for training: the splits have no world in common.
        drawn = derive_seed("grid", config.task, task_id) % (_SEED_LIMIT // 2)
        return 2 * drawn + (split == "test")
