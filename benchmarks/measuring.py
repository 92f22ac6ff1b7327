"""Measuring speeds in fresh processes, ours and the peers' in turn.

A measurement is a function ``module:function`` of this folder. It runs in a process of its own, so that no
measurement inherits the caches, threads or memory of another. Repeats are interleaved (ours, peer, ours,
peer, ...), so that whatever else the machine does hits both.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recording import Row, Spread

Result = dict[str, Any]
"""What a measurement returns: `rate` (per second), and details."""


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
    timeout_s: float = 300.0

    @property
    def missing(self) -> str | None:
        """First module that is not installed."""
        return next((module for module in self.needs if find_spec(module) is None), None)


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
    same: str = ""
    """Detail in which both sides must agree, as a sign that they did the same."""
    in_process: bool = False
    """Whether both sides do all their work in the measured process, so that its CPU time tells."""
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
        for repeat in range(repeats):
            for name, measurement in self.measurements.items():
                if measurement.missing is not None:
                    if repeat == 0:
                        say(f"{name}: left out, {measurement.missing} is not installed")
                    continue
                result = run_alone(measurement)
                results.setdefault(name, []).append(result)
                say(f"{name}, repeat {repeat + 1} of {repeats}: {result['rate']:,.0f} per second")
        return [_row(comparison, results) for comparison in self.comparisons if comparison.ours in results]


def run_alone(measurement: Measurement) -> Result:
    """Run a measurement in a fresh process with a fixed number of threads that sleep while they wait.

    Raises:
        RuntimeError: It failed; holds the end of what it said.
    """
    with tempfile.TemporaryDirectory(prefix="sensorium-benchmark-") as folder:
        answer = Path(folder) / "result.json"
        command = [
            sys.executable,
            __file__,
            measurement.target,
            json.dumps(dict(measurement.settings)),
            str(answer),
        ]
        process = subprocess.run(
            command,
            cwd=folder,
            env=_environment(measurement.threads),
            capture_output=True,
            text=True,
            timeout=measurement.timeout_s,
        )
        if process.returncode != 0:
            raise RuntimeError(f"{measurement.target} failed:\n{process.stderr[-3000:]}")
        result: Result = json.loads(answer.read_text())
        return result


def speed(step: Callable[[], int], *, seconds: float, warm_up: int, fewest: int = 1) -> Result:
    """Call `step` for `seconds` and count what it did.

    Args:
        step: Does some work and returns how much it did.
        seconds: How long to measure.
        warm_up: Calls beforehand that are not counted.
        fewest: Calls that are made even if that takes longer.

    Returns:
        `rate` (per second of wall time), `steps`, `wall_s` and `cpu_s` (of this process, all threads).
    """
    for _ in range(warm_up):
        step()
    done = calls = 0
    cpu_start, start = time.process_time(), time.perf_counter()
    while calls < fewest or time.perf_counter() - start < seconds:
        done += step()
        calls += 1
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu_start
    return {"rate": done / wall_s, "steps": done, "wall_s": wall_s, "cpu_s": cpu_s}


def _row(comparison: Comparison, results: Mapping[str, Sequence[Result]]) -> Row:
    ours = [result["rate"] for result in results[comparison.ours]]
    peer_results = results.get(comparison.peer or "", [])
    peer = [result["rate"] for result in peer_results]
    ratio = Spread.of([a / b for a, b in zip(ours, peer, strict=True)]) if peer else None
    cpu_ratio = None
    if peer and comparison.in_process:
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
        note=comparison.note,
        details=details,
    )


def _per_cpu_second(result: Result) -> float:
    return float(result["steps"] / result["cpu_s"])


def _environment(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    passive = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
    return os.environ | passive | dict.fromkeys(names, str(threads)) | {"CUDA_VISIBLE_DEVICES": ""}


def main(arguments: Sequence[str]) -> None:
    """Run one measurement in this process: target, settings as JSON, file for the result."""
    target, settings, answer = arguments
    module, _, function = target.partition(":")
    result = getattr(importlib.import_module(module), function)(**json.loads(settings))
    Path(answer).write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
