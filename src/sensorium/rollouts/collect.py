"""Runs many rows at the same time, tries failed ones again, and writes what becomes of each at once."""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field

from sensorium.core import Config, ConfigError
from sensorium.envs.episode import EpisodeError, Failure
from sensorium.rollouts import row_names as names
from sensorium.rollouts.failures import failure_of
from sensorium.rollouts.progress import Reporter
from sensorium.rollouts.quota import Quota, RetryConfig
from sensorium.rollouts.row_names import RowKey
from sensorium.rollouts.run_store import RunStore
from sensorium.rollouts.runner import RowRunner

_log = logging.getLogger(__name__)
_GRACE_S = 60.0
"""Beyond an episode's own limit, for cleaning up."""
NOT_RUN = "not_run"
"""Stands in for a kind of failure where a rollout was not begun."""


class CollectConfig(Config):
    """How a run is done; none of it changes its results."""

    concurrency: int = Field(default=64, ge=1, le=100_000)
    """Rollouts under way at the same time."""
    timeout_s: float = Field(default=1800.0, gt=0.0)
    """Of one episode."""
    drain_s: float = Field(default=60.0, ge=0.0)
    """Once the run is interrupted or given up, open episodes may go on for so long."""
    sync_every_s: float = Field(default=1.0, gt=0.0)
    """Rows are on the disk after so long at the latest, also when the machine fails; a killed process loses
    none of them."""
    retries: RetryConfig = RetryConfig()


class Lost(NamedTuple):
    """Rollouts that have no result, for one and the same cause."""

    kind: str
    """One of the vocabulary of failures, or `NOT_RUN`."""
    stage: str
    num_rollouts: int
    example: str
    """Of a reason."""


class Outcome(NamedTuple):
    """What came of a run."""

    num_rollouts: int
    num_done: int
    """Rollouts that have a result, those of earlier runs included."""
    lost: tuple[Lost, ...]
    stopped: str | None
    """Why the run ended before its time."""
    interrupted: bool

    @property
    def exit_code(self) -> int:
        """0: every rollout has a result, 3: some have none, 130: interrupted."""
        if self.interrupted:
            return 130
        return 0 if self.num_done == self.num_rollouts else 3

    def describe(self) -> str:
        """What was lost, in words."""
        missing = self.num_rollouts - self.num_done
        parts = [f"The run was stopped: {self.stopped}."] if self.stopped else []
        if missing:
            parts.append(f"{missing:,} of {self.num_rollouts:,} rollouts have no result:")
            for one in self.lost:
                where = f" ({one.stage})" if one.stage else ""
                parts.append(
                    f"  {one.num_rollouts:,} x {one.kind}{where}{': ' if one.example else ''}{one.example}"
                )
            parts.append("Run the same command with --resume to try those again that may succeed.")
        return "\n".join(parts)


class Collector:
    """Runs the rows of one run.

    Args:
        runner: Runs one row; open already.
        store: Its files; begun already.
        rows: All rollouts of the run, in the form in which they are written.
        config: How it is done.
        reporter: Is told what happens.
    """

    def __init__(
        self,
        runner: RowRunner,
        store: RunStore,
        rows: Sequence[dict[str, Any]],
        config: CollectConfig,
        reporter: Reporter,
    ) -> None:
        self._runner, self._store, self._rows = runner, store, rows
        self._config, self._reporter = config, reporter
        self._quota = Quota(config.retries, len(rows), config.concurrency)
        self._queue: asyncio.Queue[tuple[dict[str, Any], int] | None] = asyncio.Queue()
        self._open = 0
        self._stopped: str | None = None
        self._interrupted = False
        self._workers: list[asyncio.Task[None]] = []

    async def run(self) -> Outcome:
        """Run everything that has no result yet.

        Raises:
            OSError: A result cannot be written; what was written before is intact.
        """
        most = self._config.retries.max_attempts
        todo = [row for row in self._rows if self._store.may_run(row, most)]
        self._open = len(todo)
        for row in todo:
            self._queue.put_nowait((row, 0))
        self._reporter.begun(len(self._rows), len(self._store.done))
        count = min(self._config.concurrency, len(todo))
        self._workers = [asyncio.create_task(self._work()) for _ in range(count)]
        syncing = asyncio.create_task(self._sync())
        try:
            if self._workers:
                await asyncio.wait(self._workers, return_when=asyncio.FIRST_EXCEPTION)
            self._cancel()
            ended = await asyncio.gather(*self._workers, return_exceptions=True)
        finally:
            self._cancel()
            syncing.cancel()
            self._reporter.closed()
        for one in ended:
            if isinstance(one, BaseException) and not isinstance(one, asyncio.CancelledError):
                raise one
        return self._outcome()

    def interrupt(self) -> None:
        """Begin no more rollouts; wait for those under way. A second time: wait no longer."""
        if self._interrupted:
            self._cancel()
            return
        self._interrupted = True
        self._stop("interrupted")
        self._reporter.note(
            f"Interrupted: finishing open episodes for up to {self._config.drain_s:g} s; "
            "interrupt again to stop at once."
        )

    def _stop(self, why: str) -> None:
        if self._stopped is None:
            self._stopped = why
            self._release()
            asyncio.get_running_loop().call_later(self._config.drain_s, self._cancel)

    def _release(self) -> None:
        """Let workers go that wait for more to do."""
        for _ in self._workers:
            self._queue.put_nowait(None)

    def _cancel(self) -> None:
        for worker in self._workers:
            worker.cancel()

    async def _work(self) -> None:
        while self._stopped is None:
            item = await self._queue.get()
            if item is None or self._stopped is not None:
                return
            row, tries = item
            await self._attempt(row, tries + 1)

    async def _attempt(self, row: dict[str, Any], tries: int) -> None:
        result: dict[str, Any] = {}
        try:
            timeout_s = self._config.timeout_s
            async with asyncio.timeout(timeout_s + _GRACE_S) as limit:
                prepared = self._store.prepared(row)
                result = await self._runner.run(prepared, timeout_s=timeout_s)
            failure = _unusable(result) or failure_of(result)
        except asyncio.CancelledError:
            stopped = Failure(kind="cancelled", reason="The run was interrupted.", stage="agent")
            self._store.write_failure(row, stopped, {})
            raise
        except EpisodeError as error:
            failure = error.failure
        except ConfigError as error:
            failure = Failure(kind="task_invalid", reason=str(error), stage="admission", terminal=True)
        except TimeoutError as error:
            said = f"The episode did not end within {timeout_s:g} s." if limit.expired() else repr(error)
            failure = Failure(kind="agent_timeout", reason=said, stage="agent")
        except Exception as error:
            _log.exception("rollout %s broke", RowKey.of(row))
            failure = Failure(
                kind="agent_run_error", reason=f"{type(error).__name__}: {error}", stage="agent"
            )
        if failure is None:
            self._succeeded(row, result)
        else:
            self._failed(row, tries, failure, result)

    def _succeeded(self, row: dict[str, Any], result: dict[str, Any]) -> None:
        self._store.write_result(row, result)
        self._quota.succeeded()
        self._reporter.finished(_reward(result))
        self._settled()

    def _failed(self, row: dict[str, Any], tries: int, failure: Failure, result: dict[str, Any]) -> None:
        if not result.get(names.NO_PERSIST):
            self._store.write_failure(row, failure, result)
        self._quota.failed(failure)
        again = self._stopped is None and self._quota.allows(failure, self._tries(row, tries))
        self._reporter.failed(failure, again=again)
        if not again:
            self._store.last_failure[RowKey.of(row)] = failure
            self._settled()
        else:
            delay_s = self._quota.delay_s(tries)
            asyncio.get_running_loop().call_later(delay_s, self._queue.put_nowait, (row, tries))
        if (why := self._quota.hopeless) is not None:
            self._stop(why)

    def _tries(self, row: dict[str, Any], tries: int) -> int:
        """Attempts so far, those of earlier runs included where they count."""
        return max(tries, self._store.attempts[RowKey.of(row)])

    def _settled(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._release()

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(self._config.sync_every_s)
            await asyncio.to_thread(self._store.sync)

    def _outcome(self) -> Outcome:
        counts: Counter[tuple[str, str]] = Counter()
        examples: dict[tuple[str, str], str] = {}
        for row in self._rows:
            key = RowKey.of(row)
            if key in self._store.done:
                continue
            failure = self._store.last_failure.get(key)
            cause = (failure.kind, failure.stage) if failure is not None else (NOT_RUN, "")
            counts[cause] += 1
            examples.setdefault(cause, failure.reason[:300] if failure is not None else "")
        lost = tuple(Lost(*cause, count, examples[cause]) for cause, count in counts.most_common())
        num_done = len(self._rows) - counts.total()
        return Outcome(len(self._rows), num_done, lost, self._stopped, self._interrupted)


def _reward(result: Mapping[str, Any]) -> float | None:
    reward = result.get(names.REWARD)
    if result.get(names.MASK) or not isinstance(reward, int | float) or not math.isfinite(reward):
        return None
    return float(reward)


def _unusable(result: Mapping[str, Any]) -> Failure | None:
    """Why a row can be neither a result nor a failed attempt."""
    if result.get(names.NO_PERSIST) and not names.is_failure(result):
        return Failure(
            kind="kill_shaped", reason="The server says that nothing of it may be kept.", stage="agent"
        )
    if names.is_failure(result):
        return None
    reward = result.get(names.REWARD)
    usable = reward is None or (isinstance(reward, int | float) and math.isfinite(reward))
    if usable and (names.REWARD in result or names.RESPONSE in result):
        return None
    said = f"reward is {reward!r}" if names.REWARD in result else f"it has the fields {sorted(result)[:10]}"
    return Failure(
        kind="answer_unreadable",
        reason=f"The answer is no result: {said}. Expected a reward, or {names.FAILURE_CLASS}.",
        stage="agent",
        terminal=True,
    )
