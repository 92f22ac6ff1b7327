"""Programs that run to their end, that live on, and what they leave behind."""

import asyncio
import signal
import socket

import pytest
from sandbox_probing import inside, python

from sensorium.envs.sandbox import Completed, Sandbox, SandboxClosed, SandboxError, SandboxLimits


def test_input_output_status_and_directory() -> None:
    async def body(sandbox: Sandbox) -> Completed:
        return await python(
            sandbox,
            "import os, sys\nprint(os.getcwd(), len(sys.stdin.read()), os.environ['A'], os.environ['B'])\n"
            "sys.stderr.write('bad'); sys.exit(3)",
            stdin=b"x" * 1_000_000,
            env={"B": "2"},
            cwd="sub",
        )

    done = inside(body, files={"sub/x": b""}, env={"A": "1", "B": "1"})
    assert (done.stdout, done.stderr, done.returncode) == (b"/box/sub 1000000 1 2\n", b"bad", 3)
    assert not done.ok
    assert done.killed_by is None


def test_a_program_that_does_not_read_its_input() -> None:
    done = inside(lambda sandbox: sandbox.run(["true"], stdin=b"x" * 10_000_000))
    assert done.ok


def test_a_program_that_does_not_exist() -> None:
    async def body(sandbox: Sandbox) -> None:
        with pytest.raises(SandboxError, match=r"Cannot run 'no-such-program'.*No such file"):
            await sandbox.run(["no-such-program"])
        with pytest.raises(SandboxError, match="list of words"):
            await sandbox.run("ls -l")
        with pytest.raises(SandboxError):
            await sandbox.run(["ls"], cwd="nowhere")

    inside(body)


def test_signals_are_told_as_negative_status() -> None:
    done = inside(lambda sandbox: sandbox.run(["sh", "-c", "kill -SEGV $$"]))
    assert done.returncode == -11


OUTLIVE = """
import os, subprocess, sys, time
script = "import time\\nfor _ in range(600):\\n open('/box/heartbeat', 'a').write('x'); time.sleep(0.01)"
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
subprocess.Popen(["setsid", sys.executable, "-c", script], start_new_session=True)
subprocess.Popen(["nohup", sys.executable, "-c", script], **quiet)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        exec(script)
    os._exit(0)
while not os.path.exists('/box/heartbeat'): time.sleep(0.01)
print("leaving")
"""


@pytest.mark.parametrize("with_kernel", [False, True])
def test_nothing_outlives_its_run(with_kernel: bool) -> None:
    async def body(sandbox: Sandbox) -> None:
        kernel = await sandbox.start(["sleep", "60"]) if with_kernel else None
        done = await python(sandbox, OUTLIVE)
        assert done.stdout == b"leaving\n", done
        beats = await sandbox.read_file("heartbeat")
        left = (await sandbox.run(["ps", "-e", "-o", "args="])).stdout
        assert b"heartbeat" not in left
        assert await sandbox.read_file("heartbeat") == beats
        assert kernel is None or kernel.alive

    inside(body)


def test_runs_at_the_same_time_do_not_end_each_other() -> None:
    async def body(sandbox: Sandbox) -> list[Completed]:
        slow = python(sandbox, "import time; time.sleep(0.6); print('slow')")
        quick = python(sandbox, "print('quick')")
        late = python(sandbox, "import time; time.sleep(9)", timeout_s=0.3)
        return list(await asyncio.gather(slow, quick, late))

    slow, quick, late = inside(body)
    assert (slow.stdout, quick.stdout, late.killed_by) == (b"slow\n", b"quick\n", "wall")


def test_a_cancelled_run_is_ended() -> None:
    async def body(sandbox: Sandbox) -> bytes:
        task = asyncio.ensure_future(sandbox.run(["sleep", "77"]))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await sandbox.run(["ps", "-e", "-o", "args="])).stdout

    assert b"sleep 77" not in inside(body)


def test_runs_cancelled_while_they_start_leave_nothing() -> None:
    async def body(sandbox: Sandbox) -> bytes:
        for turns in range(12):
            task = asyncio.ensure_future(sandbox.run(["sleep", "78"]))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return (await sandbox.run(["ps", "-e", "-o", "args="])).stdout

    assert b"sleep 78" not in inside(body)


def test_many_sandboxes_at_the_same_time() -> None:
    async def one(number: int) -> bytes:
        async with Sandbox.create(files={"n": str(number).encode()}) as sandbox:
            return (await sandbox.run(["cat", "n"])).stdout

    async def body(_: Sandbox) -> list[bytes]:
        return await asyncio.gather(*map(one, range(12)))

    assert inside(body) == [str(number).encode() for number in range(12)]


def test_a_long_lived_program_talks_is_interrupted_and_killed() -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.start(
            [
                sandbox.python,
                "-u",
                "-c",
                "import sys, time\nfor line in sys.stdin:\n"
                "  try:\n    print('got', line.strip())\n    time.sleep(30 if 'wait' in line else 0)\n"
                "  except KeyboardInterrupt: print('interrupted')",
            ]
        )
        process.stdin.write(b"one\nwait\n")
        assert await process.stdout.readline() == b"got one\n"
        assert await process.stdout.readline() == b"got wait\n"
        reply = asyncio.ensure_future(process.stdout.readline())
        while not reply.done():  # Python may miss one that comes just before it begins to sleep
            await process.interrupt()
            await asyncio.wait({reply}, timeout=5)
        assert reply.result() == b"interrupted\n"
        assert process.alive
        assert process.returncode is None
        await process.kill()
        await process.kill()
        await process.interrupt()
        assert (process.alive, process.returncode) == (False, -9)
        assert await process.stdout.read() == b""

    inside(body)


def test_programs_can_be_interrupted_though_the_host_cannot() -> None:
    """As where a script started the host in the background."""
    show = "import signal as s; print([s.getsignal(n) == s.SIG_IGN for n in (s.SIGINT, s.SIGHUP, s.SIGTERM)])"
    ends = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_IGN) for number in ends]
    try:
        done = inside(lambda sandbox: python(sandbox, show))
    finally:
        for number, handler in zip(ends, before, strict=True):
            signal.signal(number, handler)
    assert done.stdout == b"[False, False, False]\n", done


def test_a_long_lived_program_that_ends_by_itself_or_by_a_limit() -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.start(["sh", "-c", "echo out; echo err >&2; exit 4"])
        assert await process.wait() == 4
        assert (await process.stdout.read(), await process.stderr.read()) == (b"out\n", b"err\n")
        greedy = await sandbox.start(
            [
                sandbox.python,
                "-c",
                "import time\nx = []\nwhile True: x.append('x' * (1 << 20)); time.sleep(.001)",
            ]
        )
        assert await greedy.wait() == -9
        assert greedy.killed_by == "memory"
        assert (await sandbox.run(["true"])).ok

    inside(body, SandboxLimits(memory_mb=128))


SERVE = """
import os, socket, sys
servers = []
for number in (1, 2):
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"/sockets/kernel-{number}")
    server.listen()
    servers.append(server)
print("ready", flush=True)
connection, _ = servers[1].accept()
connection.sendall(b"hello from " + connection.recv(100))
os.unlink("/sockets/kernel-1")
os.symlink(sys.argv[1], "/sockets/kernel-1")
print("replaced", flush=True)
sys.stdin.read()
"""


def test_sockets_bound_inside_can_be_reached_and_redirect_nobody(tmp_path: object) -> None:
    with socket.socket(socket.AF_UNIX) as host:
        host.bind(f"{tmp_path}/private")
        host.listen()
        host.setblocking(False)

        async def body(sandbox: Sandbox) -> None:
            process = await sandbox.start([sandbox.python, "-c", SERVE, f"{tmp_path}/private"])
            first, second = await sandbox.connectable(["kernel-1", "kernel-2"])
            assert first.endswith("/kernel-1")
            assert second == first.replace("kernel-1", "kernel-2")
            reader, writer = await asyncio.open_unix_connection(second)
            writer.write(b"outside")
            assert await reader.read(100) == b"hello from outside"
            writer.close()
            assert await process.stdout.readline() == b"ready\n"
            assert await process.stdout.readline() == b"replaced\n"
            _, again = await asyncio.open_unix_connection(first)  # still the socket that was there
            again.close()
            with pytest.raises(SandboxError, match="kernel-1"):
                await sandbox.connectable(["kernel-1"])
            with pytest.raises(SandboxError, match=r"No program bound .*nothing"):
                await sandbox.connectable(["nothing"], timeout_s=0.05)
            with pytest.raises(SandboxError, match="plain word"):
                await sandbox.connectable(["../x"])

        inside(body)
        with pytest.raises(BlockingIOError):
            host.accept()


def test_use_before_and_after() -> None:
    async def go() -> None:
        sandbox = Sandbox.create()
        with pytest.raises(SandboxClosed, match="not open"):
            await sandbox.run(["true"])
        await sandbox.close()
        async with sandbox:
            process = await sandbox.start(["sleep", "50"])
            assert sandbox.alive
        await sandbox.close()
        assert not sandbox.alive
        assert not process.alive
        with pytest.raises(SandboxClosed):
            await sandbox.run(["true"])
        with pytest.raises(SandboxClosed):
            await sandbox.read_file("x")
        with pytest.raises(SandboxError, match="opened already"):
            await sandbox.open()

    asyncio.run(go())
