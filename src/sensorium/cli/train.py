"""``sensorium train PRESET``: from nothing to a trained agent and a report on its senses."""

import argparse
import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sensorium.core.config import parse_overrides, read_yaml
from sensorium.core.counted import counted

if TYPE_CHECKING:
    from sensorium.analysis import Summary
    from sensorium.presets import AnyRunConfig
    from sensorium.trainers.config import TrainConfig
    from sensorium.trainers.training import Progress as RunProgress

DEFAULT_RUNS = Path("runs")

LARGE_GAP = 0.2
"""Training success this far above the evaluation's interval is worth a word."""

TrainingT = TypeVar("TrainingT")

EXAMPLES = """examples:
  sensorium train quickstart
  sensorium train quickstart --seed 3 --algo.gamma 0.98 --env.audio_obs '[speech, env_sound]'
  sensorium train quickstart --config my.yaml --dry-run
Any setting that --dry-run prints can be given in a file or as a flag; later ones win."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "train",
        help="train an agent and report what each of its senses is worth",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # --run must not be taken for --runs: other flags are settings
    )
    parser.add_argument(
        "preset", metavar="PRESET", nargs="?", help="a complete configuration; without one they are listed"
    )
    parser.add_argument("--config", type=Path, action="append", default=[], help="YAML laid over the preset")
    parser.add_argument("--runs", type=Path, default=DEFAULT_RUNS, help="folder of all runs (default: runs)")
    parser.add_argument(
        "--on-existing",
        choices=("fail", "resume", "restart"),
        default="fail",
        help="when the run exists: fail (default), resume it, or restart (moves it aside)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the resolved configuration and stop")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON, no progress bars")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Resolve the configuration, train, evaluate, report."""
    import yaml

    from sensorium.cli.train_language import Done, train_language
    from sensorium.trainers.language.config import LanguageRunConfig
    from sensorium.trainers.run_directory import OnExisting

    if args.preset is None:
        print(f"sensorium train PRESET, one of:\n\n{listed_presets()}\n\nMore: sensorium train --help")
        return 2
    config = resolve_config(args.preset, args.config, args.overrides)
    if args.dry_run:
        print(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False), end="")
        return 0
    console = Console(stderr=True, quiet=args.json)
    if isinstance(config, LanguageRunConfig):
        done = train_language(config, args.runs, OnExisting(args.on_existing), console)
    else:
        summary, run_dir = run_training(config, args.runs, OnExisting(args.on_existing), console)
        done = None
        if summary is not None:
            told = summary.model_dump(mode="json") | {"run": str(run_dir)}
            done = Done(told, closing_line(summary, run_dir))
    if done is None:
        print(f"interrupted · checkpoint saved · go on with: {_resume_command(args)}")
        return 130
    print(json.dumps(done.told) if args.json else done.closing_line)
    return 0


def listed_presets() -> str:
    """Every preset with the first line of what it says of itself."""
    from sensorium.presets import PRESETS

    width = max(map(len, PRESETS))
    lines = {name: (preset.__doc__ or "").splitlines()[0] for name, preset in PRESETS.items()}
    return "\n".join(f"  {name:<{width}}  {line}" for name, line in lines.items())


def _resume_command(args: argparse.Namespace) -> str:
    """The same command with `--on-existing resume`, quoted for a shell."""
    files = [part for path in args.config for part in ("--config", str(path))]
    runs = [] if args.runs == DEFAULT_RUNS else ["--runs", str(args.runs)]
    words = ["sensorium", "train", args.preset, *files, *runs, *args.overrides, "--on-existing", "resume"]
    return shlex.join(words)


def resolve_config(preset: str, files: list[Path], overrides: list[str]) -> "AnyRunConfig":
    """Preset, then files, then flags; later wins.

    Raises:
        ConfigError: A preset, file or setting does not exist or does not fit.
    """
    from sensorium.presets import find_preset

    config = find_preset(preset)
    for path in files:
        config = config.updated(read_yaml(path))
    return config.updated(parse_overrides(overrides))


def run_training(
    config: "TrainConfig", runs: Path, on_existing: Any, console: Console
) -> "tuple[Summary | None, Path]":
    """Train and judge one run; returns None for the summary when the user interrupted.

    A run that is complete already is only reported again.
    """
    from sensorium.analysis import RunDirectory
    from sensorium.evals import finish_run
    from sensorium.trainers.run_directory import open_run
    from sensorium.trainers.training import Training

    run_dir = open_run(config, runs, on_existing)
    if (run_dir / "summary.json").exists() and (run_dir / "report.html").exists():
        console.print(f"[bold]{run_dir}[/bold] is complete already")
        return RunDirectory(run_dir).summary(), run_dir
    training = begun(lambda: Training(config, run_dir), run_dir, console)
    with training_bar(console) as bar:
        task = bar.add_task("train", total=config.algo.total_steps, completed=training.env_steps, note="")
        trained_rate = math.nan

        def report(progress: "RunProgress") -> None:
            nonlocal trained_rate
            trained_rate = progress.success_rate
            bar.update(task, completed=progress.env_steps, note=_note(progress))

        result = training.run(report)
    if result.interrupted:
        return None, run_dir
    with _evaluation_bar(console) as bar:
        task = bar.add_task("evaluate", total=_num_evaluation_episodes(config), note="")
        summary = finish_run(run_dir, on_episode=lambda subset: bar.update(task, advance=1, note=subset))
    if note := sampling_note(trained_rate, summary, run_dir):
        console.print(note, markup=False, highlight=False)
    return summary, run_dir


def begun(make: Callable[[], TrainingT], run_dir: Path, console: Console) -> TrainingT:
    """What trains a run; a new directory of a run that cannot be begun is removed."""
    from sensorium.trainers.run_directory import discard_unstarted

    try:
        training = make()
    except BaseException:
        discard_unstarted(run_dir)
        raise
    console.print(f"run [bold]{run_dir}[/bold]")
    return training


def closing_line(summary: "Summary", run_dir: Path) -> str:
    """What the command ends with, e.g. ``success 0.97 [0.95, 0.98] · report runs/.../report.html``."""
    low, high = summary.success_ci95
    return (
        f"success {summary.success_rate:.2f} [{low:.2f}, {high:.2f}] · return {summary.mean_return:.2f} · "
        f"{counted(summary.env_steps, 'step')} in {summary.wall_s:.0f} s · report {run_dir / 'report.html'}"
    )


def sampling_note(trained_rate: float, summary: "Summary", run_dir: Path) -> str | None:
    """What is said when a policy that draws its actions does far better than its likeliest actions do.

    Args:
        trained_rate: Success of the latest training episodes; NaN where none has ended.
        summary: What the evaluation found.
        run_dir: The run.
    """
    if not trained_rate > summary.success_ci95[1] + LARGE_GAP:
        return None
    return (
        f"In training, where actions are drawn, {trained_rate:.0%} of the latest episodes were solved. The "
        f"evaluation takes the likeliest action, with which a policy that is still undecided may go in "
        f"circles. To judge it as it trained: sensorium eval {shlex.quote(str(run_dir))} --sampled"
    )


def _num_evaluation_episodes(config: "TrainConfig") -> int:
    from sensorium.evals import senses_of, sensor_subsets

    evaluation = config.evaluation
    num_envs = min(evaluation.num_envs, evaluation.episodes)
    smaller = len(sensor_subsets(config.env.sensor_names, senses_of(config.env))) - 1

    def rounded(episodes: int) -> int:
        return math.ceil(episodes / num_envs) * num_envs

    return rounded(evaluation.episodes) + smaller * rounded(evaluation.subset_episodes)


def training_bar(console: Console) -> Progress:
    """Bar of a run that trains; its column ``note`` says how it stands."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=console,
    )


def _evaluation_bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=console,
    )


def _note(progress: "RunProgress") -> str:
    minutes, seconds = divmod(round(progress.eta_s), 60)
    success = "–" if math.isnan(progress.success_rate) else f"{progress.success_rate:.2f}"
    mean_return = "–" if math.isnan(progress.mean_return) else f"{progress.mean_return:.2f}"
    return (
        f"{progress.env_steps:,} steps · {progress.steps_per_s:,.0f}/s · success {success} · "
        f"return {mean_return} · ETA {minutes}:{seconds:02d}"
    )
