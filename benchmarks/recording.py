"""What was measured, where and with what, as a table for people and as JSON for the documentation."""

import platform
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from sensorium.core import available_cores
from sensorium.core.files import atomic_write_json

RESULTS = Path(__file__).parent / "results"
"""Folder of the committed results."""

CONSOLE = Console(width=None if sys.stdout.isatty() else 140)
"""Where tables go; wide enough for them when the output is a file."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range over repeats."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Summarise at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        """Three significant digits: ``1,230 [1,190, 1,260]``."""
        return f"{_short(self.median)} [{_short(self.min)}, {_short(self.max)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison."""

    name: str
    unit: str
    ours: Spread
    peer_name: str | None
    """Whom we compare with; None: nobody."""
    peer: Spread | None
    ratio: Spread | None
    """Ours / peer, of the repeats that ran next to each other."""
    cpu_ratio: Spread | None
    """The same per CPU second instead of per second. Where it differs from `ratio`, the sides did not get the
    same share of the machine, or do not use its cores alike. None where work is done in other processes."""
    goal: str
    """In words, e.g. ``">= 2 x peer"``; empty: no goal."""
    met: bool | None
    """Whether the median met the goal; None without a goal or without a peer."""
    note: str
    """What one must know to read the figures."""
    details: dict[str, Any] = field(default_factory=dict)
    """Whatever else the measurements returned, of their last repeat."""


def load_average() -> tuple[float, float, float]:
    """Runnable processes over the last 1, 5 and 15 minutes: other people's work shows here."""
    return psutil.getloadavg()


def describe_machine() -> dict[str, Any]:
    """Describe the machine: cores that we may use, CPU model, memory, system."""
    return {
        "cores": available_cores(),
        "cpu_model": _cpu_model(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def installed_versions(packages: Sequence[str]) -> dict[str, str | None]:
    """Version of each package; None where it is not installed."""
    return {package: _version(package) for package in packages}


def describe_source() -> dict[str, Any]:
    """Git revision of this checkout, and whether files differ from it; None without git."""
    revision, changes = (
        _git("rev-parse", "HEAD"),
        _git("status", "--porcelain", "--", "src", "benchmarks/*.py"),
    )
    return {"git_revision": revision, "modified": None if changes is None else bool(changes)}


def describe_command(arguments: Sequence[str]) -> str:
    """The command as one types it in the root of a checkout, wherever that is and whoever ran it.

    Args:
        arguments: Of the process, the script first. Absolute paths below the checkout become relative ones,
            of others only the last piece is kept.
    """
    script, *rest = arguments
    return shlex.join(["python", f"benchmarks/{Path(script).name}", *map(_portable, rest)])


def _portable(argument: str) -> str:
    option, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
    path = Path(value)
    if not path.is_absolute():
        return argument
    root = Path(__file__).resolve().parent.parent
    shown = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    return f"{option}{equals}{shown}"


def write_results(path: Path, content: Mapping[str, Any]) -> None:
    """Write a result file: the command and the source, then `content`."""
    atomic_write_json(path, {"command": describe_command(sys.argv), **describe_source(), **content})
    CONSOLE.print(f"written to {path}")


def print_rows(rows: Sequence[Row]) -> None:
    """Print a table of comparisons and the notes below it."""
    table = Table(title="ours against peers: median [lowest, highest]")
    for heading in ("", "unit", "ours", "peer", "peer is", "ours / peer", "per CPU s", "goal", "met"):
        table.add_column(heading)
    for row in rows:
        table.add_row(*_cells(row))
    CONSOLE.print(table)
    for row in rows:
        CONSOLE.print(f"[bold]{row.name}[/bold]: {row.note}", highlight=False)


def row_as_json(row: Row) -> dict[str, Any]:
    """JSON form of a row, with the extra time that ours takes for a step beside the peer."""
    overhead = None if row.ratio is None else _overhead_percent(row.ratio.median)
    return asdict(row) | {"overhead_percent": overhead}


def _cells(row: Row) -> Iterator[str]:
    yield from (row.name, row.unit, str(row.ours))
    yield "" if row.peer is None else str(row.peer)
    yield row.peer_name or ""
    yield "" if row.ratio is None else _ratio(row.ratio, is_rate="/" in row.unit)
    yield "" if row.cpu_ratio is None else f"{row.cpu_ratio.median:.2f}"
    yield row.goal
    yield "" if row.met is None else "yes" if row.met else "NO"


def _ratio(ratio: Spread, *, is_rate: bool) -> str:
    slower = f", {_overhead_percent(ratio.median):+.0f} % time" if is_rate and ratio.median < 1.0 else ""
    return f"{ratio.median:.2f} [{ratio.min:.2f}, {ratio.max:.2f}]{slower}"


def _overhead_percent(ratio: float) -> float:
    return 100.0 * (1.0 / ratio - 1.0)


def _short(value: float) -> str:
    """Three significant digits, never in exponent form."""
    if value == 0:
        return "0"
    digits = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{round(value, 3 - digits):,.{max(0, 3 - digits)}f}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent.parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )
