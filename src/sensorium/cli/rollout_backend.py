"""Where ``sensorium rollout`` runs its rows: at servers, or in this process."""

import argparse
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from sensorium.core import ConfigError, parse_config
from sensorium.core.config import parse_overrides
from sensorium.rollouts.inputs import Inputs
from sensorium.rollouts.runner import RowRunner

_IN_PROCESS_SECTIONS = ("env", "episode", "agent")
"""Of settings that stand in flags; all others are of the observation config."""
_DEFAULT_TASKS = 100


@contextlib.asynccontextmanager
async def open_backend(args: argparse.Namespace) -> AsyncIterator[RowRunner]:
    """What the flags ask for, ready.

    Raises:
        ConfigError: Flags contradict each other, or name what is not there.
        SensoriumError: It cannot be used.
    """
    kind = _kind(args)
    if kind != "direct" and args.overrides:
        raise ConfigError(f"Settings in flags go with --env only, found: {' '.join(args.overrides)}")
    if kind != "config" and args.settings:
        raise ConfigError(f"{args.settings[0]} goes with --config only: it is laid over that file.")
    if kind == "direct":
        opened = _open_direct(args)
    elif kind == "config":
        from sensorium.cli.rollout_config import open_config

        opened = open_config(args.config, args.agent, args.settings)
    else:
        opened = _open_http(args)
    async with opened as runner:
        yield runner


def task_inputs(args: argparse.Namespace) -> Inputs:
    """Tasks of the environment, when there is no file of them.

    Raises:
        ConfigError: There is no environment, either; or it has no such tasks.
    """
    from sensorium.envs.definition import find_env
    from sensorium.rollouts.jsonl import dumps
    from sensorium.rollouts.task_rows import task_row

    if args.env is None:
        raise ConfigError("--input FILE is needed: tasks, one JSON object a line.")
    definition = find_env(args.env)
    config = parse_config(definition.config_type, parse_overrides(args.overrides).get("env", {}))
    tasks = definition.tasks(config, split=args.split, count=args.limit or _DEFAULT_TASKS)
    rows = [task_row(task) for task in tasks]
    return Inputs(Path(f"{args.env} {args.split}"), [(dumps(row).decode(), row) for row in rows], [])


def _kind(args: argparse.Namespace) -> str:
    direct = args.env is not None or args.model_url is not None
    named = {
        "--config": args.config is not None,
        "--head": args.head is not None,
        "--url": args.url is not None,
    }
    given = [name for name, there in named.items() if there] + (["--env"] if direct else [])
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} contradict each other: the agent runs in one place.")
    if direct and (args.env is None or args.model_url is None or args.model is None):
        raise ConfigError("To run in this process say all of --env NAME --model-url URL --model NAME.")
    return "direct" if direct else "config" if args.config is not None else "http"


@contextlib.asynccontextmanager
async def _open_http(args: argparse.Namespace) -> AsyncIterator[RowRunner]:
    from sensorium.cli.rollout import DEFAULT_HEAD
    from sensorium.rollouts.http_runner import HttpRunner

    routes: dict[str, str] = {}
    for text in args.route:
        taskset, equals, server = text.partition("=")
        if not (taskset and equals and server):
            raise ConfigError(f"--route {text}: expected TASKSET=SERVER.")
        routes[taskset] = server
    head = None if args.url is not None else args.head or DEFAULT_HEAD
    for name, address in (("--head", head), ("--url", args.url)):
        if address is not None and not address.startswith(("http://", "https://")):
            raise ConfigError(f"{name} {address} is no address. Expected e.g. {DEFAULT_HEAD}.")
    runner = HttpRunner(head, url=args.url, api_key=os.environ.get(args.api_key_env), taskset_routes=routes)
    try:
        await runner.open()
        yield runner
    finally:
        await runner.close()


@contextlib.asynccontextmanager
async def _open_direct(args: argparse.Namespace) -> AsyncIterator[RowRunner]:
    from sensorium.envs.definition import find_env
    from sensorium.llm.client import OpenAIChatModel
    from sensorium.llm.config import ChatModelConfig
    from sensorium.policies.chat_agent import AgentConfig
    from sensorium.representations import ObservationPipeline, PipelineConfig
    from sensorium.rollouts.config import EpisodeConfig
    from sensorium.rollouts.runner import EpisodeRunner

    settings = parse_overrides(args.overrides)
    definition = find_env(args.env)
    sections = {name: settings.pop(name, {}) for name in _IN_PROCESS_SECTIONS}
    endpoint = parse_config(
        ChatModelConfig,
        {
            "base_url": args.model_url,
            "model": args.model,
            "api_key_env": args.model_api_key_env,
            "dialect": args.dialect,
            "max_concurrency": args.concurrency,
        },
    )
    with contextlib.closing(ObservationPipeline(PipelineConfig().updated(settings))) as pipeline:
        async with OpenAIChatModel.from_config(endpoint) as model:
            yield EpisodeRunner(
                definition,
                parse_config(definition.config_type, sections["env"]),
                model,
                agent=parse_config(AgentConfig, sections["agent"]),
                pipeline=pipeline,
                episode=parse_config(EpisodeConfig, sections["episode"]),
                name=args.agent,
            )
