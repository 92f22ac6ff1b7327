"""How far a run is: a bar with an ETA on a terminal, a line now and then elsewhere."""

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from sensorium.envs.episode import Failure

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@runtime_checkable
class Stream(Protocol):
    """Where lines go."""

    def write(self, text: str, /) -> object:
        """Write a text."""
        ...

    def flush(self) -> object:
        """Send it on."""
        ...

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...


@runtime_checkable
class Reporter(Protocol):
    """Is told what happens in a run."""

    def begun(self, total: int, done: int) -> None:
        """The run begins.

        Args:
            total: Rollouts of the run.
            done: Of them, those that had a result before.
        """
        ...

    def finished(self, reward: float | None) -> None:
        """A rollout has a result."""
        ...

    def failed(self, failure: Failure, *, again: bool) -> None:
        """An attempt failed.

        Args:
            failure: Why.
            again: It will be tried again.
        """
        ...

    def note(self, text: str) -> None:
        """Something that people should know."""
        ...

    def closed(self) -> None:
        """The run is over."""
        ...


class Tally:
    """Counts what a reporter is told."""

    def __init__(self) -> None:
        self.total = 0
        self.before = 0
        self.num_done = 0
        self.num_lost = 0
        self.num_retries = 0
        self.kinds: Counter[str] = Counter()
        self._rewards = 0.0
        self._num_rewards = 0
        self._started = time.monotonic()

    def begin(self, total: int, done: int) -> None:
        """Start the clock."""
        self.total, self.before, self._started = total, done, time.monotonic()

    def finish(self, reward: float | None) -> None:
        """Count a result."""
        self.num_done += 1
        if reward is not None:
            self._rewards += reward
            self._num_rewards += 1

    def fail(self, failure: Failure, again: bool) -> None:
        """Count a failed attempt."""
        self.kinds[failure.kind] += 1
        if again:
            self.num_retries += 1
        else:
            self.num_lost += 1

    @property
    def per_minute(self) -> float:
        """Results per minute since the beginning."""
        return 60.0 * self.num_done / max(1e-9, self.elapsed_s)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._started

    @property
    def eta_s(self) -> float | None:
        """Seconds that are left; None before there is a result."""
        settled = self.num_done + self.num_lost
        if not settled:
            return None
        left = self.total - self.before - settled
        return left * (time.monotonic() - self._started) / settled

    @property
    def mean_reward(self) -> float | None:
        """Of the results so far."""
        return self._rewards / self._num_rewards if self._num_rewards else None

    def describe(self, *, is_over: bool = False) -> str:
        """The counts on one line."""
        settled = self.before + self.num_done
        parts = [f"{settled:,} of {self.total:,} rollouts"]
        if self.num_done:
            parts.append(_rate(self.per_minute))
        else:
            parts.append(f"{duration(self.elapsed_s)} so far")
        if self.mean_reward is not None:
            parts.append(f"mean reward {self.mean_reward:.3f}")
        if self.num_retries:
            parts.append(f"{self.num_retries} tried again")
        if self.num_lost:
            parts.append(f"{self.num_lost} lost")
        if not is_over and self.eta_s is not None and settled + self.num_lost < self.total:
            parts.append(f"{duration(self.eta_s)} left")
        return ", ".join(parts)


def _rate(per_minute: float) -> str:
    return f"{per_minute:,.0f}/min" if per_minute >= 10.0 else f"{60.0 * per_minute:,.0f}/h"


def duration(seconds: float) -> str:
    """Seconds in words, e.g. ``2 h 05 min``, ``3 min 20 s``, ``12 s``."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"


class LineReporter:
    """Prints a line every so often.

    Args:
        stream: Where to.
        every_s: Seconds between lines.
    """

    def __init__(self, stream: Stream | None = None, every_s: float = 10.0) -> None:
        self.tally = Tally()
        self._stream = stream or sys.stderr
        self._every_s = every_s
        self._next = 0.0

    def begun(self, total: int, done: int) -> None:
        """See `Reporter.begun`."""
        self.tally.begin(total, done)
        self._next = time.monotonic() + self._every_s

    def finished(self, reward: float | None) -> None:
        """See `Reporter.finished`."""
        self.tally.finish(reward)
        self._changed()

    def failed(self, failure: Failure, *, again: bool) -> None:
        """See `Reporter.failed`."""
        if not self.tally.kinds[failure.kind]:
            self.note(f"first {failure.kind} ({failure.stage}): {failure.reason}")
        self.tally.fail(failure, again)
        self._changed()

    def note(self, text: str) -> None:
        """See `Reporter.note`."""
        print(text, file=self._stream, flush=True)

    def closed(self) -> None:
        """See `Reporter.closed`."""
        self.note(self.tally.describe(is_over=True))

    def _changed(self) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._every_s
            self.note(self.tally.describe())


class BarReporter(LineReporter):
    """A bar with an ETA on a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Progress | None = None
        self._line: TaskID | None = None

    def begun(self, total: int, done: int) -> None:
        """See `Reporter.begun`."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        super().begun(total, done)
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"))
        self._bar = Progress(*columns, console=Console(stderr=True), transient=False, refresh_per_second=4)
        self._line = self._bar.add_task("rollouts", total=total, completed=done, said="")
        self._bar.start()

    def note(self, text: str) -> None:
        """See `Reporter.note`."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            super().note(text)

    def closed(self) -> None:
        """See `Reporter.closed`."""
        if self._bar is not None:
            self._changed()
            self._bar.stop()
            self._bar = None

    def _changed(self) -> None:
        if self._bar is None or self._line is None:
            return
        said = self.tally.describe().partition(" rollouts, ")[2]
        settled = self.tally.before + self.tally.num_done + self.tally.num_lost
        self._bar.update(self._line, completed=settled, said=said)


class SilentReporter(LineReporter):
    """Counts and says nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
        return None


def choose_reporter(stream: Stream, *, every_s: float = 10.0) -> LineReporter:
    """A bar for a terminal, else lines."""
    return BarReporter() if stream.isatty() else LineReporter(stream, every_s)
