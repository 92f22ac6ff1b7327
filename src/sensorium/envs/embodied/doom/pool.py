"""Worker processes: start, ask with a time limit, notice death, clean up after it, start again."""

import contextlib
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sensorium.core import EnvError
from sensorium.envs.embodied.doom.memory import create_shared
from sensorium.envs.embodied.doom.settings import IDLE, GameSettings
from sensorium.envs.embodied.doom.worker import BROKEN, QUIT, RUN, WorkerJob

_LOG = logging.getLogger(__name__)
_GOODBYE_S = 3.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_ENGINE_MEMORY = ("ViZDoomSM", "ViZDoomMQCtr", "ViZDoomMQDoom")


class WorkerDied(Exception):
    """A worker died, broke or took too long; the message says which, with what it said last."""


class _Worker:
    """One process; `request` and `answer` raise WorkerDied, after which only `end` is allowed.

    The process is the leader of a session of its own: Ctrl-C in the terminal does not reach it, and killing
    the session takes its engines along.
    """

    def __init__(self, job: WorkerJob, memory_descriptor: int, timeout_s: float) -> None:
        self.job = job
        self.rows = list(job.worlds)
        self._timeout_s = timeout_s
        self._folder = tempfile.TemporaryDirectory(prefix="sensorium-doom-")
        self._engine_ids: list[str] = []
        self._deadline = time.monotonic() + timeout_s
        self._unanswered = 1  # the greeting, when its engines run
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        self._poll = select.poll()  # kept: `Connection.poll` builds a selector each time, ten times slower
        self._poll.register(self._connection.fileno(), select.POLLIN)
        with theirs, open(self._stderr, "wb") as stderr:
            descriptors = (theirs.fileno(), memory_descriptor)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sensorium.envs.embodied.doom.worker", *map(str, descriptors)],
                pass_fds=descriptors,
                cwd=self._folder.name,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        with contextlib.suppress(ConnectionError):  # it died at once: the answer will tell
            self._connection.send(job)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _stderr(self) -> Path:
        return Path(self._folder.name) / "stderr.log"

    def request(self, message: bytes) -> None:
        """Send a request; first waits for what is still unanswered (the greeting, or an interrupted call)."""
        while self._unanswered:
            self.answer()
        self._deadline = time.monotonic() + self._timeout_s
        try:
            self._connection.send_bytes(message)
        except ConnectionError as error:
            raise WorkerDied(self._obituary()) from error
        self._unanswered += 1

    def answer(self) -> bytes:
        """Wait for one answer; what follows its first byte."""
        try:
            if not self._poll.poll(max(0.0, self._deadline - time.monotonic()) * 1000.0):
                raise WorkerDied(f"no answer within {self._timeout_s:g} s (timeout_s)")
            answer = self._connection.recv_bytes()
        except (EOFError, ConnectionError) as error:
            raise WorkerDied(self._obituary()) from error
        if answer[:1] == BROKEN:
            raise WorkerDied(answer[1:].decode(errors="replace").strip())
        self._unanswered -= 1
        if not self._engine_ids:
            self._engine_ids = json.loads(answer[1:])
        return answer[1:]

    def _obituary(self) -> str:
        """How the process ended, and the last lines it wrote."""
        try:
            code = self._process.wait(_GOODBYE_S)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        cause = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        last_words = self._stderr.read_text(errors="replace")[-2000:].strip()
        return f"ended by {cause}" + (f"\n{last_words}" if last_words else "")

    def end(self, *, politely: bool) -> None:
        """End the process and remove every trace of it; may be called twice."""
        if politely and self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._connection.send_bytes(QUIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GOODBYE_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # engines too: they outlive a killed worker
        self._process.wait()
        self._connection.close()
        for engine_id in self._engine_ids:
            for name in _ENGINE_MEMORY:
                Path(f"/dev/shm/{name}{engine_id}").unlink(missing_ok=True)
        self._engine_ids = []
        self._folder.cleanup()


class WorkerPool:
    """Several workers that share the worlds; one that dies is started again.

    Args:
        settings: How every game runs.
        num_envs: How many worlds; worker w owns worlds w, w + num_workers, ...
        num_workers: How many processes.
        timeout_s: Longest time for one request.
        max_failures: Failures of one worker in a row that are forgiven, less one.

    Raises:
        EnvError: A worker did not start.
    """

    def __init__(
        self, settings: GameSettings, num_envs: int, num_workers: int, *, timeout_s: float, max_failures: int
    ) -> None:
        self.num_envs = num_envs
        self._timeout_s = timeout_s
        self._max_failures = max_failures
        self._memory, self.arrays = create_shared(settings.layout(num_envs, num_workers))
        self._failures = [0] * num_workers
        self._workers: list[_Worker] = []
        self._finalizer = weakref.finalize(self, _end_all, self._workers, self._memory)
        for index in range(num_workers):
            worlds = tuple(range(index, num_envs, num_workers))
            job = WorkerJob(
                settings=settings, num_envs=num_envs, num_workers=num_workers, index=index, worlds=worlds
            )
            self._workers.append(_Worker(job, self._memory, timeout_s))
        for worker in self._workers:
            try:
                worker.answer()
            except WorkerDied as death:
                self.close()
                raise EnvError(f"The doom engine did not start: {death}") from death

    @property
    def worker_pids(self) -> list[int]:
        """Process id of each worker."""
        return [worker.pid for worker in self._workers]

    def run(self) -> NDArray[np.bool_]:
        """Carry out `arrays["command"]` in all worlds.

        Returns:
            (N,) True where the world's worker died, so that every episode it held is lost.

        Raises:
            EnvError: A worker failed `max_failures` times in a row.
        """
        lost = np.zeros(self.num_envs, np.bool_)
        commands = self.arrays["command"]
        asked: list[int] = []
        for index, worker in enumerate(self._workers):
            if commands[worker.rows].any():
                try:
                    worker.request(RUN)
                    asked.append(index)
                except WorkerDied as death:
                    lost[worker.rows] = True
                    self._replace(index, death)
        for index in asked:
            worker = self._workers[index]
            try:
                worker.answer()
                self._failures[index] = 0
            except WorkerDied as death:
                lost[worker.rows] = True
                self._replace(index, death)
        return lost

    def ask(self, kind: bytes, world: int) -> bytes:
        """Send a request about one world and return the answer.

        Raises:
            EnvError: The world's worker died.
        """
        worker = self._workers[world % len(self._workers)]
        try:
            worker.request(kind + world.to_bytes(4, "little"))
            return worker.answer()
        except WorkerDied as death:
            self._replace(worker.job.index, death)
            raise EnvError(f"The doom worker of world {world} died: {death}") from death

    def _replace(self, index: int, death: WorkerDied) -> None:
        """Bury a worker and start its successor, whose worlds wait for a reset."""
        old = self._workers[index]
        old.end(politely=False)
        self.arrays["command"][old.rows] = IDLE
        self._failures[index] += 1
        if self._failures[index] >= self._max_failures:
            raise EnvError(
                f"Doom worker {index} (worlds {', '.join(map(str, old.rows))}) failed "
                f"{self._failures[index]} times in a row (max_failures). The last time: {death}"
            )
        _LOG.warning("doom worker %d (pid %d) is restarted: %s", index, old.pid, death)
        self._workers[index] = _Worker(old.job, self._memory, self._timeout_s)

    def close(self) -> None:
        """End all workers and free the memory; may be called twice. Also happens at exit."""
        self._finalizer()


def _end_all(workers: list[_Worker], memory_descriptor: int) -> None:
    for worker in workers:
        worker.end(politely=True)
    os.close(memory_descriptor)


def _environment() -> dict[str, str]:
    """One thread per worker, and the same package as here, installed or not."""
    package_root = str(Path(__file__).parents[4])
    paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": os.pathsep.join(paths)}
