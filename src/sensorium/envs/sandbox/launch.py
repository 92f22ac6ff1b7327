"""Starting the supervisor of a sandbox: in namespaces made by bubblewrap, or (unsafe) as a plain process."""

import asyncio
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorium.envs.sandbox.base import Isolation, SandboxError, SandboxLimits, SandboxUnavailable
from sensorium.envs.sandbox.runtime import ETC_FILES, SYSTEM_PLACES, Runtime
from sensorium.envs.sandbox.seccomp import build_filter, is_supported

WORKDIR, SOCKETS, HOME = "/box", "/sockets", "/tmp/home"
_GUEST = "/run/supervisor"
"""Where the supervisor's files lie inside."""
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from sensorium.envs.sandbox.guest.supervisor import main; main()"
)
_USER = 1000
"""User id of programs, as they see it."""
_OUTER_USER = 65534
"""What that id is on the host where the host's user is root: `nobody`, so that limits of processes hold and
an escaped program would own nothing."""
_MIB = 1024 * 1024
_INSTALL = (
    "Install bubblewrap on Linux (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap) "
    "and allow user namespaces (in a container: --cap-add SYS_ADMIN or --security-opt seccomp=unconfined; "
    "Ubuntu 24.04: an AppArmor profile for bwrap), or accept the risk with allow_unsafe=True "
    "(--unsafe-no-sandbox)."
)


@dataclass
class Launched:
    """A supervisor that was started."""

    end: socket.socket
    """The host's end of its socket."""
    process: "subprocess.Popen[bytes]"
    """bubblewrap, or the supervisor itself."""
    errors: int
    """Descriptor from which its complaints are read."""
    isolation: Isolation
    workdir: str
    sockets: str
    home: str
    supervisor: int | None = None
    """A descriptor of the supervisor's process (pidfd) where it is not `process`."""
    host_directory: Path | None = None
    """Directory of the host to remove at the end."""
    closed: bool = False

    def complaint(self) -> str:
        """What it wrote to stderr, so far, as one line."""
        with contextlib.suppress(BlockingIOError):
            return " ".join(os.read(self.errors, 4096).decode(errors="replace").split())[-500:]
        return ""

    async def end_all(self) -> None:
        """Kill it and everything inside, and wait until nothing is left. Harmless when repeated."""
        if self.closed:
            return
        self.closed = True
        self.end.close()
        if self.supervisor is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self.supervisor, signal.SIGKILL)
            await _readable(self.supervisor, 10.0)
            os.close(self.supervisor)
        else:
            # The plain supervisor ends its programs when its socket closes.
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self.process.wait, 5.0)
        self.process.kill()
        await asyncio.to_thread(self.process.wait)
        os.close(self.errors)
        if self.host_directory is not None:
            await asyncio.to_thread(shutil.rmtree, self.host_directory, True)


async def launch_isolated(
    limits: SandboxLimits, runtime: Runtime, read_only: Mapping[str, Path], hidden: tuple[str, ...]
) -> Launched:
    """Start a supervisor as process 1 of namespaces of its own.

    Raises:
        SandboxUnavailable: bubblewrap is missing or this machine does not let it make namespaces.
    """
    if not sys.platform.startswith("linux") or shutil.which("bwrap") is None:
        raise SandboxUnavailable(f"Untrusted code needs bubblewrap, and there is no `bwrap` here. {_INSTALL}")
    is_root = _has_two_users()
    data: list[int] = []
    try:
        mounts = _mounts(limits, runtime, read_only, hidden, data)
    except BaseException:
        for fd in data:
            os.close(fd)
        raise
    ours, theirs = socket.socketpair()
    info_read, info_write = os.pipe()
    block_read, block_write = os.pipe()
    error_read, error_write = os.pipe()
    os.set_blocking(error_read, False)
    passed = [theirs.fileno(), info_write, block_read, *data]
    arguments = _namespaces(is_root, info_write, block_read) + mounts
    settings = _settings(limits, theirs.fileno(), isolated=True, user=_USER if is_root else None)
    command = [runtime.executable, "-I", "-S", "-B", "-c", _BOOT, _GUEST, json.dumps(settings)]
    try:
        process = subprocess.Popen(  # noqa: ASYNC220 - it must be a child of this thread, and forks at once
            ["bwrap", *arguments, "--", *command],
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
            stdout=error_write,
            stderr=error_write,
        )
    except BaseException:
        ours.close()
        for fd in (info_read, block_write, error_read):
            os.close(fd)
        raise
    finally:
        theirs.close()
        for fd in (*passed[1:], error_write):
            os.close(fd)
    launched = Launched(ours, process, error_read, _isolation(is_root), WORKDIR, SOCKETS, HOME)
    try:
        pid = await asyncio.to_thread(_child_pid, info_read)
        launched.supervisor = os.pidfd_open(pid)
        if is_root:
            _map_users(pid)
        os.write(block_write, b"1")
    except (OSError, ValueError, KeyError) as error:
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, 2.0)
        complaint = launched.complaint() or f"{type(error).__name__}: {error}"
        await launched.end_all()
        raise SandboxUnavailable(f"bubblewrap does not work here ({complaint}). {_INSTALL}") from error
    finally:
        os.close(info_read)
        os.close(block_write)
    return launched


async def launch_unsafe(limits: SandboxLimits, runtime: Runtime, reason: str) -> Launched:
    """Start a supervisor as a plain process of this user, in a directory that is removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix="sandbox-"))
    ours, theirs = socket.socketpair()
    error_read, error_write = os.pipe()
    try:
        os.set_blocking(error_read, False)
        for name in ("box", "sockets", "home"):
            (directory / name).mkdir()
        settings = _settings(limits, theirs.fileno(), isolated=False, user=None)
        settings |= {"workdir": str(directory / "box"), "sockets": str(directory / "sockets")}
        for place, content in _supervisor_files(directory / "supervisor").items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        command = [runtime.executable, "-I", "-S", "-B", "-c", _BOOT, str(directory / "supervisor")]
        process = subprocess.Popen(  # noqa: ASYNC220
            [*command, json.dumps(settings)],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=error_write,
            stderr=error_write,
            cwd=directory,
            env={},
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        os.close(error_read)
        shutil.rmtree(directory, ignore_errors=True)
        raise
    finally:
        theirs.close()
        os.close(error_write)
    isolation = Isolation(
        safe=False,
        mechanism="none",
        memory="watchdog over the tree, RLIMIT_DATA per process",
        processes="watchdog over the tree",
        system_calls="none refused",
        warning=f"programs run as this user and can read, change and send everything that it can ({reason})",
    )
    return Launched(
        ours,
        process,
        error_read,
        isolation,
        settings["workdir"],
        settings["sockets"],
        str(directory / "home"),
        host_directory=directory,
    )


def _settings(limits: SandboxLimits, channel: int, *, isolated: bool, user: int | None) -> dict[str, Any]:
    """What the supervisor is told at the start."""
    memory, disk = limits.memory_mb * _MIB, limits.disk_mb * _MIB
    rlimits = {
        # Half a GiB above: what a process reserves is more than what it uses, which the watchdog sees.
        "DATA": memory + 512 * _MIB,
        "FSIZE": disk,
        "NOFILE": limits.open_files,
        "CORE": 0,
        "MSGQUEUE": 0,
    }
    if isolated:
        # Counted within the user namespace; elsewhere it would count every process of the host's user.
        rlimits["NPROC"] = limits.max_processes + (0 if user is not None else 2)
    return {
        "channel": channel,
        "isolated": isolated,
        "user": user,
        "workdir": WORKDIR,
        "sockets": SOCKETS,
        "writable": [WORKDIR, "/tmp", "/dev/shm", SOCKETS],
        "memory": memory,
        "max_processes": limits.max_processes,
        "max_files": limits.max_files,
        "rlimits": rlimits,
    }


def _namespaces(is_root: bool, info: int, block: int) -> list[str]:
    """Arguments of bubblewrap for namespaces, users and the end of everything."""
    arguments = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--as-pid-1"]
    arguments += ["--hostname", "sandbox", "--clearenv", "--info-fd", str(info), "--cap-drop", "ALL"]
    if is_root:
        # Two users: the supervisor keeps the one that the host's root is, programs get `nobody`.
        arguments += ["--userns-block-fd", str(block), "--uid", "0", "--gid", "0"]
        return [*arguments, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    arguments += ["--uid", str(_USER), "--gid", str(_USER), "--block-fd", str(block)]
    return [*arguments, "--disable-userns"] if _version() >= (0, 8) else arguments


def _mounts(
    limits: SandboxLimits,
    runtime: Runtime,
    read_only: Mapping[str, Path],
    hidden: Sequence[str],
    passed: list[int],
) -> list[str]:
    """Arguments of bubblewrap for the file system; descriptors that it reads are appended to `passed`."""
    arguments = ["--ro-bind", "/usr", "/usr", *_parents("/etc/passwd")]
    for place in SYSTEM_PLACES:
        path = Path(place)
        if path.is_symlink():
            arguments += ["--symlink", os.readlink(path), place]
        elif path.is_dir():
            arguments += ["--ro-bind", place, place]
    for name in ETC_FILES:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    supervisor = {str(place): content for place, content in _supervisor_files(Path(_GUEST)).items()}
    arguments += _parents(next(iter(supervisor)))
    for place, content in (_texts() | supervisor).items():
        arguments += ["--perms", "0644", "--ro-bind-data", str(_readable_data(content, passed)), place]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    # Before the runtime, which may lie below one of them.
    for place in (WORKDIR, "/tmp", "/dev/shm"):
        size = str(limits.disk_mb * _MIB)
        arguments += ["--perms", "1777", "--size", size, "--tmpfs", place]
    arguments += ["--perms", "1777", "--size", str(_MIB), "--tmpfs", SOCKETS]
    arguments += ["--perms", "0777", "--dir", HOME]
    for prefix in runtime.prefixes:
        _check_readable(Path(prefix))
        arguments += [*_parents(prefix), "--ro-bind", prefix, prefix]
    for package in ("sensorium", *hidden):
        for place in runtime.places_of(package):
            if Path(place).is_dir():
                arguments += ["--size", "4096", "--tmpfs", place, "--remount-ro", place]
            else:
                arguments += ["--ro-bind", "/dev/null", place]
    for place, source in read_only.items():
        if not place.startswith("/") or not source.exists():
            raise SandboxError(
                f"Cannot show {source} at {place!r} in a sandbox: the source must exist, "
                "and the place be an absolute path."
            )
        _check_readable(source)
        arguments += [*_parents(place), "--ro-bind", str(source.resolve()), place]
    if is_supported():
        arguments += ["--seccomp", str(_readable_data(build_filter(), passed))]
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORKDIR]


def _check_readable(path: Path) -> None:
    """Programs of a host whose user is root run as `nobody`: what they are shown must be readable by others.

    Raises:
        SandboxError: It is not.
    """
    needed = 0o005 if path.is_dir() else 0o004
    if _has_two_users() and path.stat().st_mode & needed != needed:
        raise SandboxError(
            f"Programs in the sandbox run as user nobody and cannot read {path} "
            f"(mode {path.stat().st_mode & 0o777:o}). Run: chmod -R o+rX {path}"
        )


def _parents(place: str) -> list[str]:
    """Arguments that make the directories above a mount, which bubblewrap would make for their owner only."""
    parents = [str(parent) for parent in reversed(Path(place).parents) if str(parent) != "/"]
    return [word for parent in parents for word in ("--perms", "0755", "--dir", parent)]


def _texts() -> dict[str, bytes]:
    """Files that exist only inside."""
    return {
        "/etc/passwd": f"sandbox:x:{_USER}:{_USER}::{HOME}:/bin/sh\n".encode(),
        "/etc/group": f"sandbox:x:{_USER}:\n".encode(),
        "/etc/hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n",
        "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
    }


def _supervisor_files(root: Path) -> dict[Path, bytes]:
    """The supervisor's own modules, laid out below `root` as their imports need them."""
    package = root / "sensorium/envs/sandbox/guest"
    sources = sorted(Path(__file__).with_name("guest").glob("*.py"))
    return {package / source.name: source.read_bytes() for source in sources}


def _readable_data(content: bytes, passed: list[int]) -> int:
    """A descriptor that gives `content` and then ends."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        fd = os.dup(file.fileno())
    os.lseek(fd, 0, os.SEEK_SET)
    passed.append(fd)
    return fd


def _child_pid(info: int) -> int:
    """Process id of the supervisor on the host, from bubblewrap's JSON."""
    data = b""
    while b"}" not in data:
        piece = os.read(info, 4096)
        if not piece:
            raise ValueError("it ended before it made a process")
        data += piece
    return int(json.loads(data)["child-pid"])


@functools.lru_cache(maxsize=1)
def _has_two_users() -> bool:
    """Whether programs can get another user than the supervisor: for root, where `nobody` exists."""
    if os.geteuid() != 0:
        return False
    for name in ("uid_map", "gid_map"):
        rows = [
            [int(word) for word in row.split()] for row in Path(f"/proc/self/{name}").read_text().splitlines()
        ]
        if not any(first <= _OUTER_USER < first + count for first, _, count in rows):
            return False
    return True


def _map_users(pid: int) -> None:
    """Give the new user namespace its two users and groups; only root may."""
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{pid}/{name}").write_text(f"0 0 1\n{_USER} {_OUTER_USER} 1\n", encoding="ascii")


@functools.lru_cache(maxsize=1)
def _version() -> tuple[int, ...]:
    done = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False)
    return tuple(int(part) for part in re.findall(r"\d+", done.stdout)[:2])


def _isolation(is_root: bool) -> Isolation:
    version = ".".join(map(str, _version()))
    refused = is_supported()
    return Isolation(
        safe=True,
        mechanism=f"bubblewrap {version}, {'user nobody' if is_root else 'same user'} in namespaces",
        memory="watchdog over the tree (25 ms), RLIMIT_DATA per process, file systems of fixed size",
        processes="RLIMIT_NPROC in the user namespace, watchdog over the tree",
        system_calls="tracing, namespaces, uncounted memory, vsock, io_uring, keys"
        if refused
        else "none refused",
        warning="" if refused else "no system-call filter exists for this kind of processor",
    )


async def _readable(fd: int, timeout_s: float) -> None:
    """Wait until a descriptor can be read (a pidfd: its process has ended), or for so long."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ready.wait(), timeout_s)
    finally:
        loop.remove_reader(fd)
