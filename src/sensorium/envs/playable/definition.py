"""Tasks of worlds that are played, and who solves them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sensorium.core import ConfigError, derive_seed
from sensorium.envs.base import Env, Task
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.envs.hosted import HostedEnvs
from sensorium.envs.playable.config import PlayableConfig
from sensorium.envs.playable.env import PlayableEnv
from sensorium.envs.playable.world import World

_SEED_LIMIT = 2**31  # engines take 32 bits with a sign


class Playable(EnvDefinition[PlayableConfig]):
    """Embodied tasks and Gymnasium environments as tasks of language models."""

    name = "embodied"
    summary = "play an embodied task or any Gymnasium environment: see, hear, act with a tool"
    config_type = PlayableConfig
    system = (
        "You act in a world with the tool `act`. After each call you perceive the world anew. Look at what "
        "has changed, decide, and act again until the task is solved. Use `repeat` to do the same "
        "several times."
    )
    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def make(self, config: PlayableConfig) -> Env:
        """A new environment; its world is built at the first reset."""
        rewarded = config.reward
        if rewarded == "auto":
            rewarded = "success" if is_embodied(config.task) else "env"
        config = config.model_copy(update={"reward": rewarded})
        return PlayableEnv(config, lambda: build_world(config))

    def hosted(
        self, config: PlayableConfig, num_envs: int, settings: Mapping[str, Any], kind: str
    ) -> HostedEnvs:
        """Worlds for policies of clients; see `EnvDefinition.hosted`."""
        from sensorium.envs.playable.arrays import hosted_envs

        return hosted_envs(config, num_envs, settings, kind)

    def tasks(
        self, config: PlayableConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of a split: as many worlds of the configured task."""
        self.check_split(split)
        if seed < 0:
            raise ConfigError(f"The seed of tasks must be 0 or greater, found {seed}.")
        instruction = _instruction(config)
        return [self._task(config, f"{split}-{seed}-{number}", instruction) for number in range(count)]

    def task(self, config: PlayableConfig, task_id: str) -> Task:
        """The task with this id."""
        return self._task(config, task_id, _instruction(config))

    def expert(self, task: Task) -> Expert:
        """A scripted solution; there is one for the tasks of the arena.

        Raises:
            ConfigError: The task has none.
        """
        from sensorium.envs.playable.expert import arena_expert

        return arena_expert(task)

    def _task(self, config: PlayableConfig, task_id: str, instruction: str) -> Task:
        split, _, rest = task_id.partition("-")
        seed, _, number = rest.partition("-")
        if split not in self.splits or not (seed.isdecimal() and number.isdecimal()):
            raise ConfigError(f"embodied has no task {task_id!r}. Expected an id like train-0-17.")
        # Even seeds are for training: the splits have no world in common.
        drawn = derive_seed("embodied", config.task, task_id) % (_SEED_LIMIT // 2)
        world_seed = 2 * drawn + (split == "test")
        return Task(
            id=task_id,
            env=self.name,
            instruction=instruction,
            seed=world_seed,
            data={"task": config.task, "seed": world_seed},
            hidden={"config": config.model_dump(mode="json")},
        )


def is_embodied(task: str) -> bool:
    """Whether a name is one of our own tasks."""
    from sensorium.envs.embodied.registry import list_tasks

    return task in list_tasks()


def build_world(config: PlayableConfig) -> World:
    """The world that a config names."""
    if is_embodied(config.task):
        from sensorium.envs.playable.embodied_world import EmbodiedWorld

        return EmbodiedWorld(config)
    from sensorium.envs.playable.gym_world import GymWorld, known_gym

    known_gym(config.task)
    return GymWorld(config)


def _instruction(config: PlayableConfig) -> str:
    """What the agent is asked.

    Raises:
        ConfigError: There is no such task, or it cannot give a sense that was asked for.
    """
    if is_embodied(config.task):
        from sensorium.envs.embodied.registry import check_config, find_task
        from sensorium.envs.playable.embodied_world import embodied_config

        spec = find_task(config.task)
        settings = embodied_config(config)
        check_config(settings, spec)
        told = [name for name in ("instruction", "speech") if name in settings.sensor_names]
        where = f" What to do is told by `{'` or `'.join(told)}`." if told else ""
        return config.instruction or f"{spec.summary}{where}"
    from sensorium.envs.playable.gym_world import known_gym, summary_of

    known_gym(config.task)
    return config.instruction or summary_of(config.task) or f"Get as much reward as you can in {config.task}."
