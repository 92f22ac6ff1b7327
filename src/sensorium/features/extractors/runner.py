"""Runs extractors over observations: in batches, cached, with time-outs, beside the event loop."""

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

from sensorium.core import ConfigError, available_cores
from sensorium.core.errors import unknown_name
from sensorium.features.disk_cache import cache_folder
from sensorium.features.extractors.attempts import reason_of
from sensorium.features.extractors.base import Extractor, Features
from sensorium.features.extractors.cache import FeatureCache
from sensorium.features.extractors.config import FeaturesConfig
from sensorium.features.extractors.entry import unpack
from sensorium.features.extractors.registry import EXTRACTORS, build_extractor, extractor_names
from sensorium.features.extractors.report import FeatureReport, notes_of
from sensorium.features.extractors.service import ExtractorService, Outcome, Pending
from sensorium.observations.base import Part

__all__ = ["FeatureReport", "FeatureRunner"]


class _Asked(NamedTuple):
    """What one extractor was asked, and when."""

    service: ExtractorService
    answers: dict[str, Outcome | Pending]
    keys: list[dict[str, str]]
    """For every observation: part id -> key of its content, of the parts that the extractor reads."""
    began: float

    @property
    def futures(self) -> list[Future[Outcome]]:
        return [answer.future for answer in self.answers.values() if isinstance(answer, Pending)]

    @property
    def remaining_s(self) -> float:
        return max(0.0, self.began + self.service.timeout_s - time.monotonic())


class FeatureRunner:
    """Extracts features from the parts of observations.

    Equal content is extracted once: within a batch, from one observation to the next, and, through the cache
    on disk, from one run to the next. Every extractor has a thread of its own. One that raises, lacks a
    package or takes too long gives `unavailable` features with the reason, never an exception. It may be
    used by several threads and event loops at once, pickled, and used in a forked process.

    Args:
        config: Which extractors, and their limits.
        extractors: Extractors that are built already, beside those that `config` names.

    Raises:
        ConfigError: An extractor or one of its settings is unknown, or two have the same name.

    Example:
        >>> from sensorium.observations.base import Part
        >>> from sensorium.observations.values import TextValue
        >>> part = Part(id="note", modality="text", value=TextValue(text="Why does it fail?"))
        >>> with FeatureRunner(FeaturesConfig(extractors=("sentiment",), cache=False)) as runner:
        ...     runner.run([part]).features["note"]["sentiment"].summary  # doctest: +SKIP
        'negative question'
    """

    def __init__(self, config: FeaturesConfig | None = None, *, extractors: Sequence[Extractor] = ()) -> None:
        self.config = config or FeaturesConfig()
        self._given = tuple(extractors)
        self._start()

    def _start(self) -> None:
        config = self.config
        _check_names(config, [extractor.name for extractor in self._given])
        folder = None
        if config.cache:
            own = config.cache_folder
            folder = Path(own).expanduser() if own else cache_folder("features")
        self._cache = FeatureCache(
            folder,
            limit_bytes=int(config.cache_limit_mb * 1e6),
            memory_bytes=int(config.memory_mb * 1e6),
        )
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._lookups: ThreadPoolExecutor | None = None
        places = threading.Semaphore(config.max_workers or available_cores())
        self._services: dict[str, ExtractorService] = {}
        self._broken: dict[str, str] = {}
        for name, extractor, identity in self._extractors():
            if name in self._services:
                raise ConfigError(f"Extractor {name!r} is there twice; remove one.")
            self._services[name] = ExtractorService(
                extractor,
                identity,
                self._cache,
                places,
                max_batch=config.max_batch,
                timeout_s=config.timeouts_s.get(name, config.timeout_s),
            )

    def _extractors(self) -> Iterator[tuple[str, Extractor, Hashable]]:
        for name in dict.fromkeys(self.config.extractors):
            settings = self.config.settings.get(name, {})
            try:
                yield name, build_extractor(name, settings), (name, _identity(settings))
            except ImportError as error:  # of another distribution
                self._broken[name] = reason_of(error)
        for extractor in self._given:
            yield extractor.name, extractor, object()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the extractors, in the order in which they are reported."""
        return tuple(self._services)

    def run(self, parts: Sequence[Part]) -> FeatureReport:
        """Extract from one observation; blocks until everything is there or timed out."""
        return self.run_many([parts])[0]

    def run_many(self, observations: Sequence[Sequence[Part]]) -> list[FeatureReport]:
        """Extract from several observations, e.g. of many environments, in one batch.

        Returns:
            One report per observation, in order.
        """
        asked = self._ask(observations)
        try:
            for one in sorted(asked, key=lambda one: one.remaining_s):
                if wait(one.futures, timeout=one.remaining_s).not_done:
                    one.service.leave_behind()
        except BaseException:
            _abandon(asked)
            raise
        return self._reports(observations, asked)

    async def arun(self, parts: Sequence[Part]) -> FeatureReport:
        """As `run`, without ever blocking the event loop."""
        return (await self.arun_many([parts]))[0]

    async def arun_many(self, observations: Sequence[Sequence[Part]]) -> list[FeatureReport]:
        """As `run_many`, without ever blocking the event loop."""
        if not self._services:
            return self._reports(observations, [])
        loop, pool = asyncio.get_running_loop(), self._lookup_pool()
        asking = pool.submit(self._ask, observations)
        try:
            asked = await asyncio.shield(asyncio.wrap_future(asking))
        except asyncio.CancelledError:
            asking.add_done_callback(lambda done: _abandon(done.result()))
            raise
        try:
            for one in sorted(asked, key=lambda one: one.remaining_s):
                if not await _all_done(one.futures, one.remaining_s):
                    one.service.leave_behind()
        except asyncio.CancelledError:
            _abandon(asked)
            raise
        return await loop.run_in_executor(pool, self._reports, observations, asked)

    def close(self) -> None:
        """Release threads and files; the next use starts them anew. Calls that hang are left behind."""
        with self._lock:
            pool, self._lookups = self._lookups, None
        if pool is not None:
            pool.shutdown(wait=False)
        for service in self._services.values():
            service.worker.close()
        self._cache.close()

    def __enter__(self) -> "FeatureRunner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"config": self.config, "_given": self._given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _lookup_pool(self) -> ThreadPoolExecutor:
        self._ensure_own_process()
        with self._lock:
            if self._lookups is None:
                self._lookups = ThreadPoolExecutor(2, thread_name_prefix="sensorium-lookup")
            return self._lookups

    def _ensure_own_process(self) -> None:
        """Threads and locks do not survive a fork: the child starts its own."""
        if os.getpid() != self._pid:
            self._start()

    def _ask(self, observations: Sequence[Sequence[Part]]) -> list[_Asked]:
        self._ensure_own_process()
        asked = []
        for service in self._services.values():
            wanted: dict[str, Part] = {}
            keys: list[dict[str, str]] = []
            for parts in observations:
                read = {part.id: (_key(part), part) for part in parts if _accepts(service.extractor, part)}
                wanted.update(read.values())
                keys.append({part_id: key for part_id, (key, _) in read.items()})
            asked.append(_Asked(service, service.ask(wanted) if wanted else {}, keys, time.monotonic()))
        return asked

    def _reports(
        self, observations: Sequence[Sequence[Part]], asked: Sequence[_Asked]
    ) -> list[FeatureReport]:
        outcomes = [one.service.collect(one.answers) for one in asked]
        used: set[tuple[str, str]] = set()
        reports = []
        for index, parts in enumerate(observations):
            features: dict[str, dict[str, Features]] = {part.id: {} for part in parts}
            milliseconds = dict.fromkeys(self._services, 0.0)
            hits = misses = 0
            for one, found in zip(asked, outcomes, strict=True):
                for part_id, key in one.keys[index].items():
                    is_first = (one.service.name, key) not in used
                    used.add((one.service.name, key))
                    entry = _features(part_id, one.service, found[key], is_first)
                    features[part_id][one.service.name] = entry
                    milliseconds[one.service.name] += entry.seconds * 1000.0
                    hits += entry.is_cached
                    misses += not entry.is_cached
            notes = [*notes_of(features), *(f"{n}: unavailable: {why}" for n, why in self._broken.items())]
            if self._cache.note:
                notes.append(self._cache.note)
            reports.append(
                FeatureReport(
                    features=features, milliseconds=milliseconds, hits=hits, misses=misses, notes=tuple(notes)
                )
            )
        return reports


def _check_names(config: FeaturesConfig, given: Sequence[str]) -> None:
    foreign = {*config.extractors, *config.settings, *config.timeouts_s} - EXTRACTORS.keys()
    if not foreign:
        return  # to look for those of other distributions takes milliseconds
    known = extractor_names()
    for name in (*config.extractors, *config.settings):
        if name not in known:
            raise unknown_name("extractor", name, known)
    for name in config.timeouts_s:
        if name not in known and name not in given:
            raise unknown_name("extractor", name, (*known, *given))


def _identity(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True, default=str)


def _accepts(extractor: Extractor, part: Part) -> bool:
    """Whether the part is read; an extractor that cannot tell is asked, and what it raises is the reason."""
    try:
        return extractor.accepts(part)
    except Exception:
        return True


def _key(part: Part) -> str:
    """Which content the part has; parts that cannot be hashed have none in common."""
    try:
        return f"{part.modality.value}\x1f{part.digest}"
    except Exception:
        return f"{part.modality.value}\x1f{part.id}\x1f{id(part)}"


def _features(part_id: str, service: ExtractorService, outcome: Outcome, is_first: bool) -> Features:
    entry = outcome.entry if is_first else unpack(outcome.packed)
    is_cached = entry is not None and (outcome.is_cached or not is_first)
    return Features(
        part_id=part_id,
        extractor=service.name,
        version=service.version,
        vector=None if entry is None else entry.vector,
        data={} if entry is None else entry.data,
        summary="" if entry is None else entry.summary,
        unavailable=outcome.unavailable,
        seconds=outcome.seconds if is_first and not is_cached else 0.0,
        is_cached=is_cached,
    )


async def _all_done(futures: Sequence[Future[Outcome]], timeout_s: float) -> bool:
    """Wait, at most so long, and tell whether all are done; futures that others wait for are left alone."""
    if not futures:
        return True
    loop, event, waiting = asyncio.get_running_loop(), asyncio.Event(), len(futures)

    def count() -> None:
        nonlocal waiting
        waiting -= 1
        if waiting == 0:
            event.set()

    def one_is_done(_: Future[Outcome]) -> None:
        with contextlib.suppress(RuntimeError):  # it came so late that the loop is closed
            loop.call_soon_threadsafe(count)

    for future in futures:
        future.add_done_callback(one_is_done)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout_s)
    return event.is_set()


def _abandon(asked: Sequence[_Asked]) -> None:
    """Nobody waits any more: what has not begun is not computed."""
    for one in asked:
        one.service.collect(one.answers)
