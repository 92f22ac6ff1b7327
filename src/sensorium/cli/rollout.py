"""``sensorium rollout``: run an agent on tasks, many at the same time, and write down everything it did."""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorium.core import ConfigError

if TYPE_CHECKING:
    from sensorium.rollouts.collect import Outcome
    from sensorium.rollouts.inputs import Inputs
    from sensorium.rollouts.run import RunOptions
    from sensorium.rollouts.runner import RowRunner
    from sensorium.rollouts.task_rows import Repeats

DEFAULT_HEAD = "http://127.0.0.1:11000"
EXAMPLES = """examples:
  sensorium rollout --agent notebook_agent --input tasks.jsonl --output out.jsonl --num-repeats 4
  sensorium rollout --agent notebook_agent --input tasks.jsonl --output out.jsonl --num-repeats 4 --resume
  sensorium rollout --config serve.yaml policy_model_name=qwen3 --input tasks.jsonl --output out.jsonl
  sensorium rollout --env lookup --limit 50 --model-url http://localhost:8000/v1 --model qwen --output o.jsonl
The first two find the agent through the head server of `sensorium serve` or of NeMo Gym; the others run
everything in this process. With --env, settings are flags: --env.num_items 8, --episode.max_steps 20,
--agent.max_tokens 512, --observation.max_tokens 4096.

files beside out.jsonl: out_materialized_inputs.jsonl, out_failures.jsonl, out_aggregate_metrics.json,
out_run.json (what the run was made from; --resume compares it), out_media/ (pictures, each once).
exit status: 0 all rollouts have a result, 3 some have none, 130 interrupted, 2 it could not be begun."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "rollout",
        help="run an agent on tasks and collect what it did",
        description="Run an agent on every row of a file, and write a row for each episode.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("settings", nargs="*", metavar="KEY=VALUE", help="with --config: laid over the file, as for `serve`")
    add("--input", type=Path, metavar="FILE", help="tasks, one JSON object a line (optional with --env)")
    add("--output", type=Path, metavar="FILE", required=True, help="rollouts, one JSON object a line")
    add("--agent", metavar="NAME", help="runs all rows; without it each row names its own")
    add("--num-repeats", type=_positive, default=1, metavar="N", help="rollouts of each task (default: 1)")
    add("--interleave-repeats", action="store_true", help="abcabc instead of aabbcc")
    add("--concurrency", type=_positive, default=64, metavar="N", help="at the same time (default: 64)")
    add("--limit", type=_positive, metavar="N", help="only the first N rows")
    add("--seed", type=_seed, default=0, metavar="S", help="of the run; `none` sends no seeds (default: 0)")
    _add_backends(parser)
    _add_start(parser)
    sampling = parser.add_argument_group("sampling, laid over the rows")
    sampling.add_argument("--temperature", type=float)
    sampling.add_argument("--top-p", type=float)
    sampling.add_argument("--max-output-tokens", type=_positive, metavar="N")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--timeout-s", type=float, default=1800.0, help="of one episode (default: 1800)")
    limits.add_argument(
        "--max-attempts", type=_positive, default=3, metavar="N", help="of a rollout (default: 3)"
    )
    limits.add_argument(
        "--drain-s", type=float, default=60.0, help="for open episodes, once interrupted (60)"
    )
    add("--inline-media", action="store_true", help="leave pictures in the rows, as NeMo Gym does")
    add("--sorted", action="store_true", help="put the rows in order at the end")
    add(
        "--progress-s",
        type=float,
        default=10.0,
        help="seconds between lines without a terminal (default: 10)",
    )
    add("--json", action="store_true", help="print the outcome as JSON")
    parser.set_defaults(run=run)


def _add_backends(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("where the agent runs")
    where.add_argument(
        "--head", metavar="URL", help=f"head server that knows the agent (default: {DEFAULT_HEAD})"
    )
    where.add_argument(
        "--url", metavar="URL", help="agent or environment server itself, without a head server"
    )
    where.add_argument(
        "--route", action="append", default=[], metavar="TASKSET=SERVER", help="for episode requests"
    )
    where.add_argument(
        "--api-key-env", default="SENSORIUM_API_KEY", metavar="NAME", help="variable with the servers' key"
    )
    where.add_argument(
        "--config", type=Path, metavar="YAML", help="run its agent in this process, without sockets"
    )
    where.add_argument("--env", metavar="NAME", help="environment to run in this process")
    where.add_argument("--model-url", metavar="URL", help="OpenAI-compatible endpoint, up to and with /v1")
    where.add_argument("--model", metavar="NAME", help="under which the endpoint serves it")
    where.add_argument("--model-api-key-env", metavar="NAME", help="variable with the endpoint's key")
    where.add_argument("--dialect", choices=("chat", "responses"), default="chat", help="of the endpoint")
    where.add_argument(
        "--split", default="train", help="of the tasks of --env without --input (default: train)"
    )


def _add_start(parser: argparse.ArgumentParser) -> None:
    begin = parser.add_argument_group("files that are there already")
    start = begin.add_mutually_exclusive_group()
    start.add_argument("--resume", action="store_true", help="go on where a run ended, also after kill -9")
    start.add_argument("--overwrite", action="store_true", help="remove what is there")
    begin.add_argument("--retry-failed", action="store_true", help="with --resume: also what failed for good")
    begin.add_argument(
        "--skip-bad", action="store_true", help="leave out rows that cannot be run, and say which"
    )


def run(args: argparse.Namespace) -> int:
    """Collect.

    Raises:
        SensoriumError: The run cannot be begun.
        OSError: A file cannot be read or written.
    """
    if args.retry_failed and not args.resume:
        raise ConfigError("--retry-failed goes with --resume.")
    with asyncio.Runner() as loop:
        return loop.run(_run(args))


async def _run(args: argparse.Namespace) -> int:
    from sensorium.cli.rollout_backend import open_backend
    from sensorium.rollouts.progress import choose_reporter
    from sensorium.rollouts.run import run_rollouts

    async with open_backend(args) as runner:
        inputs = _inputs(args, runner)
        reporter = choose_reporter(sys.stderr, every_s=args.progress_s)
        outcome, metrics = await run_rollouts(
            runner, inputs, _repeats(args), args.output, _options(args), reporter
        )
    _tell(args, outcome, metrics, inputs)
    return outcome.exit_code


def _inputs(args: argparse.Namespace, runner: "RowRunner") -> "Inputs":
    """The rows of the file, or tasks of the environment.

    Raises:
        ConfigError: Rows cannot be run, and --skip-bad is not given.
    """
    from sensorium.rollouts.inputs import read_inputs
    from sensorium.rollouts.task_rows import with_agent

    if args.input is None:
        from sensorium.cli.rollout_backend import task_inputs

        return task_inputs(args)
    inputs = read_inputs(
        args.input,
        limit=args.limit,
        needs_agent=runner.needs_agent and args.agent is None,
        needs_request=runner.needs_request,
        check=lambda row: runner.problem(row if args.agent is None else with_agent(row, args.agent)),
    )
    if not args.skip_bad:
        inputs.require_clean()
    elif inputs.problems:
        print(f"{args.input}: rows that are left out:\n{inputs.describe()}", file=sys.stderr)
        if not inputs.rows:
            raise ConfigError(f"{args.input} has no row that can be run.")
    return inputs


def _repeats(args: argparse.Namespace) -> "Repeats":
    from sensorium.rollouts.task_rows import Repeats

    names = ("temperature", "top_p", "max_output_tokens")
    sampling = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return Repeats(args.num_repeats, args.seed, args.agent, sampling, args.interleave_repeats)


def _options(args: argparse.Namespace) -> "RunOptions":
    from sensorium.core import parse_config
    from sensorium.rollouts.collect import CollectConfig
    from sensorium.rollouts.run import RunOptions

    settings = {
        "concurrency": args.concurrency,
        "timeout_s": args.timeout_s,
        "drain_s": args.drain_s,
        "retries": {"max_attempts": args.max_attempts},
    }
    return RunOptions(
        start="resume" if args.resume else "overwrite" if args.overwrite else "new",
        retry_failed=args.retry_failed,
        inline_media=args.inline_media,
        sort=args.sorted,
        collect=parse_config(CollectConfig, settings),
    )


def _tell(
    args: argparse.Namespace, outcome: "Outcome", metrics: list[dict[str, Any]], inputs: "Inputs"
) -> None:
    said = outcome.describe()
    if args.json:
        told = {
            "output": os.fspath(args.output),
            "num_rollouts": outcome.num_rollouts,
            "num_done": outcome.num_done,
            "num_bad_rows": len({problem.line for problem in inputs.problems}),
            "lost": [one._asdict() for one in outcome.lost],
            "stopped": outcome.stopped,
            "metrics": [
                {"agent": one["agent_ref"]["name"], "key_metrics": one["key_metrics"], **one["sensorium"]}
                for one in metrics
            ],
        }
        print(json.dumps(told, default=str))
        return
    if metrics:
        _print_means(metrics)
    print(f"{outcome.num_done:,} of {outcome.num_rollouts:,} rollouts are in {args.output}.")
    if outcome.num_done:
        print(f"sensorium profile {args.output} tells more.")
    if said:
        print(said, file=sys.stderr)


def _print_means(metrics: list[dict[str, Any]]) -> None:
    """A row for each agent: how many rollouts have a result, and the means of what was measured."""
    from rich.console import Console
    from rich.table import Table

    means = [
        {name.removeprefix("mean/"): value for name, value in one["key_metrics"].items() if _is_number(value)}
        for one in metrics
    ]
    names = list(dict.fromkeys(name for one in means for name in one if name != "total_tokens"))
    table = Table()
    table.add_column("agent", no_wrap=True)
    for name in ("rollouts", *(name.replace("_", " ") for name in names)):
        table.add_column(name, justify="right")
    for one, found in zip(metrics, means, strict=True):
        values = (f"{found[name]:,.4g}" if name in found else "-" for name in names)
        table.add_row(one["agent_ref"]["name"], f"{one['sensorium']['num_rollouts']:,}", *values)
    Console().print(table)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, found {value}")
    return value


def _seed(text: str) -> int | None:
    return None if text.lower() == "none" else int(text)
