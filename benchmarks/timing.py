"""The measured process: run one measurement and write down what it found.

Only the standard library is imported at the top, so that any interpreter can run it, also a peer's own.

python timing.py MODULE:FUNCTION SETTINGS_AS_JSON FILE_FOR_THE_RESULT
"""

import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

Result = dict[str, Any]
"""What a measurement returns: `rate` (per second), and details."""


def cpu_s_of_all() -> float:
    """CPU seconds that this process and all processes below it have used so far, while they run."""
    import psutil

    used = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.Error):  # it has just ended
            times = process.cpu_times()
            used += times.user + times.system
    return used


def speed(
    step: Callable[[], int],
    *,
    seconds: float,
    warm_up: int,
    fewest: int = 1,
    cpu_clock: Callable[[], float] = time.process_time,
) -> Result:
    """Call `step` for `seconds` and count what it did.

    Args:
        step: Does some work and returns how much it did.
        seconds: How long to measure.
        warm_up: Calls beforehand that are not counted.
        fewest: Calls that are made even if that takes longer.
        cpu_clock: CPU seconds so far; by default of all threads of this process.

    Returns:
        `rate` (per second of wall time), `steps`, `wall_s` and `cpu_s`.
    """
    for _ in range(warm_up):
        step()
    done = calls = 0
    cpu_start, start = cpu_clock(), time.perf_counter()
    while calls < fewest or time.perf_counter() - start < seconds:
        done += step()
        calls += 1
    wall_s, cpu_s = time.perf_counter() - start, cpu_clock() - cpu_start
    return {"rate": done / wall_s, "steps": done, "wall_s": wall_s, "cpu_s": cpu_s}


def versions(*packages: str) -> dict[str, str]:
    """Version of each package in this interpreter."""
    return {package: version(package) for package in packages}


def main(arguments: Sequence[str]) -> None:
    """Run one measurement in this process: target, settings as JSON, file for the result."""
    target, settings, answer = arguments
    module, _, function = target.partition(":")
    result = getattr(importlib.import_module(module), function)(**json.loads(settings))
    Path(answer).write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
