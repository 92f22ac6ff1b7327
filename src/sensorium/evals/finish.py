"""What every run ends with: the missing-modality test, a film, `summary.json` and `report.html`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from sensorium.analysis import RunDirectory, SubsetResult, Summary, write_report
from sensorium.evals.loading import LoadedRun, loaded_run
from sensorium.evals.missing_modality import missing_modality_test
from sensorium.evals.probe import evaluation_seed
from sensorium.evals.record import record_episode


def finish_run(run: Path, *, on_episode: Callable[[str], None] | None = None) -> Summary:
    """Judge the newest policy of a run and write what it is worth.

    Args:
        run: The run's directory.
        on_episode: Called with the subset's name when an evaluation episode ends.

    Raises:
        RunDirectoryError: `run` is no run, or has no checkpoint.
        CheckpointError: The checkpoint is corrupt or of another architecture.
    """
    with loaded_run(run) as loaded:
        evaluation = loaded.config.evaluation
        results = missing_modality_test(
            loaded.agent,
            loaded.env,
            episodes=evaluation.episodes,
            subset_episodes=evaluation.subset_episodes,
            seed=evaluation_seed(loaded.config.seed),
            on_episode=on_episode,
        )
        return write_results(loaded, results)


def write_results(run: LoadedRun, results: Mapping[str, SubsetResult]) -> Summary:
    """Record a film and write `summary.json` and `report.html`.

    Args:
        run: The run, its worlds still open.
        results: Of the missing-modality test with absent senses; the first entry is all senses.
    """
    config, sensors = run.config, run.env.worlds.sensors
    record_episode(run.agent, run.env, seed=evaluation_seed(config.seed)).save(run.path / "film")
    wall_s = float(run.state["counters"]["wall_s"])
    full = next(iter(results.values()))
    summary = Summary(
        task=config.env.task,
        modalities=tuple(dict.fromkeys(spec.modality.value for spec in sensors.values())),
        sensors=tuple(sensors),
        algorithm=config.algo.type,
        seed=config.seed,
        env_steps=run.env_steps,
        wall_s=wall_s,
        steps_per_s=run.env_steps / wall_s,
        success_rate=full.success_rate,
        success_ci95=full.ci95,
        episodes=full.episodes,
        mean_return=full.mean_return,
        chance_success=config.evaluation.chance_success,
        missing_modality=dict(results),
        onnx_max_abs_diff=float(run.state["onnx_max_abs_diff"]),
    )
    RunDirectory(run.path).write_summary(summary)
    write_report(run.path)
    return summary
