"""``sensorium observe FILE...``: what a language model would read of a state, and what was left out."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from sensorium.core.config import parse_overrides, read_yaml
from sensorium.core.errors import ConfigError, ObservationError, boundary

if TYPE_CHECKING:
    from sensorium.cli.observe_delta import StateChange
    from sensorium.representations.config import PipelineConfig
    from sensorium.representations.pipeline import ObservationPipeline, Trace

PAGE_EXTRACTORS = ("code_structure", "dependencies", "sound_events")
"""What a page shows of features when no others are asked for: those that need no model."""
EXAMPLES = """examples:
  sensorium observe report.ipynb --task "Why does the regression fail?"
  sensorium observe src/ data.csv chart.png --max-tokens 2000 --html seen.html
  sensorium observe old.ipynb new.ipynb --delta
  git diff | sensorium observe - --json
Any setting can be given as a flag, e.g. --observation.compression_ratio 0.2 or
--multimodal.code.include_comments false; it is laid over the file of --config."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "observe",
        help="show what a language model would see of notebooks, tables, code, pictures, sounds",
        description="Show what a language model would read of files: tokens per part, what was left\n"
        "out and why, and the messages themselves. Nothing is sent anywhere.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # flags that are not known here are settings
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="file or directory; - reads standard input")
    parser.add_argument("--task", default="", help="what the agent is asked to do; decides what matters")
    parser.add_argument("--max-tokens", type=int, help="budget of the whole prompt (default: 8192)")
    parser.add_argument("--config", type=Path, action="append", default=[], help="YAML with settings")
    parser.add_argument(
        "--html", type=Path, metavar="PAGE", help="write a page of raw state, features, prompt"
    )
    parser.add_argument("--json", action="store_true", help="print num_tokens, messages and account as JSON")
    parser.add_argument(
        "--delta",
        action="store_true",
        help="two files: what an agent that saw the first is sent for the second",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Observe, then print.

    Raises:
        ConfigError: A setting is unknown or does not fit.
        ObservationError: Nothing can be read, or the budget is too small.
        OSError: The page cannot be written.
    """
    files, overrides = _sort_out(args.files, args.overrides)
    if args.delta and len(files) != 2:
        raise ConfigError(f"--delta compares two files, found {len(files)}: write OLD NEW --delta.")
    config = resolve_config(
        args.config,
        overrides,
        args.max_tokens,
        keep_history=args.delta,
        extractors=PAGE_EXTRACTORS if args.html is not None else (),
    )
    _tolerate_any_text()
    with (
        Console(stderr=True, quiet=args.json).status("Reading, and choosing what to send ..."),
        boundary(ObservationError, "Cannot observe"),
        contextlib.closing(_pipeline(config)) as pipeline,
    ):
        trace, change = _trace(pipeline, files, args)
    if args.html is not None:
        with boundary(ObservationError, f"Cannot write {args.html}"):
            _write_html(trace, args.html, files, args)
    try:
        if args.json:
            print(json.dumps(_plain(trace, change)))
        else:
            _print(pipeline, trace, change, args.html)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, e.g. head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def resolve_config(
    files: Sequence[Path],
    overrides: Sequence[str],
    max_tokens: int | None,
    *,
    keep_history: bool = False,
    extractors: Sequence[str] = (),
) -> "PipelineConfig":
    """Defaults, then files, then flags; later wins.

    Args:
        files: YAML files.
        overrides: Flags.
        max_tokens: Of the flag with this name.
        keep_history: Earlier states are sent, unless a file or flag says otherwise.
        extractors: Run unless a file or flag names others.

    Raises:
        ConfigError: A file or setting does not exist or does not fit.
    """
    from sensorium.representations.config import PipelineConfig

    config = PipelineConfig().updated(
        {
            "context_management": {"drop_full_history": not keep_history},
            "features": {"extractors": list(extractors)},
        }
    )
    for path in files:
        config = config.updated(read_yaml(path))
    config = config.updated(parse_overrides(overrides))
    return config if max_tokens is None else config.updated({"observation": {"max_tokens": max_tokens}})


def _sort_out(files: Sequence[str], rest: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files and settings; files may stand behind flags, where argparse leaves them over."""
    words = [word for word in rest if not word.startswith("--")]
    settings = [word for word in rest if word.startswith("--")]
    for setting in settings:
        if "." not in setting.partition("=")[0]:
            raise ConfigError(
                f"Unknown flag {setting.partition('=')[0]}. Settings have a section, "
                "e.g. --observation.compression_ratio 0.2; sensorium observe --help lists the flags."
            )
    return [*files, *words], settings


def _tolerate_any_text() -> None:
    """Output that cannot show a character shows a question mark instead."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def _pipeline(config: "PipelineConfig") -> "ObservationPipeline":
    from sensorium.representations.pipeline import ObservationPipeline

    return ObservationPipeline(config)


def _trace(
    pipeline: "ObservationPipeline", files: Sequence[str], args: argparse.Namespace
) -> "tuple[Trace, StateChange | None]":
    if args.delta:
        from sensorium.cli.observe_delta import trace_delta

        return trace_delta(pipeline, files[0], files[1], args.task)
    from sensorium.cli.observe_input import read_files

    return pipeline.trace(read_files(files, pipeline.config.reading), task=args.task), None


def _write_html(trace: "Trace", path: Path, files: Sequence[str], args: argparse.Namespace) -> None:
    from sensorium.analysis.observation_page import write_page
    from sensorium.cli.observe_input import printable

    names = [printable(name) for name in files[:5]]
    more = [f"{len(files) - 5:,} more"] if len(files) > 5 else []
    title = " \u2192 ".join(names) if args.delta else ", ".join([*names, *more])
    write_page(trace, path, title=title, task=args.task or None)


def _plain(trace: "Trace", change: "StateChange | None") -> dict[str, object]:
    representation = trace.representation
    plain: dict[str, object] = {
        "num_tokens": representation.num_tokens,
        "messages": representation.chat(),
        "account": json.loads(representation.account.model_dump_json()),
    }
    return plain if change is None else plain | {"delta": change.summary()}


def _print(
    pipeline: "ObservationPipeline", trace: "Trace", change: "StateChange | None", page: Path | None
) -> None:
    from sensorium.cli.observe_print import make_console, print_account, print_messages

    console = make_console()
    account = trace.representation.account
    print_account(console, account)
    if change is not None:
        from sensorium.cli.observe_delta import print_change

        console.print()
        whole = sum(entry.tokens_before for entry in account.entries)
        print_change(console, change, account.state_tokens, whole)
    messages = trace.representation.messages
    if change is not None and len(messages) > 1:
        console.print(
            f"the first {len(messages) - 1} of {len(messages)} messages show the old state; the last:"
        )
        messages = messages[-1:]
    print_messages(console, messages, pipeline.counter)
    if page is not None:
        console.print(f"\npage {page}", soft_wrap=True)
