"""Workers that die, hang or fail: their episodes are lost, nothing else is, and nothing is left behind."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sensorium.core import EnvError
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.doom.backend import DoomBackend
from sensorium.envs.embodied.doom.config import DoomOptions
from sensorium.envs.embodied.doom.pool import WorkerPool
from sensorium.envs.embodied.vector import MultiModalVectorEnv

pytestmark = pytest.mark.doom
pytest.importorskip("vizdoom")

CONFIG = EmbodiedEnvConfig(task="doom/basic")
EVERYONE = np.ones(3, np.bool_)
NOTHING = np.zeros(3, np.int64)


def pool_of(backend: DoomBackend) -> WorkerPool:
    assert isinstance(backend.games, WorkerPool)
    return backend.games


def engines_in(folder: Path) -> int:
    """How many engine processes keep their files in this folder."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                count += f"{folder}/".encode() in (entry / "cmdline").read_bytes()
    return count


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where workers keep their files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Iterator[DoomBackend]:
    options: dict[str, Any] = {"num_workers": 2, **getattr(request, "param", {})}
    backend = DoomBackend(CONFIG, DoomOptions(**options), 3)
    backend.reset(np.arange(3, dtype=np.uint64), EVERYONE)
    backend.observe()  # the episodes have begun
    yield backend
    backend.close()


def test_killed_worker_fails_its_worlds_and_the_run_goes_on(
    backend: DoomBackend, caplog: pytest.LogCaptureFixture
) -> None:
    pool = pool_of(backend)
    victim, survivor = pool.worker_pids
    before = backend.describe(1)
    os.kill(victim, signal.SIGKILL)
    with caplog.at_level(logging.WARNING):
        outcome = backend.step(NOTHING, None, EVERYONE)
    assert outcome.failed.tolist() == [True, False, True]  # worlds 0 and 2 share a worker
    assert outcome.reward.tolist() == [0.0, -4.0, 0.0]
    assert not outcome.terminated.any()
    assert "SIGKILL" in caplog.text
    assert pool.worker_pids[0] != victim
    assert pool.worker_pids[1] == survivor
    backend.reset(np.arange(3, dtype=np.uint64), outcome.failed)
    outcome = backend.step(NOTHING, None, EVERYONE)
    assert not outcome.failed.any()
    assert outcome.reward.tolist() == [-4.0, -4.0, -4.0]
    assert backend.describe(1)["seed"] == before["seed"]


def test_worker_killed_before_a_reset_costs_only_the_other_episode_it_held(backend: DoomBackend) -> None:
    os.kill(pool_of(backend).worker_pids[0], signal.SIGKILL)
    backend.reset(np.array([50, 51, 52], np.uint64), np.array([True, False, False]))
    outcome = backend.step(NOTHING, None, EVERYONE)
    assert outcome.failed.tolist() == [False, False, True]
    assert backend.describe(0)["seed"] == 50


def test_vector_env_flags_the_failure_once() -> None:
    env = MultiModalVectorEnv(CONFIG.updated({"backend_options": {"num_workers": 1}}), 1)
    try:
        env.reset(seed=0)
        os.kill(pool_of(env.worlds.backend).worker_pids[0], signal.SIGKILL)  # type: ignore[arg-type]
        status = [env.step(np.zeros(1, np.int64))[4]["status"][0] for _ in range(4)]
        assert status == ["error", "running", "running", "running"]
    finally:
        env.close()


@pytest.mark.parametrize(
    "backend", [{"timeout_s": 8.0}], indirect=True
)  # time enough to start on a busy machine
def test_hung_worker_is_replaced(backend: DoomBackend) -> None:
    os.kill(pool_of(backend).worker_pids[1], signal.SIGSTOP)
    outcome = backend.step(NOTHING, None, EVERYONE)
    assert outcome.failed.tolist() == [False, True, False]
    backend.reset(np.arange(3, dtype=np.uint64), outcome.failed)
    assert not backend.step(NOTHING, None, EVERYONE).failed.any()


@pytest.mark.parametrize("backend", [{"max_failures": 2}], indirect=True)
def test_failures_in_a_row_stop_the_run(backend: DoomBackend) -> None:
    pool = pool_of(backend)
    os.kill(pool.worker_pids[0], signal.SIGKILL)
    backend.step(NOTHING, None, EVERYONE)
    os.kill(pool.worker_pids[0], signal.SIGKILL)
    backend.reset(np.arange(3, dtype=np.uint64), EVERYONE)
    with pytest.raises(EnvError, match=r"2 times in a row.*SIGKILL"):
        backend.observe()


def test_error_in_a_worker_carries_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vizdoom.py").write_text("raise RuntimeError('the engine is broken')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EnvError, match=r"did not start(.|\n)*Traceback(.|\n)*the engine is broken"):
        DoomBackend(CONFIG, DoomOptions(), 1)


def test_close_leaves_nothing_behind(backend: DoomBackend, temporary: Path) -> None:
    pool = pool_of(backend)
    engine_ids = [engine_id for worker in pool._workers for engine_id in worker._engine_ids]
    assert len(engine_ids) == 3
    assert engines_in(temporary) == 3
    os.kill(pool.worker_pids[0], signal.SIGKILL)  # leaves engines and their memory, if nobody cleans up
    backend.step(NOTHING, None, EVERYONE)
    pids = pool.worker_pids
    backend.close()
    backend.close()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert engines_in(temporary) == 0
    assert list(temporary.iterdir()) == []
    assert not [name for name in os.listdir("/dev/shm") if name.endswith(tuple(engine_ids))]


@pytest.mark.parametrize("end", ["sys.exit(0)", "raise KeyboardInterrupt", "os.kill(os.getpid(), 9)"])
def test_workers_end_with_their_parent(end: str, temporary: Path) -> None:
    script = (
        "import os, sys, numpy as np\n"
        "from sensorium.envs.embodied.config import EmbodiedEnvConfig\n"
        "from sensorium.envs.embodied.registry import build_backend\n"
        "backend = build_backend(EmbodiedEnvConfig(task='doom/basic'), 1)\n"
        "print(*backend.games.worker_pids, flush=True)\n"
        f"{end}\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    (pid,) = run.stdout.split()
    deadline = time.monotonic() + 10
    while (Path(f"/proc/{pid}").exists() or list(temporary.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()
    assert engines_in(temporary) == 0
    assert list(temporary.iterdir()) == []
