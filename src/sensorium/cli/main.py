"""``sensorium VERB``: one command, a file per verb; heavy imports happen after parsing."""

import argparse
import logging
import sys
from collections.abc import Sequence

from sensorium.cli import envs, evaluate, export, models, train
from sensorium.core import SensoriumError, set_passive_threads

VERBS = (train, evaluate, envs, export, models)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = argparse.ArgumentParser(
        prog="sensorium",
        description="Train agents that perceive through several senses, and learn what each sense is worth.",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    subparsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        verb.add_parser(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = build_parser()
    args, rest = parser.parse_known_args(arguments)
    if rest and args.verb not in ("train", "eval"):
        parser.error(f"unrecognised arguments: {' '.join(rest)}")
    args.overrides = rest
    set_passive_threads()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    try:
        status: int = args.run(args)
    except (SensoriumError, OSError) as error:  # OSError: a full disk, a read-only folder
        if args.debug:
            raise
        print(f"sensorium: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sensorium: interrupted", file=sys.stderr)
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
