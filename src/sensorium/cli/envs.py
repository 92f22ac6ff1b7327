"""``sensorium envs``: what there is to act in, its tasks, and whether they can be solved."""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sensorium.core import ConfigError, EnvError, parse_config, parse_overrides

if TYPE_CHECKING:
    from sensorium.envs.base import Env

_SHOWN_PROBLEMS = 20


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = subparsers.add_parser("envs", help="list environments; write, show and validate their tasks")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=_list)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    json_flag = argparse.ArgumentParser(add_help=False)
    json_flag.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print as JSON")
    which = argparse.ArgumentParser(add_help=False, parents=[json_flag])
    which.add_argument("name", help="an environment for language models, e.g. notebook, or module:Class")
    which.add_argument("--split", default="train", help="train (default), test, or another split it has")
    which.add_argument("--count", type=int, default=20, help="number of tasks (default 20)")
    which.add_argument("--seed", type=int, default=0, help="the same gives the same tasks")
    listing = actions.add_parser("list", parents=[json_flag], help="everything there is to act in (default)")
    listing.set_defaults(run=_list)
    tasks = actions.add_parser("tasks", parents=[which], help="write tasks as rows of JSON lines")
    tasks.add_argument("--output", type=Path, help="file to write; printed when not given")
    tasks.add_argument("--agent", help="name of the agent that rows are sent to")
    tasks.add_argument("--whole", action="store_true", help="with what is hidden: answers and tests")
    tasks.set_defaults(run=_tasks)
    validate = actions.add_parser(
        "validate", parents=[which], help="play tasks: the scripted solution must earn 1, doing nothing 0"
    )
    validate.add_argument("--concurrency", type=int, default=2, help="tasks at a time (default 2)")
    validate.set_defaults(run=_validate)
    prepare = actions.add_parser("prepare", help="fetch or build once what an environment needs")
    prepare.add_argument("name")
    prepare.set_defaults(run=_prepare)


def _list(args: argparse.Namespace) -> int:
    from sensorium.envs import list_envs
    from sensorium.envs.embodied.registry import list_tasks

    worlds = list_tasks()
    chat = [_described(name) for name in sorted(list_envs())]
    if args.json:
        rows = [asdict(task) | {"kind": "embodied"} for task in worlds.values()]
        print(json.dumps([*rows, *(row | {"kind": "chat"} for row in chat)]))
        return 0
    any_gym = "gym/ID is any environment of Gymnasium: gym/CartPole-v1, gym/MODULE:ID"
    table = Table(show_lines=True, title="for policy networks", caption=any_gym)
    table.add_column("task", no_wrap=True)  # a name that is cut cannot be typed
    table.add_column("what to do, with which senses and actions")
    for task in worlds.values():
        needs = " and ".join(" or ".join(group) for group in task.needs)
        told = [
            f"senses: {', '.join(task.sensors)}" + (f"; needs {needs}" if needs else ""),
            f"actions: {', '.join(task.action_spaces)}; {task.default_max_steps} steps",
        ]
        table.add_row(task.name, "\n".join([task.summary, *(f"[dim]{line}[/dim]" for line in told)]))
    Console().print(table)
    table = Table(title="for language models")
    for column in ("environment", "what to do", "settings"):
        table.add_column(column, no_wrap=column == "environment")
    for row in chat:
        table.add_row(row["name"], row["summary"], ", ".join(row["settings"]))
    Console().print(table)
    return 0


def _described(name: str) -> dict[str, Any]:
    """Name, summary and settings; of one that cannot be loaded, why."""
    from sensorium.envs import find_env

    try:
        env = find_env(name)
    except ConfigError as error:
        return {"name": name, "summary": str(error), "settings": {}}
    return {"name": name, "summary": env.summary, "settings": env.config_type().model_dump(mode="json")}


def _tasks(args: argparse.Namespace) -> int:
    from sensorium.rollouts.task_rows import task_row

    definition, config, tasks = _chosen(args)
    env = definition.make(config)
    try:
        rows = [task_row(task, agent=args.agent, whole=args.whole, tools=_tools(env)) for task in tasks]
    finally:
        asyncio.run(env.close())
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if args.output is None:
        sys.stdout.write(lines)
        return 0
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(lines, encoding="utf-8")
    said = {"tasks": len(rows), "output": str(args.output)}
    print(json.dumps(said) if args.json else f"{len(rows)} tasks in {args.output}")
    return 0


def _tools(env: "Env") -> Sequence[Mapping[str, Any]]:
    """Tools of an environment; empty where it has none before a task is known."""
    try:
        return env.tools
    except EnvError:
        return ()


def _validate(args: argparse.Namespace) -> int:
    from sensorium.envs.validation import Attempt, validate_tasks

    definition, config, tasks = _chosen(args)
    started = time.monotonic()
    console = Console(stderr=True)
    with console.status(f"{definition.name}: {len(tasks)} tasks") as status:
        done: list[Attempt] = []

        def told(attempt: Attempt) -> None:
            done.append(attempt)
            valid = sum(one.is_valid for one in done)
            status.update(f"{definition.name}: {len(done)} of {len(tasks)} tasks, {valid} valid")

        attempts = asyncio.run(
            validate_tasks(definition, config, tasks, concurrency=args.concurrency, told=told)
        )
    wrong = [one for one in attempts if not one.is_valid]
    steps = sum(one.num_steps for one in attempts) / max(1, len(attempts))
    wall_s = time.monotonic() - started
    if args.json:
        rows = [one._asdict() | {"is_valid": one.is_valid} for one in attempts]
        valid = len(attempts) - len(wrong)
        print(json.dumps({"env": definition.name, "valid": valid, "wall_s": wall_s, "tasks": rows}))
        return 1 if wrong else 0
    print(
        f"{definition.name}: {len(attempts) - len(wrong)} of {len(attempts)} tasks are valid: the scripted "
        f"solution earns 1, doing nothing 0; {steps:.1f} steps a solution, {wall_s:.1f} s."
    )
    for one in wrong[:_SHOWN_PROBLEMS]:
        print(f"  {one.task_id}: {one.problem or f'solution {one.reward:g}, idle {one.idle_reward:g}'}")
    if len(wrong) > _SHOWN_PROBLEMS:
        print(f"  and {len(wrong) - _SHOWN_PROBLEMS} more")
    return 1 if wrong else 0


def _prepare(args: argparse.Namespace) -> int:
    from sensorium.envs import find_env

    definition = find_env(args.name)
    definition.prepare(_settings(definition, args.overrides))
    print(f"{definition.name} is prepared.")
    return 0


def _chosen(args: argparse.Namespace) -> tuple[Any, Any, list[Any]]:
    """Definition, settings and tasks that the arguments name."""
    from sensorium.envs import find_env

    if args.count < 1:
        raise ConfigError(f"--count is {args.count}; at least 1 task is needed.")
    definition = find_env(args.name)
    config = _settings(definition, args.overrides)
    tasks = definition.tasks(config, split=args.split, count=args.count, seed=args.seed)
    if len(tasks) < args.count:
        print(
            f"sensorium: {definition.name} has only {len(tasks)} tasks in {args.split}, {args.count} were "
            "asked for.",
            file=sys.stderr,
        )
    return definition, config, list(tasks)


def _settings(definition: Any, flags: list[str]) -> Any:
    """The environment's settings, from flags such as ``--env.num_items 7``."""
    given = parse_overrides(flags)
    wrong = sorted(set(given) - {"env"})
    if wrong:
        raise ConfigError(f"Unknown setting --{wrong[0]}. Settings of an environment are written --env.NAME.")
    return parse_config(definition.config_type, given.get("env", {}))
