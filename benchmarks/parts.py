"""The command of a benchmark that has several parts: which to run, how often, where the result goes."""

import argparse
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from measuring import Benchmark
from recording import (
    CONSOLE,
    RESULTS,
    Row,
    describe_machine,
    installed_versions,
    load_average,
    print_rows,
    row_as_json,
    write_results,
)


def run_parts(
    name: str,
    about: str,
    benchmarks: Mapping[str, Callable[..., Benchmark]],
    packages: Sequence[str],
    arguments: Sequence[str] | None,
) -> int:
    """Measure, print the table, write the result file; returns 0 whether or not goals are met.

    Args:
        name: Begins the name of the result file.
        about: Help of the command.
        benchmarks: Name of a part -> what it measures, given ``quick``.
        packages: Whose versions are recorded.
        arguments: Of the command line; those of this process when None.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=benchmarks, help="measure one part")
    parser.add_argument("--repeats", type=int, default=None, help="default: 3, with --quick 1")
    parser.add_argument("--quick", action="store_true", help="tiny numbers: does it run?")
    parser.add_argument("--output", type=Path, default=None, help="result file")
    args = parser.parse_args(arguments)
    repeats = args.repeats or (1 if args.quick else 3)
    load_before, start = load_average(), time.perf_counter()
    if load_before[0] > 0.5:
        CONSOLE.print(
            f"[bold]The machine is busy (load {load_before[0]:.1f}); ratios may be those of luck.[/bold]"
        )
    rows: list[Row] = []
    for part in [args.only] if args.only else benchmarks:
        rows += benchmarks[part](quick=args.quick).run(repeats, functools.partial(_say, part))
    print_rows(rows)
    content = {
        "machine": describe_machine()
        | {"load_before": load_before, "load_after": load_average(), "wall_s": time.perf_counter() - start},
        "versions": installed_versions(packages),
        "seeds": [0],
        "repeats": repeats,
        "rows": [row_as_json(row) for row in rows],
    }
    # The committed file is that of a complete run; the rest has other names, so that it is not overwritten.
    parts = [name, *([args.only] if args.only else []), *(["quick"] if args.quick else [])]
    write_results(args.output or RESULTS / f"{'-'.join(parts)}.json", content)
    return 0


def _say(part: str, text: str) -> None:
    CONSOLE.print(f"{part}: {text}")
