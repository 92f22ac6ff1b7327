"""Where one extractor is asked: what is known already, what is being computed, and what has failed."""

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from sensorium.core import MissingDependencyError
from sensorium.features.extractors.attempts import attempt_each, reason_of
from sensorium.features.extractors.base import Extractor
from sensorium.features.extractors.cache import FeatureCache
from sensorium.features.extractors.entry import Entry, pack, unpack
from sensorium.features.extractors.worker import Worker
from sensorium.observations.base import Part

RETRY_S = 600.0
"""After so long, content that failed and packages that were missing are tried again."""
_MAX_FAILURES = 4096


class Outcome(NamedTuple):
    """What an extractor found in some content."""

    packed: bytes = b""
    entry: Entry | None = None
    """The content of `packed`; None when there is nothing."""
    unavailable: str | None = None
    seconds: float = 0.0
    is_cached: bool = False


class Pending:
    """Content that is being computed, and how many wait for it."""

    def __init__(self, key: str, part: Part) -> None:
        self.key, self.part = key, part
        self.future: Future[Outcome] = Future()
        self.waiters = 0


class FailureMemory:
    """Reasons that need not be found out again and again; they are forgotten after `RETRY_S`."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, tuple[float, str]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> str | None:
        """The reason, when it is known and not too old."""
        with self._lock:
            found = self._entries.get(key)
            return found[1] if found is not None and time.monotonic() - found[0] < RETRY_S else None

    def add(self, key: Hashable, reason: str) -> None:
        """Keep a reason."""
        with self._lock:
            self._entries[key] = (time.monotonic(), reason)
            if len(self._entries) > _MAX_FAILURES:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()


MISSING = FailureMemory()
"""Extractors that lack a package or a model: known to all runners of this process."""


class ExtractorService:
    """One extractor with its thread. Thread-safe.

    Args:
        extractor: The extractor.
        identity: Equal for extractors that lack the same things.
        cache: Where features are kept.
        places: How many extractors compute at the same time.
        max_batch: Parts per call.
        timeout_s: Longest time for one observation.
    """

    def __init__(
        self,
        extractor: Extractor,
        identity: Hashable,
        cache: FeatureCache,
        places: threading.Semaphore,
        *,
        max_batch: int,
        timeout_s: float,
    ) -> None:
        self.extractor, self.name, self.timeout_s = extractor, extractor.name, timeout_s
        self.version = ""
        """Empty until a thread has asked the extractor, which may have to look for its model first."""
        self._identity, self._cache, self._max_batch = identity, cache, max_batch
        self.worker = Worker(self.name, places, cache.close_thread)
        self._failures = FailureMemory()
        self._pending: dict[str, Pending] = {}
        self._lock = threading.Lock()

    def ask(self, contents: Mapping[str, Part]) -> dict[str, Outcome | Pending]:
        """Look content up, and have the rest computed.

        Args:
            contents: Key of the content -> a part with it.

        Returns:
            What is known, and a `Pending` for everything else; each must be given to `collect`.
        """
        answers: dict[str, Outcome | Pending] = {}
        if self.version:
            answers.update(self._look_up(contents))
        absent = {key: part for key, part in contents.items() if key not in answers}
        missing = MISSING.get(self._identity)
        for key in absent:
            reason = missing or self._failures.get(key)
            if reason is None and self.worker.is_lost:
                reason = "busy with earlier parts, which take longer than its time-out"
            if reason is not None:
                answers[key] = Outcome(unavailable=reason)
        self._queue({key: part for key, part in absent.items() if key not in answers}, answers)
        return answers

    def collect(self, answers: Mapping[str, Outcome | Pending]) -> dict[str, Outcome]:
        """Outcomes of all that was asked; what is not there yet is unavailable, and no longer waited for."""
        late = []
        with self._lock:
            for key, answer in answers.items():
                if isinstance(answer, Pending):
                    answer.waiters -= 1
                    if answer.waiters == 0 and answer.future.cancel():
                        self._pending.pop(key, None)
                    if answer.future.cancelled() or not answer.future.done():
                        late.append(key)
        reason = f"took longer than {self.timeout_s:g} s"
        outcomes = dict.fromkeys(
            late, Outcome(unavailable=reason, seconds=self.timeout_s / max(1, len(late)))
        )
        for key, answer in answers.items():
            if key not in outcomes:
                outcomes[key] = answer.future.result() if isinstance(answer, Pending) else answer
        return outcomes

    def leave_behind(self) -> None:
        """Called when an observation timed out: a call that took half of that time or more is left alone."""
        self.worker.leave_behind(self.timeout_s / 2)

    def _look_up(self, contents: Mapping[str, Part]) -> dict[str, Outcome]:
        names = {f"{self.name}\x1f{self.version}\x1f{key}": key for key in contents}
        found: dict[str, Outcome] = {}
        for name, packed in self._cache.load(names).items():
            entry = unpack(packed)
            if entry is None:
                self._cache.forget(name)
            else:
                found[names[name]] = Outcome(packed, entry, is_cached=True)
        return found

    def _queue(self, absent: Mapping[str, Part], answers: dict[str, Outcome | Pending]) -> None:
        fresh = []
        with self._lock:
            for key, part in absent.items():
                one = self._pending.get(key)
                if one is None:
                    one = self._pending[key] = Pending(key, part)
                    fresh.append(one)
                one.waiters += 1
                answers[key] = one
        for start in range(0, len(fresh), self._max_batch):
            self.worker.submit(partial(self._work, fresh[start : start + self._max_batch]))

    def _work(self, pending: Sequence[Pending]) -> None:
        """Compute what is still wanted; runs in the worker's thread and never raises."""
        with self._lock:
            wanted = {one.key: one for one in pending if one.future.set_running_or_notify_cancel()}
        outcomes: dict[str, Outcome] = {}
        try:
            if wanted:
                outcomes = self._outcomes({key: one.part for key, one in wanted.items()})
        except MissingDependencyError as error:
            MISSING.add(self._identity, reason_of(error))
            outcomes = {key: Outcome(unavailable=reason_of(error)) for key in wanted}
        except BaseException as error:  # it cannot tell its version, or even asks the process to end
            outcomes = {key: Outcome(unavailable=reason_of(error)) for key in wanted}
        with self._lock:
            for key in wanted:
                self._pending.pop(key, None)
        for key, one in wanted.items():
            one.future.set_result(outcomes[key])

    def _outcomes(self, contents: Mapping[str, Part]) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        if not self.version:
            missing = MISSING.get(self._identity)
            if missing is not None:
                return {key: Outcome(unavailable=missing) for key in contents}
            self.version = self.extractor.version
            outcomes = self._look_up(contents)
        keys = [key for key in contents if key not in outcomes]
        attempts = attempt_each(self.extractor, [contents[key] for key in keys])
        for key, (features, reason, seconds) in zip(keys, attempts, strict=True):
            packed = b""
            if features is not None and features.unavailable is None:
                try:
                    packed = pack(features)
                except Exception as error:
                    reason = reason_of(error)
            elif features is not None:
                reason = features.unavailable or ""
            if packed:
                outcomes[key] = Outcome(packed, unpack(packed), seconds=seconds)
            else:
                self._failures.add(key, reason)
                outcomes[key] = Outcome(unavailable=reason, seconds=seconds)
        self._cache.store(
            {
                f"{self.name}\x1f{self.version}\x1f{key}": outcomes[key].packed
                for key in keys
                if outcomes[key].packed
            }
        )
        return outcomes
