"""From a run's directory to its policy and the worlds to judge it in."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorium.core import ConfigError, RunDirectoryError, unknown_name
from sensorium.envs.embodied import MultiModalVectorEnv
from sensorium.policies.embodied.inputs import sensor_inputs
from sensorium.trainers.build import Agent, build_agent, build_env
from sensorium.trainers.checkpoint import load_policy
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.run_directory import read_config
from sensorium.trainers.tensor_files import latest_checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRun:
    """The newest policy of a run, and worlds of its task."""

    path: Path
    config: TrainConfig
    agent: Agent
    state: Mapping[str, Any]
    """What the checkpoint's `state.json` holds."""
    env: MultiModalVectorEnv

    @property
    def env_steps(self) -> int:
        """Training steps of the policy."""
        return int(self.state["counters"]["env_steps"])


@contextmanager
def loaded_run(path: Path, episodes: int | None = None) -> Iterator[LoadedRun]:
    """Build the worlds of a run once and load its newest policy; the worlds are closed at the end.

    Args:
        path: The run's directory.
        episodes: Wanted episodes; there are at most as many worlds. None: those of the run's settings.

    Raises:
        RunDirectoryError: `path` is no run, or has no checkpoint.
        CheckpointError: The checkpoint is corrupt or of another architecture.
    """
    config = read_config(path)
    checkpoint = latest_checkpoint(path)
    if checkpoint is None:
        raise RunDirectoryError(f"{path} has no checkpoint yet. Train it with --on-existing resume.")
    evaluation = config.evaluation
    env = build_env(config, min(evaluation.num_envs, episodes or evaluation.episodes))
    try:
        agent = build_agent(config, env)
        state = load_policy(checkpoint, agent.policy)
        agent.policy.eval()
        yield LoadedRun(path=path, config=config, agent=agent, state=state, env=env)
    finally:
        env.close()


def load_agent(run: Path) -> tuple[TrainConfig, Agent, Mapping[str, Any]]:
    """Load the newest policy of a run, without worlds.

    Returns:
        The run's config, the agent, and what the checkpoint's `state.json` holds.

    Raises:
        RunDirectoryError: `run` is no run, or has no checkpoint.
        CheckpointError: The checkpoint is corrupt or of another architecture.
    """
    with loaded_run(run, episodes=1) as loaded:
        return loaded.config, loaded.agent, loaded.state


@contextmanager
def shifted_worlds(run: LoadedRun, changes: Mapping[str, Any]) -> Iterator[MultiModalVectorEnv]:
    """Worlds of the run's task with other settings, as many as `run.env` has.

    Args:
        run: The run.
        changes: Laid over the run's `env` settings, e.g. ``{"backend_options": {"colors": ["grey"]}}``.

    Raises:
        ConfigError: A setting does not exist, or the policy's senses or actions would not fit.
    """
    config = run.config.updated({"env": changes})
    env = build_env(config, run.env.num_envs)
    try:
        _check_same_shape(run, env)
        yield env
    finally:
        env.close()


def shift_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes inside `env`, from nested settings such as ``{"env": {...}}``.

    Raises:
        ConfigError: A setting is none of the environment.
    """
    for section in changes:
        if section != "env":
            raise ConfigError(
                f"An evaluation changes only the world: found a setting of {section!r}, expected flags such "
                f"as --env.backend_options.colors '[red, grey]'."
            )
    shift = changes.get("env", {})
    if not isinstance(shift, dict):
        raise ConfigError(f"--env holds settings, found {shift!r}. Write --env.SETTING VALUE.")
    if "augment" in shift:
        raise ConfigError(
            "Augmentation acts in training only: found a setting of env.augment. To break senses in an "
            "evaluation, use the suites missing-modality and sensor-failure."
        )
    return shift


def _check_same_shape(run: LoadedRun, env: MultiModalVectorEnv) -> None:
    wanted = {sensor.name: sensor for sensor in run.agent.policy.inputs}
    for name in wanted:
        if name not in env.worlds.sensors:
            raise unknown_name("sensor", name, env.worlds.sensors)
    found = sensor_inputs(
        {name: env.worlds.sensors[name] for name in wanted}, run.agent.representer.text_encoder
    )
    for sensor in found:
        if sensor != wanted[sensor.name]:
            raise ConfigError(
                f"The policy reads {sensor.name!r} as {wanted[sensor.name].shape} "
                f"{wanted[sensor.name].dtype}; the changed world delivers {sensor.shape} {sensor.dtype}. "
                f"Leave settings that change a sensor's shape as they were in training."
            )
    trained, action = run.env.worlds.action, env.worlds.action
    if (trained.kind, trained.option_names, trained.continuous_names) != (
        action.kind,
        action.option_names,
        action.continuous_names,
    ):
        raise ConfigError(
            f"The policy acts by {trained.kind} actions with {trained.num_options} options and "
            f"{trained.continuous_dim} parameters; the changed world has {action.kind} actions with "
            f"{action.num_options} and {action.continuous_dim}. Leave the actions as they were in training."
        )
