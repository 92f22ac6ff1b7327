"""Who dies with whom; machines that cannot isolate; plain processes instead."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from sandbox_probing import inside, python

from sensorium.envs.sandbox import (
    Sandbox,
    SandboxClosed,
    SandboxError,
    SandboxFileError,
    SandboxLimits,
    SandboxUnavailable,
    launch,
)
from sensorium.envs.sandbox.runtime import find_runtime

OWNER = """
import asyncio, sys
from sensorium.envs.sandbox import Sandbox

PROGRAM = '''
import subprocess, time
subprocess.Popen(["setsid", "sleep", "MARK"])
print(1, flush=True)
time.sleep(99)
'''.replace("MARK", sys.argv[1])

async def main():
    sandbox = Sandbox.create(allow_unsafe="unsafe" in sys.argv)
    await sandbox.open()
    process = await sandbox.start([sandbox.python, "-c", PROGRAM])
    await process.stdout.readline()
    print("ready", flush=True)
    await asyncio.sleep(99)

asyncio.run(main())
"""


def is_running(text: str) -> bool:
    shown = subprocess.run(
        ["/usr/bin/ps", "-e", "-o", "args="], capture_output=True, text=True, check=True
    ).stdout
    return any(line.startswith(text) for line in shown.splitlines())


def wait_until_running(text: str, expected: bool) -> None:
    until = time.monotonic() + 20
    while is_running(text) is not expected:
        assert time.monotonic() < until, f"{text} {'did not start' if expected else 'outlived its owner'}"
        time.sleep(0.02)


def without_bubblewrap(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has `sleep`, `setsid` and no bwrap."""
    for name in ("sleep", "setsid", "sh", "true"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    return {**os.environ, "PATH": str(tmp_path)}


def die_with_owner(number: signal.Signals, *arguments: str, env: dict[str, str] | None = None) -> None:
    sleeping = f"sleep {70000 + os.getpid()}.{int(number)}{len(arguments)}"
    command = [sys.executable, "-c", OWNER, sleeping.split()[1], *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) as owner:
        assert owner.stdout is not None
        if owner.stdout.readline() != b"ready\n":
            pytest.skip("this machine cannot isolate")
        wait_until_running(sleeping, True)  # it is told of before it has become another program
        owner.send_signal(number)
    wait_until_running(sleeping, False)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_everything_dies_with_its_owner(number: signal.Signals) -> None:
    die_with_owner(number)


def test_plain_processes_die_with_their_owner_too(tmp_path: Path) -> None:
    die_with_owner(signal.SIGKILL, "unsafe", env=without_bubblewrap(tmp_path))


def test_a_killed_supervisor_ends_the_sandbox_and_is_told() -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.start(["sleep", "55"])
        running = asyncio.ensure_future(sandbox.run(["sleep", "55"]))
        await asyncio.sleep(0.2)
        signal.pidfd_send_signal(sandbox._launched.supervisor, signal.SIGKILL)  # type: ignore[attr-defined]
        with pytest.raises(SandboxClosed):
            await running
        assert await process.wait() == -9
        assert not sandbox.alive
        with pytest.raises(SandboxClosed):
            await sandbox.list_files()

    inside(body)


def test_closing_while_something_runs() -> None:
    async def body(sandbox: Sandbox) -> None:
        running = asyncio.ensure_future(sandbox.run(["sleep", "56.5"]))
        await asyncio.sleep(0.2)
        await sandbox.close()
        with pytest.raises(SandboxClosed):
            await running

    inside(body)
    assert not is_running("sleep 56.5")


def test_no_descriptor_and_no_process_is_left() -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.start(["cat"])
        await sandbox.run(["true"])
        process.stdin.write(b"x")

    inside(body)
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        inside(body)
    assert sorted(os.listdir("/proc/self/fd")) == before
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    names = [Path(f"/proc/{pid}/comm").read_text() for pid in children]
    assert "bwrap\n" not in names


def test_without_bubblewrap_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async def go() -> None:
        with pytest.raises(SandboxUnavailable, match=r"apt install bubblewrap.*allow_unsafe=True"):
            await Sandbox.create().open()
        with pytest.raises(SandboxUnavailable):
            await Sandbox.probe()

    asyncio.run(go())


def test_a_bubblewrap_that_may_not_make_namespaces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    async def go() -> None:
        with pytest.raises(SandboxUnavailable, match=r"No permissions to create.*user namespaces"):
            await Sandbox.create().open()

    asyncio.run(go())


def test_plain_processes_are_limited_and_loudly_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", without_bubblewrap(tmp_path)["PATH"])

    async def body(sandbox: Sandbox) -> str:
        assert not sandbox.isolation.safe
        assert "WARNING" in str(sandbox.isolation)
        assert "read, change and send everything" in sandbox.isolation.warning
        done = await python(sandbox, "import os; print(open('a').read(), os.getcwd())")
        assert done.stdout.decode() == f"A {sandbox.workdir}\n"
        loop = await python(
            sandbox, "import subprocess\nsubprocess.run(['setsid', 'sleep', '57.5'])", timeout_s=0.5
        )
        assert loop.killed_by == "wall"
        assert not is_running("sleep 57.5")
        grown = await python(
            sandbox, "import time\nx=[]\nwhile True: x.append('x' * (1 << 20)); time.sleep(.001)"
        )
        assert grown.killed_by == "memory"
        with pytest.raises(SandboxFileError):
            await sandbox.read_file("../x")
        await python(sandbox, "import os; os.symlink('/etc/passwd', 'link')")
        with pytest.raises(SandboxFileError):
            await sandbox.read_file("link")
        return sandbox.workdir

    workdir = inside(body, SandboxLimits(memory_mb=128), files={"a": b"A"}, allow_unsafe=True)
    assert not Path(workdir).exists()


def test_an_interpreter_that_does_not_run() -> None:
    async def go() -> None:
        with pytest.raises(SandboxError, match="does not run"):
            await Sandbox.create(python="/no/such/python").open()

    asyncio.run(go())


def test_files_that_do_not_fit_leave_nothing_open() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(SandboxFileError):
        inside(lambda sandbox: sandbox.run(["true"]), SandboxLimits(disk_mb=1), files={"a": b"x" * (3 << 20)})
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_place_that_cannot_be_shown_leaves_nothing_open(tmp_path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(SandboxError, match="the source must exist"):
        inside(lambda sandbox: sandbox.run(["true"]), read_only={"/data": tmp_path / "absent"})
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("allow_unsafe", [False, True])
def test_a_sandbox_that_cannot_be_started_leaves_nothing(
    allow_unsafe: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "no memory for a process")

    async def start() -> None:
        if allow_unsafe:
            await launch.launch_unsafe(SandboxLimits(), find_runtime(sys.executable), "a test")
        else:
            await launch.launch_isolated(SandboxLimits(), find_runtime(sys.executable), {}, ())

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    asyncio.run(asyncio.sleep(0))  # what the first event loop opens
    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(launch.subprocess, "Popen", no_memory)
    with pytest.raises(OSError, match="no memory"):
        asyncio.run(start())
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert list(tmp_path.iterdir()) == []
