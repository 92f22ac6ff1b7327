"""Programs that try to see, reach or harm the host."""

import ctypes
import os
import socket
import sys
import threading
from pathlib import Path

import pytest
from sandbox_probing import inside, python, run_python

from sensorium.envs.sandbox import Sandbox, SandboxError
from sensorium.envs.sandbox.runtime import find_runtime

ROOT = Path(__file__).resolve().parents[3]


def lines(code: str) -> list[str]:
    done = run_python(code)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().split("\n")[:-1]


def test_host_files_are_not_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret of the host")
    paths = [str(secret), str(Path(__file__)), str(ROOT / "pyproject.toml"), str(ROOT / "src"), "/etc/shadow"]
    paths += ["/etc/hostname", "/etc/profile", "/etc/ssh", "/home", "/var", "/srv", "/sys"]
    paths += ["/proc/1/root/etc"]
    assert lines(f"import os\nfor path in {paths!r}: print(os.path.lexists(path))") == ["False"] * len(paths)


def test_the_password_file_is_not_the_hosts() -> None:
    done = run_python("print(open('/etc/passwd').read(), end='')")
    assert done.stdout == b"sandbox:x:1000:1000::/tmp/home:/bin/sh\n"
    assert done.stdout != Path("/etc/passwd").read_bytes()


def test_environment_of_the_host_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-host-secret")
    done = run_python(
        """
        import glob, os
        found = str(dict(os.environ))
        for path in glob.glob('/proc/*/environ'):
            try: found += open(path).read()
            except OSError: pass
        print('sk-host-secret' in found, sorted(os.environ))
        """
    )
    assert done.stdout.startswith(b"False ['HOME', 'LANG', ")


def test_this_package_and_hidden_packages_are_not_there() -> None:
    if not find_runtime(sys.executable).places_of("numpy"):
        pytest.skip("this interpreter has its packages from elsewhere")
    done = run_python(
        """
        import importlib.util, os
        import numpy, yaml
        print(importlib.util.find_spec('sensorium'), yaml.__file__, os.listdir(yaml.__path__[0]))
        """,
        hidden_packages=["yaml"],
    )
    assert done.stdout == b"None None []\n", done.stderr


def test_the_network_ends_at_the_sandbox() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = lines(
            f"""
            import socket
            for place in (("127.0.0.1", {port}), ("1.1.1.1", 53), ("169.254.169.254", 80)):
                try: socket.create_connection(place, timeout=2); print("reached")
                except OSError as error: print(error.strerror)
            for family in (socket.AF_VSOCK, socket.AF_PACKET, socket.AF_ALG):
                try: socket.socket(family, socket.SOCK_RAW); print("made")
                except OSError as error: print(error.strerror)
            try: print(socket.getaddrinfo("example.com", 80))
            except OSError: print("no name")
            print(socket.gethostname())
            """
        )
    refused, unreachable = "Connection refused", "Network is unreachable"
    assert result[:3] == [refused, unreachable, unreachable]
    assert result[3:] == ["Address family not supported by protocol"] * 3 + ["no name", "sandbox"]


def test_loopback_works_inside() -> None:
    done = run_python(
        """
        import socket
        server = socket.create_server(("127.0.0.1", 0))
        socket.create_connection(server.getsockname(), timeout=2)
        print("reached")
        """
    )
    assert done.stdout == b"reached\n"


def test_abstract_sockets_of_the_host_are_out_of_reach() -> None:
    name = f"\0sensorium-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        result = lines(
            f"""
            import socket
            try: socket.socket(socket.AF_UNIX).connect({name!r}); print("reached")
            except OSError as error: print(error.strerror)
            """
        )
    assert result == ["Connection refused"]


def test_host_processes_are_invisible_and_cannot_be_signalled() -> None:
    result = lines(
        f"""
        import os
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        print(len(pids) <= 3, os.getppid())
        for pid in ({os.getpid()}, {os.getppid()}):
            try: os.kill(pid, 9) if pid not in pids else None; print("sent")
            except OSError as error: print(error.strerror)
        """
    )
    assert result[0] == "True 1"
    assert result[1:] == ["No such process"] * 2


def test_the_supervisor_cannot_be_stopped_traced_or_read() -> None:
    async def body(sandbox: Sandbox) -> tuple[bytes, bytes]:
        attack = await python(
            sandbox,
            """
            import ctypes, os, signal
            for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV):
                try: os.kill(1, number)
                except OSError: pass
            for place in ("/proc/1/mem", "/proc/1/environ", "/proc/1/fd", "/proc/1/root", "/proc/1/maps"):
                try: (os.listdir if place.endswith(("fd", "root")) else open)(place); print(place, "open")
                except OSError as error: pass
            libc = ctypes.CDLL(None, use_errno=True)
            for attach in (16, 0x4206):
                print(libc.ptrace(attach, 1, 0, 0), libc.ptrace(attach, os.getppid(), 0, 0))
            """,
        )
        return attack.stdout, (await python(sandbox, "print('alive')")).stdout

    attack, after = inside(body)
    assert attack == b"-1 -1\n" * 2
    assert after == b"alive\n"


def test_nothing_outside_the_work_directory_can_be_written() -> None:
    result = lines(
        """
        import os, sys, json
        places = ["/x", "/etc/x", "/usr/x", "/dev/x", "/run/x", "/proc/sys/kernel/hostname", "/etc/passwd"]
        places += [os.path.join(os.path.dirname(json.__file__), "x.py"), os.path.join(sys.prefix, "x")]
        places += ["/proc/sysrq-trigger", "/run/supervisor.py", "/root/x"]
        for place in places:
            try: open(place, "w").write("x"); print("wrote", place)
            except OSError: pass
        for place in ("/box/x", "/tmp/x", "/dev/shm/x"):
            open(place, "w").write("x")
        """
    )
    assert result == []


def test_no_privilege_is_left_or_gained() -> None:
    status = run_python("print(open('/proc/self/status').read())").stdout.decode()
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(facts["CapEff"], 16) == int(facts["CapPrm"], 16) == int(facts["CapAmb"], 16) == 0
    assert facts["NoNewPrivs"] == "1"
    assert facts["Uid"].split() == ["1000"] * 4
    escalated = run_python(
        """
        import os
        for gain in (lambda: os.setuid(0), lambda: os.setgroups([0]), lambda: os.chroot("/tmp"),
                     lambda: os.mknod("/tmp/sda", 0o60600, os.makedev(8, 0)), lambda: os.chown("/box", 0, 0)):
            try: gain(); print("gained")
            except OSError: pass
        """
    )
    assert (escalated.stdout, escalated.returncode) == (b"", 0)


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="no filter for this processor")
def test_system_calls_that_namespaces_do_not_contain_are_refused() -> None:
    done = run_python(
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        def refused(result): return result == -1 and ctypes.get_errno() in (1, 38)
        for namespace in (0x10000000, 0x20000, 0x40000000, 0x20000000):
            print(refused(libc.unshare(namespace)))
        print(refused(libc.memfd_create(b"x", 0)), refused(libc.shmget(0, 1 << 20, 0o1600)))
        print(refused(libc.mount(b"x", b"/tmp", b"tmpfs", 0, None)), refused(libc.setns(0, 0)))
        print(refused(libc.personality(0x0400000)), refused(libc.msgget(0, 0o1600)))
        pid = os.fork()
        if pid == 0: os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7)
        import threading
        thread = threading.Thread(target=print, args=(True,)); thread.start(); thread.join()
        """
    )
    assert done.stdout.split() == [b"True"] * 12, done


def test_the_same_calls_work_outside() -> None:
    """Otherwise the test before this one would show nothing."""
    fd = ctypes.CDLL(None, use_errno=True).memfd_create(b"x", 0)
    assert fd >= 0
    os.close(fd)


def test_two_sandboxes_do_not_see_each_other() -> None:
    async def body(first: Sandbox) -> tuple[bytes, int]:
        async with Sandbox.create() as second:
            sleeper = await first.start(["sleep", "30"])
            await first.write_file("mine", b"1")
            seen = await second.run(["sh", "-c", "ls /box /tmp; ps -e -o comm="])
            return seen.stdout, int(sleeper.alive)

    seen, alive = inside(body)
    assert alive
    assert b"mine" not in seen
    assert b"sleep" not in seen


def test_read_only_places_can_be_read_and_not_written(tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text("1,2\n")
    tmp_path.chmod(0o755)
    done = run_python(
        """
        print(open('/data/numbers.csv').read().strip())
        try: open('/data/other', 'w')
        except OSError as error: print(error.strerror)
        """,
        read_only={"/data": tmp_path},
    )
    assert done.stdout == b"1,2\nRead-only file system\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="programs run as the same user")
def test_what_nobody_may_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(SandboxError, match=rf"chmod -R o\+rX {tmp_path}"):
        run_python("1", read_only={"/data": tmp_path})


def test_threads_of_the_host_may_own_sandboxes() -> None:
    results: list[bytes] = []
    thread = threading.Thread(target=lambda: results.append(run_python("print(1)").stdout))
    thread.start()
    thread.join()
    assert results == [b"1\n"]
