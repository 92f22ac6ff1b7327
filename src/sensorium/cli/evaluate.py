"""``sensorium eval RUN``: ask a finished run a question by running it again."""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

SUITES = ("missing-modality",)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = subparsers.add_parser("eval", help="judge the newest policy of a run")
    parser.add_argument("directory", metavar="RUN", type=Path, help="a run's directory")
    parser.add_argument(
        "--suite",
        choices=SUITES,
        default=SUITES[0],
        help="missing-modality: success with each subset of the senses; rewrites summary and report",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the suite and print its table."""
    from sensorium.evals import finish_run

    console = Console(stderr=True, quiet=args.json)
    with console.status("evaluating") as status:
        summary = finish_run(
            args.directory, on_episode=lambda subset: status.update(f"evaluating with {subset}")
        )
    if args.json:
        print(json.dumps(summary.model_dump(mode="json")))
        return 0
    table = Table(title=f"{summary.task}: success with each subset of the senses")
    for column in ("senses", "success", "95 % interval", "episodes", "return"):
        table.add_column(column, justify="left" if column == "senses" else "right")
    for name, result in summary.missing_modality.items():
        low, high = result.ci95
        table.add_row(
            name,
            f"{result.success_rate:.2f}",
            f"[{low:.2f}, {high:.2f}]".replace("[", "\\["),
            str(result.episodes),
            f"{result.mean_return:.2f}",
        )
    Console().print(table)
    print(f"report {args.directory / 'report.html'}")
    return 0
