"""How a language model's agent learns: ``sensorium train PRESET`` for several seeds, a table and a plot.

python benchmarks/language_curves.py                   three seeds of grpo_tools, one after another
python benchmarks/language_curves.py --seeds 3 4       other seeds; runs that are complete are not repeated
python benchmarks/language_curves.py --report          only table and plot, from the results there are

Each seed leaves `results/{preset}_seed{seed}_summary.json`, as the run wrote it, and beside it `_curve.json`
with success per update and the CPU seconds of the whole command (null where an interrupted run was gone on
with). Any other flag is passed on to ``sensorium train``, e.g. ``--algo.total_updates 2``.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from recording import CONSOLE, RESULTS, describe_machine, installed_versions, load_average
from rich.table import Table

from sensorium.cli.train import resolve_config
from sensorium.core import wilson_interval
from sensorium.core.files import atomic_write_json
from sensorium.metrics.sinks import read_jsonl
from sensorium.trainers.language.config import LanguageRunConfig
from sensorium.trainers.run_directory import run_path

mpl.use("svg")
mpl.rcParams |= {"svg.hashsalt": "sensorium", "axes.spines.top": False, "axes.spines.right": False}

from matplotlib import pyplot as plt  # noqa: E402  # the backend is chosen before

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PACKAGES = ("sensorium", "torch", "transformers", "peft", "numpy")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_TRAINED, _UNSEEN = (
    "#d55e00",
    "#0072b2",
)  # of Okabe and Ito: told apart also by those who see colours differently
_SMOOTHED_UPDATES = 5


def train(preset: str, seed: int, runs: Path, flags: Sequence[str]) -> None:
    """Train a seed in a process of its own, unless its run is complete, and copy what it came to.

    Raises:
        SystemExit: The command failed; it has said why.
    """
    given = ["--seed", str(seed), *flags]
    config = resolve_config(preset, [], given)
    assert isinstance(config, LanguageRunConfig)
    run, cpu_s = run_path(config, runs), None
    is_new = not run.exists()
    if not (run / "summary.json").exists():
        command = [sys.executable, "-m", "sensorium.cli.main", "train", preset, "--runs", str(runs), *given]
        before = _cpu_s_of_children()
        process = subprocess.run(
            [*command, "--on-existing", "resume"], env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL
        )
        if process.returncode != 0:
            raise SystemExit(process.returncode)
        cpu_s = _cpu_s_of_children() - before if is_new else None
    elif curve_file(preset, seed).exists():
        return
    shutil.copyfile(run / "summary.json", summary_file(preset, seed))
    found = {
        "command": ["sensorium", "train", preset, *given],
        "machine": describe_machine(),
        "load_average": load_average(),
        "packages": installed_versions(PACKAGES),
        "cpu_s": cpu_s,
        **read_run(run, config.evaluation.tasks),
    }
    atomic_write_json(curve_file(preset, seed), found)


def read_run(run: Path, tasks: int) -> dict[str, Any]:
    """Success in training and on unseen tasks, per update."""
    rows = read_jsonl(run / "metrics.jsonl")
    evaluations = [
        {
            "update": row["step"],
            "successes": round(row["eval/success_rate"] * (tasks - row["eval/failed_episodes"])),
            "episodes": round(tasks - row["eval/failed_episodes"]),
        }
        for row in rows
        if "eval/success_rate" in row
    ]
    names = {"success": "rollout/success_rate", "return": "rollout/return_mean", "entropy": "policy/entropy"}
    times = {"collect_s": "time/collect_s", "learn_s": "time/learn_s"}
    curve = [
        {"update": row["step"]} | {name: row.get(key) for name, key in (names | times).items()}
        for row in rows
        if row["step"] > 0
    ]
    return {"evaluations": evaluations, "curve": curve}


def summary_file(preset: str, seed: int) -> Path:
    """Where the summary of a run is kept."""
    return RESULTS / f"{preset}_seed{seed}_summary.json"


def curve_file(preset: str, seed: int) -> Path:
    """Where the curve of a run is kept."""
    return RESULTS / f"{preset}_seed{seed}_curve.json"


def _cpu_s_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def print_runs(preset: str, seeds: Sequence[int], curves: Sequence[Mapping[str, Any]]) -> None:
    """Print a row per seed: success on unseen tasks before and after, and what it took."""
    table = Table(title=f"{preset}: success on unseen tasks [95 % Wilson]")
    for heading in ("seed", "before", "after", "first update*", "last updates*", "tokens", "wall s", "CPU s"):
        table.add_column(heading)
    for seed, curve in zip(seeds, curves, strict=True):
        summary = json.loads(summary_file(preset, seed).read_text())
        success = [row["success"] for row in curve["curve"]]
        table.add_row(
            str(seed),
            _share(curve["evaluations"][0]),
            _share(curve["evaluations"][-1]),
            f"{success[0]:.2f}",
            f"{np.mean(success[-_SMOOTHED_UPDATES:]):.2f}",
            f"{summary['sampled_tokens']:,}",
            f"{summary['wall_s']:,.0f}",
            "" if curve["cpu_s"] is None else f"{curve['cpu_s']:,.0f}",
        )
    CONSOLE.print(table)
    CONSOLE.print(f"* success in training, sampled; of the last {_SMOOTHED_UPDATES} updates the mean")


def _share(evaluation: Mapping[str, int]) -> str:
    won, episodes = evaluation["successes"], evaluation["episodes"]
    interval = wilson_interval(won, episodes)
    return f"{won / episodes:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def plot(preset: str, curves: Sequence[Mapping[str, Any]]) -> Path:
    """Success over updates: a thin line for each seed, a thick one for their mean."""
    figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
    trained = [[row["success"] for row in curve["curve"]] for curve in curves]
    unseen = [[e["successes"] / e["episodes"] for e in curve["evaluations"]] for curve in curves]
    updates = [row["update"] for row in curves[0]["curve"]]
    judged = [e["update"] for e in curves[0]["evaluations"]]
    for lines, places, colour, label, style in (
        (trained, updates, _TRAINED, "tasks in training, sampled", "-"),
        (unseen, judged, _UNSEEN, "unseen tasks, likeliest tokens", "o-"),
    ):
        for line in lines:
            axes.plot(places, line, style, color=colour, linewidth=0.8, markersize=3, alpha=0.4)
        axes.plot(places, np.mean(lines, axis=0), style, color=colour, linewidth=2.2, label=label)
    axes.set(xlabel="updates", ylabel="success", ylim=(0, 1.02), xlim=(0, None))
    axes.legend(frameon=False, loc="lower right")
    axes.grid(alpha=0.25)
    file = IMAGES / f"{preset}.svg"
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    return file


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is missing and show all seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="grpo_tools")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--report", action="store_true")
    options, flags = parser.parse_known_args(arguments)
    if not options.report:
        for seed in options.seeds:
            train(options.preset, seed, options.runs, flags)
    seeds = [seed for seed in options.seeds if curve_file(options.preset, seed).exists()]
    curves = [json.loads(curve_file(options.preset, seed).read_text()) for seed in seeds]
    print_runs(options.preset, seeds, curves)
    CONSOLE.print(f"plot: {plot(options.preset, curves)}")


if __name__ == "__main__":
    main()
