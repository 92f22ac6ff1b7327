"""``sensorium envs``: every task with its senses and ways to act."""

import argparse
import json
from dataclasses import asdict

from rich.console import Console
from rich.table import Table


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = subparsers.add_parser("envs", help="list environments with their sensors")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    from sensorium.envs.embodied.registry import list_tasks

    tasks = list_tasks()
    if args.json:
        print(json.dumps([asdict(task) for task in tasks.values()]))
        return 0
    table = Table(show_lines=True)
    for column in ("task", "what to do", "sensors", "actions", "steps"):
        table.add_column(column, justify="right" if column == "steps" else "left")
    for task in tasks.values():
        needs = " and ".join(" or ".join(group) for group in task.needs)
        sensors = ", ".join(task.sensors) + (f"\n[dim]needs {needs}[/dim]" if needs else "")
        table.add_row(
            task.name, task.summary, sensors, ", ".join(task.action_spaces), str(task.default_max_steps)
        )
    Console().print(table)
    return 0
