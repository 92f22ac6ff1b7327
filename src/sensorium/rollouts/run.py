"""A whole run: input rows to results, failures and metrics on the disk."""

import asyncio
import contextlib
import hashlib
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sensorium.rollouts.collect import CollectConfig, Collector, Outcome
from sensorium.rollouts.finish import sort_rows, write_metrics
from sensorium.rollouts.inputs import Inputs
from sensorium.rollouts.media_store import MediaReader
from sensorium.rollouts.progress import Reporter
from sensorium.rollouts.run_record import RunFiles
from sensorium.rollouts.run_store import RunStore, Start
from sensorium.rollouts.runner import RowRunner
from sensorium.rollouts.task_rows import Repeats, materialise

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is begun and left."""

    start: Start = "new"
    retry_failed: bool = False
    """On a resumed run: try rollouts again that failed for good, or used up their attempts."""
    inline_media: bool = False
    """Leave media in the rows."""
    sort: bool = False
    """Put the rows in order at the end."""
    collect: CollectConfig = field(default_factory=CollectConfig)


async def run_rollouts(
    runner: RowRunner,
    inputs: Inputs,
    repeats: Repeats,
    output: Path,
    options: RunOptions,
    reporter: Reporter,
) -> tuple[Outcome, list[dict[str, Any]]]:
    """Collect rollouts into a file, and its aggregate metrics beside it.

    SIGINT and SIGTERM let open episodes end, or stop at once when they come again.

    Args:
        runner: Runs one row; open already, and closed by who made it.
        inputs: Rows without problems.
        repeats: What to make of them.
        output: The file.
        options: How.
        reporter: Is told what happens.

    Returns:
        What came of the run, and its aggregate metrics.

    Raises:
        RunDirectoryError: The output has rows that may not be touched, or is damaged.
        OSError: A file cannot be written.
    """
    files = RunFiles(output)
    store = RunStore(files, inline_media=options.inline_media)
    try:
        store.begin(options.start, run_identity(runner, inputs, repeats))
        for note in store.notes:
            reporter.note(note)
        if options.retry_failed:
            store.forget_failures()
        rows = _rollouts(inputs, repeats, store)
        store.write_inputs(rows)
        collector = Collector(runner, store, rows, options.collect, reporter)
        with _interrupts(collector):
            outcome = await collector.run()
        metrics = await write_metrics(files, runner) if store.done else []
    finally:
        store.close()
    if options.sort:
        sort_rows(output)
    return outcome, metrics


def run_identity(runner: RowRunner, inputs: Inputs, repeats: Repeats) -> dict[str, Any]:
    """What decides the results of a run."""
    digest = hashlib.sha256("\n".join(text.strip() for text, _ in inputs.rows).encode()).hexdigest()
    return {
        "input": {"num_rows": len(inputs.rows), "sha256": digest},
        "num_repeats": repeats.num_repeats,
        "seed": repeats.seed,
        "agent": repeats.agent,
        "sampling": dict(repeats.sampling),
        **runner.identity,
    }


def _rollouts(inputs: Inputs, repeats: Repeats, store: RunStore) -> list[dict[str, Any]]:
    """All rollouts, with media where the output keeps them."""
    reader = MediaReader(inputs.path.parent)
    rows: Sequence[tuple[str, dict[str, Any]]] = inputs.rows
    rows = [(text, store.kept(reader.inlined(row) if "media:" in text else row)) for text, row in rows]
    return materialise(rows, repeats)


@contextlib.contextmanager
def _interrupts(collector: Collector) -> Iterator[None]:
    """Let signals interrupt the run instead of the process, where this thread is given them."""
    loop = asyncio.get_running_loop()
    handled: list[signal.Signals] = []
    before: Mapping[signal.Signals, Any] = {one: signal.getsignal(one) for one in _SIGNALS}
    try:
        for one in _SIGNALS:
            try:
                loop.add_signal_handler(one, collector.interrupt)
            except (ValueError, RuntimeError, NotImplementedError):  # not the main thread, or no such thing
                break
            handled.append(one)
        yield
    finally:
        for one in handled:
            loop.remove_signal_handler(one)
            if before[one] is not None:  # None: it was set outside of Python
                signal.signal(one, before[one])
