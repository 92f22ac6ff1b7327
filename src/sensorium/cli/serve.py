"""``sensorium serve``: environments, models and agents as servers."""

import argparse
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = subparsers.add_parser("serve", help="start the servers that a file names")
    parser.add_argument("config", type=Path, help="YAML in NeMo Gym's layout, e.g. examples/lookup.yaml")
    parser.add_argument(
        "settings", nargs="*", metavar="KEY=VALUE", help="laid over the file, e.g. head_server.port=11001"
    )
    parser.add_argument("--processes", action="store_true", help="a process for each server")
    parser.add_argument("--host", help="address of all servers; others than 127.0.0.1 need a key")
    parser.add_argument("--port", type=int, help="of the head server; 0 takes a free one")
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run untrusted code without a sandbox where bubblewrap is missing",
    )
    parser.add_argument("--ready-file", type=Path, help="write the addresses there once all servers answer")
    parser.add_argument("--json", action="store_true", help="say the addresses as JSON")
    parser.add_argument("--check", action="store_true", help="read the file, start nothing")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    from sensorium.core import require

    for module in ("fastapi", "uvicorn", "aiohttp"):
        require(module, extra="serve", purpose="serving")
    from sensorium.servers.launch import LaunchOptions, launch, set_up_logging
    from sensorium.servers.layout import read_layout, relocated
    from sensorium.servers.serving import run as run_loop

    layout = read_layout(args.config, [*args.settings, *args.overrides])
    layout = relocated(layout, host=args.host, head_port=args.port)
    if args.check:
        for one in layout.instances:
            print(f"{one.name}: {one.kind}/{one.implementation}")
        return 0
    set_up_logging()
    options = LaunchOptions(
        processes=args.processes,
        unsafe_no_sandbox=args.unsafe_no_sandbox,
        ready_file=args.ready_file,
        as_json=args.json,
    )
    run_loop(launch(layout, options, lambda line: print(line, flush=True)))
    return 0
