"""The part of ``sensorium train`` that trains language models' agents."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console

from sensorium.core.counted import counted

if TYPE_CHECKING:
    from sensorium.trainers.language.config import LanguageRunConfig
    from sensorium.trainers.language.grpo import GRPOProgress
    from sensorium.trainers.run_directory import OnExisting


class Done(NamedTuple):
    """A run that came to its end."""

    told: dict[str, Any]
    """`summary.json`, and where the run and its report are."""
    closing_line: str


def train_language(
    config: "LanguageRunConfig", runs: Path, on_existing: "OnExisting", console: Console
) -> Done | None:
    """Train one run and report it; None when the user interrupted. A complete run is only reported again."""
    from sensorium.cli.train import begun, training_bar
    from sensorium.trainers.language.grpo import GRPOTraining
    from sensorium.trainers.run_directory import open_run

    run_dir = open_run(config, runs, on_existing)
    if (run_dir / "summary.json").exists():
        console.print(f"[bold]{run_dir}[/bold] is complete already")
        return _done(run_dir)
    training = begun(lambda: GRPOTraining(config, run_dir), run_dir, console)
    with training_bar(console) as bar:
        task = bar.add_task("train", total=config.algo.total_updates, completed=training.update, note="")
        finished = training.run(
            lambda progress: bar.update(task, completed=progress.update, note=_note(progress))
        )
    return _done(run_dir) if finished else None


def _done(run_dir: Path) -> Done:
    """Write the report of a run that came to its end."""
    from sensorium.analysis import RunDirectory, read_language_summary, write_language_report

    summary, report = read_language_summary(RunDirectory(run_dir)), write_language_report(run_dir)
    success = "no task could be judged"
    if summary.success_rate is not None and summary.success_ci95 is not None:
        low, high = summary.success_ci95
        success = f"success {summary.success_rate:.2f} [{low:.2f}, {high:.2f}]"
    line = (
        f"{success} · return {_number(summary.first_return)} -> {_number(summary.last_return)} · "
        f"{counted(summary.updates, 'update')} in {summary.wall_s:.0f} s · report {report}"
    )
    return Done(summary.model_dump(mode="json") | {"run": str(run_dir), "report": str(report)}, line)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _note(progress: "GRPOProgress") -> str:
    minutes, seconds = divmod(round(progress.eta_s), 60)
    reward, success = (
        "–" if math.isnan(value) else f"{value:.2f}" for value in (progress.reward, progress.success_rate)
    )
    return f"update {progress.update} · return {reward} · success {success} · ETA {minutes}:{seconds:02d}"
