"""The real NeMo Gym in an environment of its own: start its servers, run its command, leave nothing behind.

`make bench-peers` installs it into `benchmarks/peers/nemo_gym`; SENSORIUM_PEER_NEMO_GYM names an interpreter
elsewhere. Its servers would each build a virtual environment; here all of them use the one of the peer. Ray
leaves its process group and writes below the home folder, so every process carries a mark in its environment
by which it is found and ended, and the home folder is a temporary one.
"""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
INSTALL = "make bench-peers"
_MARK = "SENSORIUM_BENCHMARK_RUN"
_KINDS = ("resources_servers", "responses_api_agents", "responses_api_models", "environment_servers")


def peer_python() -> Path:
    """Interpreter that has nemo-gym: that of the environment variable, else of the peer's folder."""
    named = os.environ.get("SENSORIUM_PEER_NEMO_GYM")
    return Path(named) if named else HERE / "peers" / "nemo_gym" / "bin" / "python"


def installed() -> Path:
    """The folder of packages that NeMo Gym is in, with the environments that it ships."""
    return next((peer_python().parent.parent / "lib").glob("python*/site-packages"))


def missing() -> str | None:
    """Why NeMo Gym cannot be run, as a sentence; None: it can."""
    if peer_python().exists():
        return None
    return f"NeMo Gym is not installed ({peer_python()} does not exist); install it with: {INSTALL}"


def free_port() -> int:
    """A port of the loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Workspace:
    """A folder in which NeMo Gym runs: its home, its logs and the interpreters of its servers."""

    folder: Path
    extra_root: Path | None = None
    """Folder with ``resources_servers/<name>/`` and so on, beside those that NeMo Gym ships."""
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        for name in ("home", "venvs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._ray = Path(f"/tmp/sray-{self.mark[:8]}")  # Ray's socket paths must be short

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of every process."""
        more = {
            _MARK: self.mark,
            "HOME": str(self.folder / "home"),
            "RAY_AUTH_MODE": "disabled",
            "RAY_TMPDIR": str(self._ray),
            "RAY_USAGE_STATS_ENABLED": "0",
            "WANDB_MODE": "disabled",
            "PATH": f"{peer_python().parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
        }
        if self.extra_root is not None:
            more["NEMO_GYM_EXTRA_ROOTS"] = str(self.extra_root)
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))
        }
        return kept | more

    def overrides(self, head_port: int) -> list[str]:
        """Hydra overrides: where the head is, and that all servers run in the peer's environment."""
        return [
            f"++uv_venv_dir={self.folder / 'venvs'}",
            "++skip_venv_if_present=true",
            f"++head_server={{host:127.0.0.1,port:{head_port}}}",
            "++allow_openai_version_skew=true",
        ]

    def give_interpreter(self, kind: str, implementation: str, environment: Path | None = None) -> None:
        """Let a server run in an environment that exists, by default the peer's, instead of building one."""
        link = self.folder / "venvs" / kind / implementation / ".venv"
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to((environment or peer_python().parent.parent).resolve(), target_is_directory=True)

    def gym(self, *arguments: str, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Run ``gym ...`` to its end and end whatever it left.

        Raises:
            RuntimeError: It failed or took too long; holds the end of what it said.
        """
        command = [str(peer_python().parent / "gym"), *arguments]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise RuntimeError(f"gym {arguments[0]} took over {timeout_s:g} s") from error
        if process.returncode != 0:
            raise RuntimeError(f"gym {' '.join(arguments)} failed:\n{said[-6000:]}")
        return subprocess.CompletedProcess(command, 0, said, "")

    def end_processes(self) -> int:
        """Kill every process that carries the mark; returns how many there were."""
        ended = 0
        for _ in range(20):
            found = processes_with(self.mark)
            if not found:
                break
            ended += len(found)
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        shutil.rmtree(self._ray, ignore_errors=True)
        return ended


def processes_with(mark: str) -> list[int]:
    """Processes whose environment holds the mark, and all below them.

    Ray's workers overwrite the memory in which the system keeps their environment.
    """
    wanted = f"{_MARK}={mark}".encode()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                pid = int(entry.name)
                parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(pid)
    grown = True
    while grown:
        below = {pid for pid, parent in parents.items() if parent in found} - found
        found |= below
        grown = bool(below)
    return sorted(found)


def resident_bytes(pids: Sequence[int]) -> int:
    """Memory of processes: proportional set size, so that shared pages count once."""
    total = 0
    for pid in pids:
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += 1024 * int(next(line.split()[1] for line in lines if line.startswith("Pss:")))
    return total


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU time of processes that run, and of all children of this process that have ended."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ticks / os.sysconf("SC_CLK_TCK") + ended.ru_utime + ended.ru_stime


def get_json(url: str, timeout_s: float = 5.0) -> Any:
    """GET a JSON document."""
    with urllib.request.urlopen(url, timeout=timeout_s) as reply:
        return json.load(reply)


@dataclass(frozen=True)
class Running:
    """Servers that are up."""

    workspace: Workspace
    head_port: int
    urls: Mapping[str, str]
    """Base URL of each server by its name in the configuration."""
    start_s: float
    """Seconds from the command to readiness."""
    log: Path

    def processes(self) -> list[int]:
        """All processes, Ray's included."""
        return processes_with(self.workspace.mark)


@contextmanager
def servers(
    workspace: Workspace, configs: Sequence[str], overrides: Sequence[str] = (), *, timeout_s: float = 300.0
) -> Iterator[Running]:
    """Start servers as ``gym env start`` does, wait until the head says that all are ready, end them at last.

    Args:
        workspace: Where they run.
        configs: Configuration files, as paths or as paths inside NeMo Gym's install.
        overrides: Further Hydra overrides.
        timeout_s: How long they may take to become ready.

    Raises:
        RuntimeError: They did not become ready; holds the end of the log.
    """
    head_port = free_port()
    for kind in _KINDS:
        for implementation in _implementations(kind, workspace.extra_root):
            workspace.give_interpreter(kind, implementation)
    command = [str(peer_python().parent / "gym"), "env", "start"]
    for config in configs:
        command += ["--config", str(config)]
    command += [*workspace.overrides(head_port), *overrides]
    log = workspace.folder / "servers.log"
    with log.open("wb") as said:
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=workspace.folder,
            env=workspace.environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_until_ready(process, f"http://127.0.0.1:{head_port}/readyz", timeout_s, log)
            seconds = time.monotonic() - start
            instances = get_json(f"http://127.0.0.1:{head_port}/server_instances")
            urls = {instance["process_name"]: instance["url"] for instance in instances}
            yield Running(workspace, head_port, urls, seconds, log)
        finally:
            workspace.end_processes()
            process.wait()


def _implementations(kind: str, extra_root: Path | None) -> list[str]:
    roots = [installed() / kind] + ([] if extra_root is None else [extra_root / kind])
    return [entry.name for root in roots if root.is_dir() for entry in root.iterdir() if entry.is_dir()]


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, timeout_s: float, log: Path) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with suppress(OSError, urllib.error.URLError, ValueError):
            get_json(url, 2.0)
            return
        time.sleep(0.1)
    why = "ended" if process.poll() is not None else f"was not ready after {timeout_s:g} s"
    raise RuntimeError(f"NeMo Gym {why}:\n{log.read_text(errors='replace')[-6000:]}")


@dataclass(frozen=True)
class MockModel:
    """A running `mock_openai`."""

    url: str
    """Base URL, ending in ``/v1``."""

    @property
    def overrides(self) -> list[str]:
        """Hydra overrides with which NeMo Gym's servers ask this model."""
        return [f"++policy_base_url={self.url}", "++policy_api_key=k", "++policy_model_name=mock"]

    def reset(self) -> None:
        """Count from here."""
        get_json(f"{self.url.removesuffix('/v1')}/reset")

    def seconds(self, calls: int) -> float:
        """Time from the first call to the last.

        Args:
            calls: How many there must have been.

        Raises:
            RuntimeError: There were fewer or more, so something else was done than was meant.
        """
        found = get_json(f"{self.url.removesuffix('/v1')}/stats")
        if found["calls"] != calls:
            raise RuntimeError(f"The model was called {found['calls']} times instead of {calls}.")
        return float(found["seconds"])


@contextmanager
def mock_model(arguments: Mapping[str, Any]) -> Iterator[MockModel]:
    """Run `mock_openai` in a process of its own.

    Args:
        arguments: Of each tool that it shall call where it is offered.
    """
    command = [sys.executable, str(HERE / "mock_openai.py"), "0", json.dumps(dict(arguments))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().split()[-1]
            yield MockModel(f"http://127.0.0.1:{port}/v1")
        finally:
            process.kill()
