"""The processes beside the supervisor: who they are, whose children, what they use, and how to end them."""

import collections
import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
ROUNDS = 100
"""Looks for processes born while their family is ended, before everything is ended at one stroke."""
GONE_S = 2.0


class Row(NamedTuple):
    """One process."""

    parent: int
    threads: int
    cpu_s: float
    """With its ended children."""
    resident: int
    """Bytes, shared pages included."""


Table = dict[int, Row]


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process that may have gone."""
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def below(table: Mapping[int, Row], roots: Iterable[int]) -> set[int]:
    """Every descendant of `roots` in a process table."""
    children: dict[int, list[int]] = collections.defaultdict(list)
    for pid, row in table.items():
        children[row.parent].append(pid)
    found: set[int] = set()
    queue = list(roots)
    while queue:
        for child in children[queue.pop()]:
            if child not in found:
                found.add(child)
                queue.append(child)
    return found


def family(table: Mapping[int, Row], root: int) -> set[int]:
    """A process and its descendants, as far as they are in the table."""
    return (below(table, [root]) | {root}) & set(table)


def strangers(table: Mapping[int, Row], roots: Collection[int]) -> set[int]:
    """Every process that is neither one of `roots` nor descends from one."""
    return set(table) - below(table, roots) - set(roots)


def proportional_bytes(pids: Iterable[int]) -> int:
    """Memory of processes with shared pages counted once; slower than `Row.resident`."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith((b"Pss:", b"Swap:")):
                    total += int(line.split()[1]) * 1024
    return total


class Processes:
    """Every process that the supervisor answers for.

    Args:
        owns_namespace: It is process 1 of a namespace: all in `/proc` are its own. Else its descendants are.
    """

    def __init__(self, owns_namespace: bool) -> None:
        self.owns_namespace = owns_namespace

    def table(self) -> Table:
        """What runs now, the supervisor itself left out; empty where there is no `/proc`."""
        rows: Table = {}
        names = os.listdir("/proc") if os.path.isdir("/proc/self") else []
        for name in names:
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name of a program may hold anything, also spaces and parentheses.
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            cpu_s = sum(int(field) for field in fields[11:15]) / TICKS
            rows[int(name)] = Row(int(fields[1]), int(fields[17]), cpu_s, int(fields[21]) * PAGE)
        if not self.owns_namespace:
            return {pid: rows[pid] for pid in below(rows, [os.getpid()])}
        rows.pop(os.getpid(), None)
        return rows

    def end(self, choose: Callable[[Table], set[int]]) -> set[int]:
        """Stop, then kill, all that `choose` names, also those born meanwhile; return who that was."""
        seen: set[int] = set()
        for _ in range(ROUNDS):
            new = choose(self.table()) - seen
            if not new:
                break
            for pid in new:
                send_signal(pid, signal.SIGSTOP)
            seen |= new
        else:
            self.end_all()
        for pid in seen:
            send_signal(pid, signal.SIGKILL)
        return seen

    def end_all(self) -> None:
        """Kill everything; in a process namespace of our own the kernel does it at one stroke."""
        if self.owns_namespace:
            send_signal(-1, signal.SIGKILL)
            return
        for _ in range(ROUNDS):
            pids = self.table()
            if not pids:
                return
            for pid in pids:
                send_signal(pid, signal.SIGKILL)
            self.bury(pids)

    def bury(self, pids: Iterable[int]) -> None:
        """Wait until killed processes, none of them one whose status somebody needs, have gone."""
        until = time.monotonic() + GONE_S
        left = set(pids)
        while left and time.monotonic() < until:
            for pid in left:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            left &= set(self.table())
            if left:
                time.sleep(0.001)
