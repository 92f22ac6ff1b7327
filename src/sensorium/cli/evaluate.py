"""``sensorium eval RUN --suite ...``: ask a finished run a question by running it again."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sensorium.analysis.evaluation_sections import suite_question
from sensorium.analysis.evaluation_tables import ResultTable, result_tables
from sensorium.analysis.evaluations import EVALUATIONS, evaluation_path
from sensorium.core.config import parse_overrides
from sensorium.core.errors import unknown_name

if TYPE_CHECKING:
    from sensorium.analysis.evaluations import Evaluation
    from sensorium.evals import FaultKind, SuiteRequest

EXAMPLES = """examples:
  sensorium eval RUN
  sensorium eval RUN --suite sensor-failure --kinds absent,noise --recovery-steps 5
  sensorium eval RUN --suite generalisation --combinations rgb+speech,depth+speech
  sensorium eval RUN --suite generalisation --combinations held_out.yaml \\
      --env.backend_options.colors '[grey, purple, yellow]'
Flags that begin with --env. change the world; generalisation compares it with that of training."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    suites = "\n".join(f"  {name:18}{suite_question(kind)}" for name, kind in EVALUATIONS.items())
    parser = subparsers.add_parser(
        "eval",
        help="judge the newest policy of a run",
        description="Judge the newest policy of a run: results in RUN/evals/, a table, a part of the report.",
        epilog=f"suites:\n{suites}\n\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # flags that are not known here are settings of the world
    )
    parser.add_argument("directory", metavar="RUN", type=Path, help="a run's directory")
    parser.add_argument(
        "--suite", metavar="SUITE", default="missing-modality", help="what to ask (default: missing-modality)"
    )
    parser.add_argument("--episodes", type=int, help="episodes per condition (default: as the run is set)")
    parser.add_argument("--seed", type=int, help="decides episodes and faults (default: from the run's seed)")
    parser.add_argument("--kinds", help="kinds of sensor fault: absent, frozen, noise (comma between)")
    parser.add_argument(
        "--recovery-steps", type=int, help="sensor-failure: length of a failure that ends, in steps"
    )
    parser.add_argument(
        "--combinations",
        help="generalisation: held-out combinations, or a YAML file with held_out and trained",
    )
    parser.add_argument(
        "--trained-combinations", help="generalisation: combinations of training (default: all sensors)"
    )
    parser.add_argument(
        "--sampled", action="store_true", help="draw actions, as training does, instead of the likeliest ones"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON, no progress bar")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the suite and print its tables."""
    if args.suite not in EVALUATIONS:
        raise unknown_name("suite", args.suite, EVALUATIONS)
    from sensorium.evals import run_suite

    console = Console(stderr=True, quiet=args.json)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=console,
    )
    request = _request(args)
    with bar:
        task = bar.add_task("evaluate", total=None, note="")
        evaluation = run_suite(
            args.directory,
            args.suite,
            request,
            on_total=lambda total: bar.update(task, total=total),
            on_episode=lambda condition: bar.update(task, advance=1, note=escape(condition)),
        )
    if args.json:
        print(json.dumps(evaluation.model_dump(mode="json")))
        return 0
    _print(evaluation, args.directory)
    return 0


def _request(args: argparse.Namespace) -> "SuiteRequest":
    from sensorium.evals import SuiteRequest
    from sensorium.evals.loading import shift_of

    return SuiteRequest(
        episodes=args.episodes,
        seed=args.seed,
        kinds=None if args.kinds is None else _kinds(args.kinds),
        recovery_steps=args.recovery_steps,
        combinations=args.combinations,
        trained=args.trained_combinations,
        sampled=args.sampled,
        world=shift_of(parse_overrides(args.overrides)),
    )


def _kinds(text: str) -> "tuple[FaultKind, ...]":
    from sensorium.evals import FaultKind

    known = {kind.value: kind for kind in FaultKind}
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names or [text]:
        if name not in known:
            raise unknown_name("kind of fault", name, known)
    return tuple(dict.fromkeys(known[name] for name in names))


def _print(evaluation: "Evaluation", directory: Path) -> None:
    console = Console()
    for table in result_tables(evaluation):
        _print_table(console, _rich(table))
        console.print(f"[dim]{escape(table.reading)}[/dim]\n")
    report = directory / "report.html"
    print(f"results {evaluation_path(directory, evaluation.suite)}")
    if (directory / "summary.json").exists():
        print(f"report {report}")
    else:
        print(f"no report yet: make one with: sensorium eval {directory} --suite missing-modality")


def _print_table(console: Console, table: Table) -> None:
    """Print all of a table: in a window it is folded to fit, a file gets it as wide as it is."""
    if not console.is_terminal:
        wide = console.options.update(max_width=10_000)
        console = Console(width=max(console.width, console.measure(table, options=wide).maximum))
    console.print(table)


def _rich(table: ResultTable) -> Table:
    drawn = Table(title=table.title)
    for i, column in enumerate(table.columns):
        # Folded, not cut: two sensors may begin alike.
        drawn.add_column(escape(column), justify="left" if i == 0 else "right", overflow="fold")
    for row in table.rows:
        if row.starts_group:
            drawn.add_section()
        drawn.add_row(*(escape(text) for text in (row.name, *row.cells)))
    return drawn
