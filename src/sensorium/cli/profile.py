"""``sensorium profile OUT.jsonl``: what a file of rollouts says."""

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from sensorium.rollouts.profile import Estimate, Profile

_MAX_TASKS = 50


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "profile",
        help="rewards, successes, tokens, times and failures of collected rollouts",
        description="Tell what a file of `sensorium rollout`, or of NeMo Gym's collector, says.",
    )
    parser.add_argument("output", type=Path, metavar="OUT.jsonl", help="rollouts")
    parser.add_argument(
        "--all-tasks", action="store_true", help=f"list every task, not the {_MAX_TASKS} hardest"
    )
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the profile.

    Raises:
        SensoriumError: The file does not exist or is damaged.
    """
    from sensorium.rollouts.profile import profile_run

    profile = profile_run(args.output)
    if args.json:
        print(json.dumps(plain(profile), ensure_ascii=False))
        return 0
    console = Console()
    console.print(_tasks(profile, None if args.all_tasks else _MAX_TASKS))
    _print_totals(console, profile)
    if profile.failures:
        console.print(_failures(profile))
        for one in profile.failures:
            console.print(f"{one.kind}: {one.example}", markup=False, highlight=False, soft_wrap=True)
    return 0


def plain(profile: "Profile") -> dict[str, Any]:
    """The profile as JSON."""
    made = profile._asdict()
    made["reward"] = _plain_estimate(profile.reward)
    made["success"] = _plain_estimate(profile.success)
    made["tasks"] = [task._asdict() for task in profile.tasks]
    made["failures"] = [failure._asdict() for failure in profile.failures]
    return made


def _plain_estimate(estimate: "Estimate | None") -> dict[str, float | None] | None:
    if estimate is None:
        return None
    return {name: value if math.isfinite(value) else None for name, value in estimate._asdict().items()}


def _tasks(profile: "Profile", most: int | None) -> Table:
    ordered = sorted(profile.tasks, key=lambda task: (task.mean_reward is not None, task.mean_reward or 0.0))
    shown = ordered if most is None else ordered[:most]
    left = len(ordered) - len(shown)
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        caption=f"and {left} easier tasks (--all-tasks lists them)" if left else None,
    )
    has_repeats = any(task.num_rollouts > 1 for task in shown)
    columns = ("#", "task", "rollouts", "reward", "best", "success", "steps", "tokens", "seconds")
    for column in columns:
        if column != "best" or has_repeats:
            is_task = column == "task"
            table.add_column(column, justify="left" if is_task else "right", no_wrap=is_task)
    for task in sorted(shown, key=lambda task: task.task):
        expected = task.num_rollouts + task.missing
        table.add_row(
            str(task.task),
            escape(task.name),
            f"[red]{task.num_rollouts} of {expected}[/red]" if task.missing else str(task.num_rollouts),
            _number(task.mean_reward, ".3f"),
            *([_number(task.best_reward, ".3f")] if has_repeats else []),
            _number(task.success, ".0%"),
            _number(task.num_steps, ".1f"),
            _number(task.tokens, ",.0f"),
            _number(task.wall_s, ".1f"),
        )
    return table


def _print_totals(console: Console, profile: "Profile") -> None:
    lines = [f"{profile.num_rollouts:,} of {profile.expected:,} rollouts have a result"]
    if profile.masked:
        lines[0] += f"; {profile.masked:,} of them are masked and count in no reward"
    if profile.reward is not None:
        lines.append(f"reward   {_interval(profile.reward, '.3f')}")
    if profile.success is not None:
        lines.append(f"success  {_interval(profile.success, '.1%')}")
    passed = [
        (name, value)
        for name, value in profile.pass_at_k.items()
        if name.startswith("pass@") and "[" not in name
    ]
    for k, (name, value) in enumerate(passed, start=1):
        if k == len(passed) or k & (k - 1) == 0:  # powers of two, and the last
            lines.append(f"{name.partition('/')[0]:<8} {value:.1f}%")
    if profile.tokens:
        told = ", ".join(f"{name} {value:,.0f}" for name, value in profile.tokens.items() if name != "total")
        lines.append(f"tokens   {told} per rollout; {profile.tokens['total']:,.0f} in all")
    if profile.wall_s:
        lines.append("seconds  " + ", ".join(f"{name} {value:.2f}" for name, value in profile.wall_s.items()))
    console.print("\n".join(lines), highlight=False)


def _failures(profile: "Profile") -> Table:
    table = Table(title="failed attempts")
    for column in ("kind", "stage", "attempts", "rollouts lost"):
        table.add_column(column, justify="right" if column in ("attempts", "rollouts lost") else "left")
    for one in profile.failures:
        table.add_row(one.kind, one.stage, str(one.attempts), str(one.lost))
    return table


def _interval(estimate: "Estimate", form: str) -> str:
    shown = format(estimate.mean, form)
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return f"{shown} ({estimate.num_rollouts:,} rollouts of one task: no interval)"
    return f"{shown} (95 % interval {format(estimate.low, form)} to {format(estimate.high, form)})"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
