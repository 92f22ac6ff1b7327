"""Programs that try to use more than they may."""

import time

from sandbox_probing import inside, python, run_python

from sensorium.envs.sandbox import Completed, Sandbox, SandboxLimits
from sensorium.envs.sandbox.output import BoundedOutput


def test_a_fork_bomb_stays_within_its_number_of_processes() -> None:
    async def body(sandbox: Sandbox) -> tuple[Completed, Completed, list[bytes]]:
        bomb = await python(
            sandbox,
            """
            import os
            while True:
                try: os.fork()
                except OSError: open("/box/refused", "w")
            """,
            timeout_s=1.5,
        )
        after = await sandbox.run(["ps", "-e", "-o", "comm="])
        return bomb, after, [entry.path.encode() for entry in await sandbox.list_files()]

    bomb, after, files = inside(body, SandboxLimits(max_processes=20))
    assert bomb.killed_by in ("wall", "processes")
    assert len(after.stdout.split()) <= 3, "the supervisor and ps itself"
    assert files == [b"refused"]


def test_threads_count_as_processes() -> None:
    done = run_python(
        """
        import threading, time
        try:
            for number in range(100): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        except RuntimeError: print(number)
        """,
        SandboxLimits(max_processes=16),
    )
    assert 8 <= int(done.stdout) <= 16


def test_memory_of_one_process_is_limited() -> None:
    limits = SandboxLimits(memory_mb=128)
    huge = run_python("x = bytearray(4 << 30)", limits)
    assert huge.returncode == 1
    assert b"MemoryError" in huge.stderr
    growing = run_python(
        """
        import time
        kept = []
        while True: kept.append(bytearray(1 << 20)); time.sleep(0.001)
        """,
        limits,
    )
    assert growing.killed_by == "memory"
    assert growing.returncode == -9


def test_memory_of_a_tree_is_limited_as_a_whole() -> None:
    done = run_python(
        """
        import os, time
        for _ in range(6):
            if os.fork() == 0:
                kept = b"x" * (60 << 20); time.sleep(20); os._exit(0)
        time.sleep(20)
        """,
        SandboxLimits(memory_mb=200),
    )
    assert done.killed_by == "memory"


def test_pages_shared_by_a_tree_count_once() -> None:
    done = run_python(
        """
        import os, time
        kept = b"x" * (100 << 20)
        for _ in range(4):
            if os.fork() == 0: time.sleep(0.5); os._exit(0)
        for _ in range(4): os.wait()
        """,
        SandboxLimits(memory_mb=250),
    )
    assert done.ok, done


def test_shared_memory_counts() -> None:
    done = run_python(
        """
        import mmap, time
        kept = []
        while True:
            area = mmap.mmap(-1, 8 << 20)
            area.write(b"x" * len(area)); kept.append(area); time.sleep(0.005)
        """,
        SandboxLimits(memory_mb=128),
    )
    assert done.killed_by == "memory"


def test_the_disk_is_full_when_it_is_full() -> None:
    done = run_python(
        """
        import os
        for place in ("/box", "/tmp", "/dev/shm", "/sockets"):
            written = 0
            try:
                for number in range(9):
                    with open(f"{place}/{number}", "wb", buffering=0) as file:
                        for _ in range(16): written += file.write(b"x" * (1 << 20))
            except OSError as error: print(place, written >> 20, error.strerror)
        """,
        SandboxLimits(disk_mb=20),
    )
    expected = [f"{place} 20 No space left on device" for place in ("/box", "/tmp", "/dev/shm")]
    assert done.stdout.decode().splitlines() == [*expected, "/sockets 1 No space left on device"]


def test_the_number_of_files_is_limited() -> None:
    done = run_python(
        """
        number = 0
        while True: number += 1; open(f"/tmp/{number}", "w").close()
        """,
        SandboxLimits(max_files=300),
    )
    assert done.killed_by == "disk"


def test_open_files_are_limited() -> None:
    done = run_python("kept = [open('/dev/null') for _ in range(100)]", SandboxLimits(open_files=50))
    assert b"Too many open files" in done.stderr


def test_endless_output_is_bounded_and_ended() -> None:
    done = run_python(
        "import os\nos.write(1, b'BEGIN')\nwhile True: os.write(1, b'y' * 65536)",
        SandboxLimits(output_bytes=1000),
    )
    assert done.killed_by == "output"
    assert done.stdout_truncated
    assert not done.stderr_truncated
    assert done.stdout.startswith(b"BEGIN")
    assert len(done.stdout) < 1100


def test_beginning_and_end_of_long_output_are_kept() -> None:
    done = run_python("print('a' * 3000 + 'the end')", SandboxLimits(output_bytes=1000))
    assert done.returncode == 0
    assert done.stdout == b"a" * 500 + b"\n... [2008 bytes left out] ...\n" + b"a" * 492 + b"the end\n"


def test_bounded_output_by_hand() -> None:
    output = BoundedOutput(4)
    for piece in (b"ab", b"c", b"", b"defg"):
        output.feed(piece)
    assert output.content() == b"ab\n... [3 bytes left out] ...\nfg"
    exact = BoundedOutput(4)
    exact.feed(b"abcd")
    assert (exact.content(), exact.truncated) == (b"abcd", False)


def test_cpu_time_of_a_tree_is_limited() -> None:
    done = run_python(
        """
        import os
        os.fork(); os.fork()
        while True: pass
        """,
        SandboxLimits(cpu_s=0.4, wall_s=30),
    )
    assert done.killed_by == "cpu"
    assert not done.timed_out


def test_a_time_out_ends_even_who_ignores_signals() -> None:
    began = time.monotonic()
    done = run_python(
        """
        import os, signal, time
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        print("started", flush=True)
        time.sleep(100)
        """,
        SandboxLimits(wall_s=1),
    )
    assert done.timed_out
    assert (done.killed_by, done.returncode, done.stdout) == ("wall", -9, b"started\n")
    assert time.monotonic() - began < 30
