"""One thread that owns the model, and everybody else who waits for it."""

import atexit
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from sensorium.core import ModelError
from sensorium.llm.base import ContextLengthError
from sensorium.llm.local.config import EngineConfig
from sensorium.llm.local.jobs import Job, Vocabulary
from sensorium.llm.local.requests import Generation, ModelClosedError, QueueFullError, Request

_CLOSE_S = 30.0


@dataclass(slots=True)
class EngineStats:
    """What the engine did so far."""

    requests: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    completion_tokens: int = 0
    steps: int = 0
    busy_s: float = 0.0
    """Seconds in the model."""


class Engine:
    """Serves requests with a model, many at a time; may be called from any thread and event loop.

    Args:
        model: A causal language model of transformers. While the engine is open nobody else may change it,
            except inside `paused`.
        vocabulary: Its tokenizer.
        config: Sizes and limits.
        context_tokens: Longest prompt and answer together.

    Raises:
        ConfigError: The model keeps another state than keys and values.

    Example:
        >>> future = engine.submit(Request(prompt=(1, 2, 3)))  # doctest: +SKIP
        >>> future.result().token_ids  # doctest: +SKIP
    """

    def __init__(
        self, model: Any, vocabulary: Vocabulary, config: EngineConfig, *, context_tokens: int
    ) -> None:
        from sensorium.llm.local.decoder import Decoder

        self.config = config
        self.context_tokens = context_tokens
        self.stats = EngineStats()
        self._decoder = Decoder(model, vocabulary, config)
        self._queue: deque[tuple[Job, Future[Generation]]] = deque()
        self._futures: dict[Job, Future[Generation]] = {}
        self._changed = threading.Condition()
        self._pausing = threading.RLock()
        self._is_paused = False
        self._is_stepping = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="local-model", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # a thread inside torch must not outlive the interpreter's end

    @property
    def model(self) -> Any:
        """The model object; see `paused`."""
        return self._decoder.model

    @property
    def weights_version(self) -> int:
        """How often the weights were changed, or what `paused` was told last."""
        return self._decoder.weights_version

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @property
    def num_running(self) -> int:
        """Requests that are read or decode."""
        return self._decoder.num_jobs

    def submit(self, request: Request) -> "Future[Generation]":
        """Queue a request; cancelling the future frees its place at the next step.

        An answer is at most as long as the context leaves room for, and then ends with ``length``.

        Raises:
            ContextLengthError: The prompt leaves no room for an answer.
            QueueFullError: Too many requests wait.
            ModelClosedError: The engine was closed.
            ModelError: The prompt is empty, or what is said in any case leaves nothing to sample.
        """
        prompt_tokens = len(request.prompt)
        if prompt_tokens == 0:
            raise ModelError("The prompt has no tokens. Expected one at least.")
        room = self.context_tokens - prompt_tokens
        if room < 1:
            raise ContextLengthError(
                f"The prompt has {prompt_tokens} tokens, and the context length is {self.context_tokens} "
                "with the answer. Shorten the conversation or the descriptions of tools."
            )
        future: Future[Generation] = Future()
        limit = min(room, request.sampling.max_tokens or room)
        if len(request.said) >= limit:
            raise ModelError(f"Of {limit} tokens of an answer, {len(request.said)} are said in any case.")
        job = Job(request=request, limit=limit)
        future.add_done_callback(partial(_note_cancelled, job))
        with self._changed:
            if self._is_closed:
                raise ModelClosedError("The model was closed. Make a new one.")
            # One that can start at once does not wait: with a queue of 0 there are still max_batch places.
            num_taken = len(self._queue) + self._decoder.num_jobs
            if num_taken >= self.config.max_queue + self.config.max_batch:
                raise QueueFullError(
                    f"{len(self._queue)} requests wait for the local model already; at most "
                    f"{self.config.max_queue} may. Send fewer at once, wait, or raise engine.max_queue."
                )
            self._queue.append((job, future))
            self._changed.notify_all()
        return future

    @contextmanager
    def paused(self, *, version: int | None = None) -> Iterator[Any]:
        """Hold the engine while the weights change: ``with engine.paused() as model: ...``.

        Requests under way are finished first; others wait. Afterwards `weights_version` has grown and nothing
        that was computed with the old weights is used any more. Every completion says its version. While the
        engine is not paused others may read the weights, but not change them.

        Args:
            version: Of the weights afterwards; by default one more than before.

        Raises:
            ModelClosedError: The engine was closed.
        """
        with self._pausing:
            with self._changed:
                self._is_paused = True
                self._changed.notify_all()
                self._changed.wait_for(
                    lambda: self._is_closed or (not self._is_stepping and self._decoder.num_jobs == 0)
                )
                if self._is_closed:
                    self._is_paused = False
                    raise ModelClosedError("The model was closed.")
            try:
                yield self._decoder.model
            finally:
                with self._changed:
                    self._decoder.weights_changed(version)
                    self._is_paused = False
                    self._changed.notify_all()

    def close(self) -> None:
        """Fail what waits and runs with `ModelClosedError`, and end the thread; may be called again."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=_CLOSE_S)
        atexit.unregister(self.close)

    def _work(self) -> None:
        while self._admit():
            began = time.perf_counter()
            try:
                done = self._decoder.step()
            except Exception as error:  # no request may wait for ever because of a fault in the engine
                done = self._decoder.abandon()
                for job in done:
                    failure = ModelError(f"The local engine failed: {type(error).__name__}: {error}")
                    failure.__cause__ = error
                    job.fail(failure)
            self.stats.busy_s += time.perf_counter() - began
            self.stats.steps += 1
            with self._changed:
                self._is_stepping = False
                self._changed.notify_all()
            for job in done:
                self._deliver(job)
        closed = ModelClosedError("The model was closed before it answered.")
        with self._changed:
            waiting, self._queue = self._queue, deque()
        for job in self._decoder.abandon():
            job.fail(closed)
            self._deliver(job)
        for _, future in waiting:
            _settle(future, closed)

    def _admit(self) -> bool:
        """Wait for work and take it; False when the engine was closed."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._is_closed or self._has_work())
                if self._is_closed:
                    return False
                while self._queue and not self._is_paused:
                    job, future = self._queue[0]
                    if not future.cancelled():
                        if not self._decoder.has_room(len(job.reads)):
                            break
                        self._futures[job] = future
                        self._decoder.start(job)
                    self._queue.popleft()
                if self._decoder.num_jobs:
                    self._is_stepping = True
                    return True

    def _has_work(self) -> bool:
        return self._decoder.num_jobs > 0 or (bool(self._queue) and not self._is_paused)

    def _deliver(self, job: Job) -> None:
        future = self._futures.pop(job)
        self.stats.requests += 1
        self.stats.failures += job.failure is not None
        self.stats.prompt_tokens += len(job.request.prompt)
        self.stats.reused_tokens += job.generation.reused_tokens
        self.stats.completion_tokens += len(job.generation.token_ids)
        _settle(future, job.failure or job.generation)


def _note_cancelled(job: Job, future: "Future[Generation]") -> None:
    job.is_cancelled = future.cancelled()


def _settle(future: "Future[Generation]", result: Generation | Exception) -> None:
    """Give a waiting caller its result; one who has gone away meanwhile gets none."""
    with suppress(InvalidStateError):
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
