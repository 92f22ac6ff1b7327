"""Which tasks exist, what they offer, and who simulates them: a visible table, imported on demand."""

import importlib
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol, cast, runtime_checkable

from sensorium.core import ActionKind, ConfigError, unknown_name
from sensorium.envs.embodied.base import Backend
from sensorium.envs.embodied.config import EmbodiedEnvConfig

BACKENDS: dict[str, str] = {
    "arena": "sensorium.envs.embodied.arena.tasks",
    "doom": "sensorium.envs.embodied.doom.tasks",
}
"""Backend name -> module with `TASKS` (name -> TaskSpec) and `build(config, num_envs) -> Backend`."""

ENTRY_POINT_GROUP = "sensorium.backends"
"""Third parties add a backend through this entry-point group; the value is such a module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """What a task is about and what it can offer."""

    name: str
    """``backend/task``."""
    summary: str
    """One sentence: what the agent must do, and what ends the episode."""
    visual_obs: tuple[str, ...] = ()
    audio_obs: tuple[str, ...] = ()
    text_obs: tuple[str, ...] = ()
    proprio: bool = True
    action_spaces: tuple[ActionKind, ...] = tuple(ActionKind)
    needs: tuple[tuple[str, ...], ...] = ()
    """Senses that the task cannot be solved without; the sensors inside one tuple replace each other."""
    color_is_label: bool = False
    """The goal is named by its colour, so that a change of hue would mislabel it."""
    default_max_steps: int = 500
    """Step limit that the task was made for."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """Every sensor the task offers."""
        return self.visual_obs + self.audio_obs + self.text_obs + (("proprio",) if self.proprio else ())


@runtime_checkable
class BackendModule(Protocol):
    """What the modules named in `BACKENDS` hold."""

    TASKS: dict[str, TaskSpec]

    def build(self, config: EmbodiedEnvConfig, num_envs: int) -> Backend:
        """Build the backend; the config has been checked against the task."""
        ...


def backend_module(name: str) -> BackendModule:
    """Import the module of a backend.

    Raises:
        ConfigError: No backend has this name.
    """
    if name in BACKENDS:
        return cast(BackendModule, importlib.import_module(BACKENDS[name]))
    plugins = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if name in plugins:
        return cast(BackendModule, plugins[name].load())
    raise unknown_name("backend", name, [*BACKENDS, *plugins])


def list_tasks() -> dict[str, TaskSpec]:
    """Every task of every backend, by name. Needs none of the engines installed."""
    names = [*BACKENDS, *(entry.name for entry in entry_points(group=ENTRY_POINT_GROUP))]
    return {task.name: task for name in names for task in backend_module(name).TASKS.values()}


def find_task(name: str) -> TaskSpec:
    """Look up a task.

    Raises:
        ConfigError: No task has this name; names the nearest known ones.
    """
    backend = name.partition("/")[0]
    tasks = backend_module(backend).TASKS if backend in BACKENDS else list_tasks()
    if name not in tasks:
        raise unknown_name("task", name, tasks)
    return tasks[name]


def build_backend(config: EmbodiedEnvConfig, num_envs: int) -> Backend:
    """Check a config against its task and build the worlds, here or on the config's server.

    Raises:
        ConfigError: The task is unknown, or cannot give a sensor or action space; lists those it can.
        EnvError: The server cannot be reached, or does not let one in.
    """
    task = find_task(config.task)
    check_config(config, task)
    if config.server is not None:
        from sensorium.envs.remote.backend import RemoteBackend

        return RemoteBackend(config, num_envs)
    return backend_module(config.task.partition("/")[0]).build(config, num_envs)


def check_config(config: EmbodiedEnvConfig, task: TaskSpec) -> None:
    """Raise a ConfigError for a sensor, rate or action space that the task does not have."""
    asked = {
        "visual_obs": (config.visual_obs, task.visual_obs),
        "audio_obs": (config.audio_obs, task.audio_obs),
        "text_obs": (config.text_obs, task.text_obs),
    }
    for argument, (names, offered) in asked.items():
        for name in names:
            if name not in offered:
                elsewhere = next((other for other, (_, has) in asked.items() if name in has), None)
                hint = f" {name!r} belongs in {elsewhere}." if elsewhere else ""
                raise ConfigError(
                    f"Task {task.name} has no sensor {name!r} in {argument}; it offers "
                    f"{', '.join(offered) or 'none there'}.{hint}"
                )
        if len(set(names)) != len(names):
            raise ConfigError(f"{argument} names a sensor twice: {', '.join(names)}.")
    if config.proprio and not task.proprio:
        raise ConfigError(f"Task {task.name} has no proprio sensor; it offers {', '.join(task.sensors)}.")
    if not config.sensor_names:
        raise ConfigError(f"An agent needs a sense. Task {task.name} offers {', '.join(task.sensors)}.")
    if config.action_space not in task.action_spaces:
        offered_kinds = ", ".join(task.action_spaces)
        raise ConfigError(
            f"Task {task.name} has no {config.action_space} actions; it offers {offered_kinds}."
        )
    for name in config.sensor_rates_hz:
        if name not in config.sensor_names:
            raise ConfigError(
                f"sensor_rates_hz sets {name!r}, which is not among the sensors: "
                f"{', '.join(config.sensor_names)}."
            )
