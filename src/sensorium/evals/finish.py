"""What every run ends with: the missing-modality test, a film, `summary.json` and `report.html`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sensorium.analysis import RunDirectory, Summary, write_report
from sensorium.core import RunDirectoryError, derive_seed
from sensorium.evals.missing_modality import missing_modality_test
from sensorium.evals.record import record_episode
from sensorium.trainers.build import Agent, build_agent, build_env
from sensorium.trainers.checkpoint import latest_checkpoint, load_policy
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.run_directory import read_config


def load_agent(run: Path) -> tuple[TrainConfig, Agent, dict[str, Any]]:
    """Load the newest policy of a run.

    Returns:
        The run's config, the agent, and what the checkpoint's `state.json` holds.

    Raises:
        RunDirectoryError: `run` is no run, or has no checkpoint.
        CheckpointError: The checkpoint is corrupt or of another architecture.
    """
    config = read_config(run)
    checkpoint = latest_checkpoint(run)
    if checkpoint is None:
        raise RunDirectoryError(f"{run} has no checkpoint yet. Train it with --on-existing resume.")
    env = build_env(config, 1)
    try:
        agent = build_agent(config, env)
    finally:
        env.close()
    return config, agent, load_policy(checkpoint, agent.policy)


def finish_run(run: Path, *, on_episode: Callable[[str], None] | None = None) -> Summary:
    """Judge the newest policy of a run and write what it is worth.

    Args:
        run: The run's directory.
        on_episode: Called with the subset's name when an evaluation episode ends.
    """
    config, agent, state = load_agent(run)
    evaluation = config.evaluation
    seed = derive_seed(config.seed, "evaluation") >> 1
    env = build_env(config, min(evaluation.num_envs, evaluation.episodes))
    try:
        results = missing_modality_test(
            agent,
            env,
            episodes=evaluation.episodes,
            subset_episodes=evaluation.subset_episodes,
            seed=seed,
            on_episode=on_episode,
        )
        modalities = tuple(dict.fromkeys(spec.modality.value for spec in env.worlds.sensors.values()))
        sensors = tuple(env.worlds.sensors)
    finally:
        env.close()
    film_env = build_env(config, 1)
    try:
        record_episode(agent, film_env, seed=seed).save(run / "film")
    finally:
        film_env.close()
    counters = state["counters"]
    env_steps, wall_s = int(counters["env_steps"]), float(counters["wall_s"])
    full = next(iter(results.values()))
    summary = Summary(
        task=config.env.task,
        modalities=modalities,
        sensors=sensors,
        algorithm=config.algo.type,
        seed=config.seed,
        env_steps=env_steps,
        wall_s=wall_s,
        steps_per_s=env_steps / wall_s,
        success_rate=full.success_rate,
        success_ci95=full.ci95,
        episodes=full.episodes,
        mean_return=full.mean_return,
        chance_success=config.evaluation.chance_success,
        missing_modality=results,
        onnx_max_abs_diff=float(state["onnx_max_abs_diff"]),
    )
    RunDirectory(run).write_summary(summary)
    write_report(run)
    return summary
