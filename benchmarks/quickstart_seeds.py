"""Whether a preset learns with every seed: ``sensorium train PRESET`` for several seeds, one after another.

python benchmarks/quickstart_seeds.py                          four seeds of quickstart, about 6 minutes each
python benchmarks/quickstart_seeds.py --preset doom_basic      the same for another preset
python benchmarks/quickstart_seeds.py 0 1 --runs runs          keep the runs; complete ones are not repeated

Any other flag is passed on to ``sensorium train``, e.g. ``--algo.total_steps 20000``.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recording import (
    CONSOLE,
    RESULTS,
    Spread,
    describe_machine,
    installed_versions,
    load_average,
    write_results,
)
from rich.table import Table

from sensorium.analysis import RunDirectory, Summary
from sensorium.cli.train import resolve_config
from sensorium.trainers.run_directory import run_path

PACKAGES = ("sensorium", "torch", "numpy", "numba", "gymnasium", "vizdoom")


def train(preset: str, seed: int, runs: Path, overrides: Sequence[str]) -> tuple[Summary, float | None]:
    """Train one seed in a process of its own, with its progress bar on the terminal.

    Returns:
        The run's summary and the seconds that the whole command took; None where the run was complete.

    Raises:
        SystemExit: The command failed; it has said why.
    """
    flags = ["--seed", str(seed), *overrides]
    run = run_path(resolve_config(preset, [], flags), runs)
    if (run / "summary.json").exists():
        return RunDirectory(run).summary(), None
    command = [sys.executable, "-m", "sensorium.cli.main", "train", preset, "--runs", str(runs)]
    start = time.perf_counter()
    # Standard output holds only the closing line; errors and progress go to standard error.
    process = subprocess.run([*command, "--on-existing", "resume", *flags], stdout=subprocess.DEVNULL)
    if process.returncode != 0:
        raise SystemExit(process.returncode)
    return RunDirectory(run).summary(), time.perf_counter() - start


def collect(summary: Summary, command_s: float | None) -> dict[str, Any]:
    """What is reported of one run."""
    subsets = {name: result.model_dump(mode="json") for name, result in summary.missing_modality.items()}
    return {
        "seed": summary.seed,
        "success_rate": summary.success_rate,
        "success_ci95": summary.success_ci95,
        "episodes": summary.episodes,
        "mean_return": summary.mean_return,
        "subsets": subsets,
        "env_steps": summary.env_steps,
        "wall_s": summary.wall_s,
        "steps_per_s": summary.steps_per_s,
        "command_s": command_s,
    }


def spreads(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Median and range over the seeds."""
    numbers = ("success_rate", "mean_return", "wall_s", "steps_per_s")
    subsets = runs[0]["subsets"]
    return {name: asdict(_spread(run[name] for run in runs)) for name in numbers} | {
        "success_ci95_low": asdict(_spread(run["success_ci95"][0] for run in runs)),
        "subsets": {
            subset: {
                name: asdict(_spread(run["subsets"][subset][name] for run in runs))
                for name in ("success_rate", "mean_return")
            }
            for subset in subsets
        },
    }


def print_runs(runs: Sequence[dict[str, Any]]) -> None:
    """Print a table with a column per seed."""
    table = Table(title="by seed")
    for heading in ("", *(f"seed {run['seed']}" for run in runs), "median [lowest, highest]"):
        table.add_column(heading)
    table.add_row(
        "success [95 % interval]", *map(_success, runs), str(_spread(r["success_rate"] for r in runs))
    )
    for name, label in (
        ("mean_return", "return"),
        ("wall_s", "training, s"),
        ("steps_per_s", "steps/s"),
    ):
        table.add_row(label, *(_number(run[name]) for run in runs), str(_spread(run[name] for run in runs)))
    table.add_section()
    for subset in runs[0]["subsets"]:
        results = [run["subsets"][subset] for run in runs]
        cells = (f"{r['success_rate']:.2f}, return {_number(r['mean_return'])}" for r in results)
        table.add_row(subset, *cells, str(_spread(r["success_rate"] for r in results)))
    CONSOLE.print(table)


def _success(run: dict[str, Any]) -> str:
    low, high = run["success_ci95"]
    return f"{run['success_rate']:.3f} [{low:.3f}, {high:.3f}]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _spread(values: Iterable[float]) -> Spread:
    return Spread.of(list(values))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print the table, write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seeds", type=int, nargs="*", default=[0, 1, 2, 3], help="default: 0 1 2 3")
    parser.add_argument("--preset", default="quickstart")
    parser.add_argument(
        "--runs", type=Path, default=None, help="folder of the runs (default: a temporary one)"
    )
    parser.add_argument("--output", type=Path, default=None, help="result file")
    args, overrides = parser.parse_known_args(arguments)
    load_before = load_average()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="sensorium-seeds-") as folder:
        for seed in args.seeds:
            summary, command_s = train(args.preset, seed, args.runs or Path(folder), overrides)
            found.append(collect(summary, command_s))
            CONSOLE.print(f"seed {seed}: success {_success(found[-1])}, return {summary.mean_return:.2f}")
    print_runs(found)
    content = {
        "machine": describe_machine() | {"load_before": load_before, "load_after": load_average()},
        "versions": installed_versions(PACKAGES),
        "preset": args.preset,
        "seeds": args.seeds,
        "spread": spreads(found),
        "runs": found,
    }
    write_results(args.output or RESULTS / f"{args.preset}_seeds.json", content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
