"""Measuring speeds in fresh processes, ours and the peers' in turn.

A measurement is a function ``module:function`` of this folder. It runs in a process of its own (`timing`), so
that no measurement inherits the caches, threads or memory of another. Repeats are interleaved (ours, peer,
ours, peer, ...), so that whatever else the machine does hits both. A peer that cannot be installed beside us
has an interpreter of its own.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import timing
from recording import Row, Spread
from timing import Result

_FIND = "import sys; from importlib.util import find_spec; sys.exit(find_spec(sys.argv[1]) is None)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One thing to measure."""

    target: str
    """``module:function``; the function takes `settings` as keywords and returns a `Result`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1
    """Threads of OpenMP, BLAS and numba."""
    needs: tuple[str, ...] = ()
    """Modules without which it is left out."""
    python: Path | None = None
    """Interpreter of a peer's own environment; None: this one. Where such a peer fails, the others go on."""
    install: str = ""
    """Command that installs what is missing."""
    timeout_s: float = 300.0

    @property
    def missing(self) -> str | None:
        """What it lacks, and how to get it, as a sentence without its beginning; None: nothing."""
        how = f"; install it with: {self.install}" if self.install else ""
        if self.python is not None and not self.python.exists():
            return f"{self.python} does not exist{how}"
        module = next((module for module in self.needs if not self._has(module)), None)
        return None if module is None else f"{module} is not installed{how}"

    def _has(self, module: str) -> bool:
        if self.python is None:
            return find_spec(module) is not None
        return subprocess.run([self.python, "-c", _FIND, module], capture_output=True).returncode == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A row of the table: which measurements are compared, and what was hoped for."""

    name: str
    unit: str
    ours: str
    """Name of a measurement."""
    peer: str | None = None
    """Name of a measurement."""
    peer_name: str | None = None
    goal: str = ""
    """In words."""
    reached: Callable[[float, float | None], bool] | None = None
    """(median of ours, median ratio ours / peer) -> whether the goal was met."""
    value: str = "rate"
    """What of the results is compared; with another one, such as seconds or megabytes, less is better."""
    same: str = ""
    """Detail in which both sides must agree, as a sign that they did the same."""
    cpu_tells: bool = False
    """Whether `cpu_s` of both sides covers all that they do."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Measurements that are repeated in turn, and how they are compared."""

    measurements: Mapping[str, Measurement]
    comparisons: Sequence[Comparison]

    def run(self, repeats: int, say: Callable[[str], None]) -> list[Row]:
        """Measure everything `repeats` times, in turn.

        Args:
            repeats: At least 1.
            say: Told what is being measured, and what was found.
        """
        results: dict[str, list[Result]] = {}
        left_out: dict[str, str] = {}
        for repeat in range(repeats):
            for name, measurement in self.measurements.items():
                if name in left_out:
                    continue
                found = _attempt(measurement)
                if isinstance(found, str):
                    say(f"{name}: left out, {found}")
                    left_out[name] = found.strip().splitlines()[-1]
                    results.pop(name, None)
                    continue
                results.setdefault(name, []).append(found)
                say(f"{name}, repeat {repeat + 1} of {repeats}: {found['rate']:,.0f} per second")
        shown = [comparison for comparison in self.comparisons if comparison.ours in results]
        return [_row(comparison, results, left_out) for comparison in shown]


def _attempt(measurement: Measurement) -> Result | str:
    """What was measured, or why nothing was."""
    if measurement.missing is not None:
        return measurement.missing
    try:
        return run_alone(measurement)
    except RuntimeError as error:
        if measurement.python is None:
            raise
        return str(error)


def run_alone(measurement: Measurement) -> Result:
    """Run a measurement in a fresh process with a fixed number of threads that sleep while they wait.

    Raises:
        RuntimeError: It failed; holds the end of what it said.
    """
    with tempfile.TemporaryDirectory(prefix="sensorium-benchmark-") as folder:
        answer = Path(folder) / "result.json"
        command = [
            str(measurement.python or sys.executable),
            timing.__file__,
            measurement.target,
            json.dumps(dict(measurement.settings)),
            str(answer),
        ]
        with subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(measurement.threads),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=measurement.timeout_s)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)  # with its children, or they slow the others
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                seconds = measurement.timeout_s
                raise RuntimeError(f"{measurement.target} took over {seconds:g} s") from error
        if process.returncode != 0:
            raise RuntimeError(f"{measurement.target} failed:\n{said[-3000:]}")
        result: Result = json.loads(answer.read_text())
        return result


def _row(comparison: Comparison, results: Mapping[str, Sequence[Result]], left_out: Mapping[str, str]) -> Row:
    ours = [result[comparison.value] for result in results[comparison.ours]]
    peer_results = results.get(comparison.peer or "", [])
    why_not = left_out.get(comparison.peer or "")
    peer = [result[comparison.value] for result in peer_results]
    ratio = Spread.of([a / b for a, b in zip(ours, peer, strict=True)]) if peer else None
    cpu_ratio = None
    if peer and comparison.cpu_tells:
        pairs = zip(results[comparison.ours], peer_results, strict=True)
        cpu_ratio = Spread.of([_per_cpu_second(a) / _per_cpu_second(b) for a, b in pairs])
    met = None
    if comparison.reached is not None and (peer or comparison.peer is None or "peer" not in comparison.goal):
        met = comparison.reached(Spread.of(ours).median, None if ratio is None else ratio.median)
    details = {"ours": results[comparison.ours][-1]}
    for mine, theirs in zip(results[comparison.ours], peer_results, strict=False):
        if comparison.same and mine[comparison.same] != theirs[comparison.same]:
            raise RuntimeError(
                f"{comparison.name}: {comparison.same} is {mine[comparison.same]} on our side and "
                f"{theirs[comparison.same]} on the peer's, so they did not do the same; nothing is compared."
            )
    if peer_results:
        details["peer"] = peer_results[-1]
    return Row(
        name=comparison.name,
        unit=comparison.unit,
        ours=Spread.of(ours),
        peer_name=comparison.peer_name if peer else None,
        peer=Spread.of(peer) if peer else None,
        ratio=ratio,
        cpu_ratio=cpu_ratio,
        goal=comparison.goal,
        met=met,
        note=comparison.note if why_not is None else f"{comparison.note} (no figure of the peer: {why_not})",
        details=details,
    )


def _per_cpu_second(result: Result) -> float:
    return float(result["steps"] / result["cpu_s"])


def _environment(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    passive = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
    return os.environ | passive | dict.fromkeys(names, str(threads)) | {"CUDA_VISIBLE_DEVICES": ""}
