"""Serving the host's requests and enforcing the limits."""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from typing import Any, Optional

from sensorium.envs.sandbox.guest import files
from sensorium.envs.sandbox.guest.tree import (
    Processes,
    Table,
    family,
    proportional_bytes,
    send_signal,
    strangers,
)
from sensorium.envs.sandbox.guest.wire import Wire

BUSY_S, IDLE_S = 0.025, 0.1
"""Between two looks at the limits: while programs compute, while they wait."""
CPU_GRACE_S = 2
"""What the kernel's own limit of CPU time allows above the watchdog's."""
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36

Request = dict[str, Any]
Descriptor = Optional[int]  # noqa: UP045 - older interpreters run this too
Reply = tuple[dict[str, Any], Descriptor]


def prctl(option: int, value: int) -> None:
    """Set a property of this process; systems without `prctl` are passed over."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class Job:
    """One program that the host asked for."""

    def __init__(self, number: int, pid: int, cpu_s: Optional[float]) -> None:  # noqa: UP045
        self.number, self.pid, self.cpu_s = number, pid, cpu_s
        self.killed_by: Optional[str] = None  # noqa: UP045


class Supervisor:
    """One sandbox's programs, limits and files.

    Args:
        settings: What `launch._settings` of the host writes.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._wire = Wire(settings["channel"])
        self._processes = Processes(settings["isolated"])
        self._root = os.open(settings["workdir"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._jobs: dict[int, Job] = {}
        self._last_cpu_s = -1.0
        self._wait_s = BUSY_S

    def serve(self) -> None:
        """Run until the host hangs up, then end everything."""
        wake_read, wake_write = os.pipe()
        for descriptor in (wake_read, wake_write):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self._wire.socket, select.POLLIN)
        poll.register(wake_read, select.POLLIN)
        try:
            self._wire.send({"ready": True})
            next_look = 0.0
            while True:
                ready = dict(poll.poll(self._wait_s * 1000 if self._jobs else None))
                if wake_read in ready:
                    os.read(wake_read, 4096)
                self._reap()
                if self._wire.socket.fileno() in ready:
                    requests = self._wire.receive()
                    if requests is None:
                        return
                    for request in requests:
                        self._answer(request)
                if self._jobs and time.monotonic() >= next_look:
                    self._look()
                    next_look = time.monotonic() + self._wait_s
        finally:
            self._processes.end_all()

    def _answer(self, request: Request) -> None:
        """Do one request; whatever fails is told to the host, never raised."""
        descriptor = None
        try:
            descriptors = self._wire.take(request.get("descriptors", 0))
            reply, descriptor = getattr(self, "do_" + request["op"])(request, descriptors)
        except Exception as error:
            reason = getattr(error, "strerror", None) or str(error)
            reply = {"error": reason, "kind": type(error).__name__}
        reply["reply"], reply["passes"] = request["number"], descriptor is not None
        self._wire.send(reply, descriptor)
        if descriptor is not None:
            os.close(descriptor)

    # Programs

    def do_start(self, request: Request, descriptors: list[int]) -> Reply:
        """Start a program on the three descriptors given."""
        try:
            directory = files.open_below(self._root, request["cwd"], os.O_RDONLY | os.O_DIRECTORY)
            try:
                child = subprocess.Popen(
                    request["argv"],
                    stdin=descriptors[0],
                    stdout=descriptors[1],
                    stderr=descriptors[2],
                    env=request["env"],
                    start_new_session=True,
                    preexec_fn=lambda: self._confine(directory, request["cpu_s"]),
                )
            finally:
                os.close(directory)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        child.returncode = 0  # `_reap` waits for it, not this object
        self._jobs[child.pid] = Job(request["number"], child.pid, request["cpu_s"])
        self._wait_s = BUSY_S
        return {}, None

    def _confine(self, directory: int, cpu_s: Optional[float]) -> None:  # noqa: UP045
        """In the child, before the program: its signals, its directory, its user, its limits."""
        # A host that a script started in the background ignores them, and so would the program.
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.fchdir(directory)
        user = self._settings["user"]
        if user is not None:
            os.seteuid(0)
            # Where the host's memory runs out, programs are to go before the supervisor and the host.
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write("1000")
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        if not self._settings["isolated"]:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.nice(2)
        limits = dict(self._settings["rlimits"])
        if cpu_s is not None:
            limits["CPU"] = int(cpu_s) + CPU_GRACE_S
        for name, value in limits.items():
            which = getattr(resource, "RLIMIT_" + name, None)
            if which is not None:
                hard = resource.getrlimit(which)[1]
                value = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(which, (value, value))

    def do_kill(self, request: Request, _descriptors: list[int]) -> Reply:
        """End a program and everything below it."""
        job = self._find(request["job"])
        if job is not None:
            self._end_job(job, request.get("reason"))
        return {}, None

    def do_interrupt(self, request: Request, _descriptors: list[int]) -> Reply:
        """SIGINT to a program's process group."""
        job = self._find(request["job"])
        if job is not None:
            send_signal(-job.pid, signal.SIGINT)
        return {}, None

    def _find(self, number: int) -> Optional[Job]:  # noqa: UP045
        return next((job for job in self._jobs.values() if job.number == number), None)

    def _end_job(self, job: Job, reason: Optional[str]) -> None:  # noqa: UP045
        """Kill a job's process and its descendants; its orphans follow when it is reaped."""
        job.killed_by = job.killed_by or reason
        self._processes.end(lambda table: family(table, job.pid))

    def _reap(self) -> None:
        """Collect what ended; with a job, end what it left behind, then tell the host."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            job = self._jobs.pop(pid, None)
            if job is None:
                continue
            self._end_orphans()
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            reason = job.killed_by or ("cpu" if code == -signal.SIGXCPU else None)
            self._wire.send({"ended": job.number, "code": code, "killed_by": reason})

    def _end_orphans(self) -> None:
        """Kill every process that belongs to no job, and wait until they have gone."""
        if self._jobs:
            self._processes.bury(self._processes.end(lambda table: strangers(table, self._jobs)))
            return
        self._processes.end_all()
        self._processes.bury(self._processes.table())

    # Limits

    def _look(self) -> None:
        """Compare what is used with the limits and end what exceeds them."""
        table = self._processes.table()
        cpu_s = sum(row.cpu_s for row in table.values())
        self._wait_s = BUSY_S if cpu_s != self._last_cpu_s else IDLE_S
        self._last_cpu_s = cpu_s
        reason = self._exceeded(table)
        if reason is not None:
            return self._end_largest(reason, table)
        for job in list(self._jobs.values()):
            if job.cpu_s is not None and sum(table[pid].cpu_s for pid in family(table, job.pid)) > job.cpu_s:
                self._end_job(job, "cpu")

    def _exceeded(self, table: Table) -> Optional[str]:  # noqa: UP045
        """The common limit that is exceeded, if one is."""
        memory = self._settings["memory"]
        # What is resident counts shared pages many times: a cheap bound; the true sum is read above it only.
        if sum(row.resident for row in table.values()) > memory and proportional_bytes(table) > memory:
            return "memory"
        if sum(row.threads for row in table.values()) > self._settings["max_processes"] + 2:
            return "processes"
        if self._settings["isolated"]:
            places = [os.statvfs(place) for place in self._settings["writable"]]
            if sum(place.f_files - place.f_ffree for place in places) > self._settings["max_files"]:
                return "disk"
        return None

    def _end_largest(self, reason: str, table: Table) -> None:
        """End what belongs to no job and the job that uses most; the next look may end another."""

        def used(job: Job) -> float:
            rows = [table[pid] for pid in family(table, job.pid)]
            of = {"memory": [row.resident for row in rows], "processes": [row.threads for row in rows]}
            return sum(of.get(reason, [row.cpu_s for row in rows]))

        self._end_job(max(self._jobs.values(), key=used), reason)
        self._processes.end(lambda now: strangers(now, self._jobs))

    # Files

    def do_open(self, request: Request, _descriptors: list[int]) -> Reply:
        """Open a file of the work directory for the host."""
        return {}, files.open_file(self._root, request["path"], write=request["write"])

    def do_socket(self, request: Request, _descriptors: list[int]) -> Reply:
        """Pin a unix socket for the host to connect to."""
        return {}, files.open_socket(self._settings["sockets"], request["path"])

    def do_remove(self, request: Request, _descriptors: list[int]) -> Reply:
        """Remove a file, a link or a tree."""
        files.remove(self._root, request["path"])
        return {}, None

    def do_list(self, request: Request, _descriptors: list[int]) -> Reply:
        """List a directory."""
        return {"entries": files.list_below(self._root, request["path"], request["max_entries"])}, None


def main() -> None:
    """Take the settings from the command line and serve."""
    settings = json.loads(sys.argv[1])
    os.umask(0o022)
    if settings["isolated"]:
        # A plain supervisor must outlive its host for the moment it needs to end its programs.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if settings["user"] is not None:
        # The real id stays 0 (of this namespace): programs can neither signal nor trace this process.
        os.setegid(settings["user"])
        os.seteuid(settings["user"])
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    Supervisor(settings).serve()
