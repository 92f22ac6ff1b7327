"""``sensorium VERB``: one command, a file per verb; heavy imports happen after parsing."""

import argparse
import logging
import re
import sys
from collections.abc import Sequence

from sensorium.cli import envs, evaluate, export, models, observe, profile, rollout, serve, train
from sensorium.core import SensoriumError, set_passive_threads
from sensorium.core.config import setting_of

VERBS = (train, evaluate, observe, serve, rollout, profile, envs, export, models)
WITH_SETTINGS = ("train", "eval", "observe", "envs", "rollout", "serve")
"""Verbs that take settings as flags, e.g. ``--algo.gamma 0.98``."""
_SETTING = re.compile(r"--\w[\w-]*(\.[\w-]+)+(=|$)")


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
    words, settings = _sorted_out(sys.argv[1:] if arguments is None else arguments)
    args, rest = parser.parse_known_args(words)
    args.overrides = [*rest, *settings]
    if args.overrides and args.verb not in WITH_SETTINGS:
        parser.error(f"unrecognised arguments: {' '.join(args.overrides)}")
    set_passive_threads()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    try:
        status: int = args.run(args)
    except (SensoriumError, OSError) as error:  # OSError: a full disk, a read-only folder
        if args.debug:
            raise
        print(f"sensorium: {error}", file=sys.stderr)
        if any(f"Unknown setting {setting_of(word)!r}" in str(error) for word in rest):
            print(f"Options of sensorium {args.verb}: {_options(parser, args.verb)}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sensorium: interrupted", file=sys.stderr)
        return 130
    return status


def _sorted_out(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What argparse reads, and settings as ``--name=value``: values with spaces it would take for files."""
    words: list[str] = []
    settings: list[str] = []
    queue = list(arguments)
    while queue:
        word = queue.pop(0)
        if word == "--":  # everything behind it is positional
            return [*words, word, *queue], settings
        if not _SETTING.match(word):
            words.append(word)
        elif "=" not in word and queue and not queue[0].startswith("--"):
            settings.append(f"{word}={queue.pop(0)}")
        else:
            settings.append(word)
    return words, settings


def _options(parser: argparse.ArgumentParser, verb: str) -> str:
    (verbs,) = (a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return ", ".join(sorted(word for word in verbs[verb]._option_string_actions if word.startswith("--")))


if __name__ == "__main__":
    sys.exit(main())
