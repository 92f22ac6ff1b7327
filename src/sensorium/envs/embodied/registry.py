"""Which tasks exist, what they offer, and who simulates them: a visible table, imported on demand."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Protocol, cast, runtime_checkable

from sensorium.core import ActionKind, ConfigError, unknown_name
from sensorium.envs.embodied.base import Backend
from sensorium.envs.embodied.config import EmbodiedEnvConfig

BACKENDS: dict[str, str] = {
    "arena": "sensorium.envs.embodied.arena.tasks",
    "doom": "sensorium.envs.embodied.doom.tasks",
    "gym": "sensorium.envs.embodied.gymnasium_env.tasks",
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

    TASKS: Mapping[str, TaskSpec]

    def build(self, config: EmbodiedEnvConfig, num_envs: int) -> Backend:
        """Build the backend; the config has been checked against the task."""
        ...


@runtime_checkable
class OpenBackendModule(BackendModule, Protocol):
    """A backend with more tasks than can be listed, or whose tasks depend on its options."""

    def task_spec(self, name: str, options: Mapping[str, Any]) -> TaskSpec:
        """What a task offers with these `backend_options`.

        Raises:
            ConfigError: There is no such task, or an option does not fit.
        """
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
    """Every task of every backend that can be listed, by name. Needs none of the engines installed."""
    names = [*BACKENDS, *(entry.name for entry in entry_points(group=ENTRY_POINT_GROUP))]
    return {task.name: task for name in names for task in backend_module(name).TASKS.values()}


def find_task(name: str, options: Mapping[str, Any] | None = None) -> TaskSpec:
    """Look up a task.

    Args:
        name: ``backend/task``.
        options: `backend_options`, on which what a task offers may depend.

    Raises:
        ConfigError: No task has this name; names the nearest known ones.
    """
    backend = name.partition("/")[0]
    module = backend_module(backend) if backend in BACKENDS else None
    if isinstance(module, OpenBackendModule):
        return module.task_spec(name, options or {})
    tasks = list_tasks() if module is None else module.TASKS
    if name not in tasks:
        raise unknown_name("task", name, tasks)
    return tasks[name]


def build_backend(config: EmbodiedEnvConfig, num_envs: int) -> Backend:
    """Check a config against its task and build the worlds, here or on the config's server.

    Raises:
        ConfigError: The task is unknown, or cannot give a sensor or action space; lists those it can.
        EnvError: The server cannot be reached, or does not let one in.
    """
    task = find_task(config.task, config.backend_options)
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
                    f"{', '.join(offered) or 'none there'}.{hint or _how_to_ask(task, offered)}"
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
            f"Task {task.name} has no {config.action_space} actions; it offers {offered_kinds}: "
            f"--env.action_space {task.action_spaces[0]}"
        )
    for name in config.sensor_rates_hz:
        if name not in config.sensor_names:
            raise ConfigError(
                f"sensor_rates_hz sets {name!r}, which is not among the sensors: "
                f"{', '.join(config.sensor_names)}."
            )


def _how_to_ask(task: TaskSpec, offered: tuple[str, ...]) -> str:
    """Where an argument can name nothing: the sensors there are, and the flags that ask for them."""
    if offered or not task.sensors:
        return ""
    asked = {
        "visual_obs": f"[{', '.join(task.visual_obs)}]",
        "audio_obs": f"[{', '.join(task.audio_obs)}]" if task.audio_obs else "",
        "text_obs": f"[{', '.join(task.text_obs)}]" if task.text_obs else "",
        "proprio": "true" if task.proprio else "",
    }
    flags = " ".join(f"--env.{name} {value}" for name, value in asked.items() if value)
    return f" Its sensors are {', '.join(task.sensors)}; ask for them with: {flags}"
