"""Tries many mutations of one source file inside a sandbox, quickly; used where bugs are collected.

    try_mutations.py < request

Runs the tests once with everything as it is, then for each mutation in a child process in which only the code
objects of the changed functions are exchanged: nothing is imported again. What survives here is verified
once more in the ordinary way. Writes a line of JSON for the first run and for each mutation.
"""

import gc
import io
import json
import os
import resource
import signal
import sys
import tarfile
import types
from typing import Any


class Recorder:
    """A pytest plugin that notes how each test ended."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase of one test."""
        if report.outcome != "passed" or report.when == "call":
            known = self.outcomes.get(report.nodeid)
            self.outcomes[report.nodeid] = known if known in ("failed", "skipped") else report.outcome

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be imported."""
        if report.failed:
            self.outcomes[report.nodeid] = "failed"


def run(request: dict[str, Any]) -> dict[str, str]:
    """Run the request's tests in this process."""
    import pytest

    recorder = Recorder()
    options = ["-q", "-p", "no:cacheprovider", "-c", request["config"], "--rootdir", os.getcwd(), "--tb=no"]
    pytest.main([*options, "--disable-warnings", *request["tests"]], plugins=[recorder])
    return recorder.outcomes


Codes = dict[tuple[str, int], types.CodeType]


def code_objects(code: types.CodeType, found: Codes) -> Codes:
    """Every code object below one, by name and line."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found[constant.co_name, constant.co_firstlineno] = constant
            code_objects(constant, found)
    return found


def exchange(path: str, text: str) -> int:
    """Give the functions of a loaded file the code of a changed text; return how many changed."""
    full = os.path.join(os.getcwd(), path)
    new = code_objects(compile(text, full, "exec", dont_inherit=True), {})
    count = 0
    for function in gc.get_objects():
        if not isinstance(function, types.FunctionType) or function.__code__.co_filename != full:
            continue
        code = new.get((function.__code__.co_name, function.__code__.co_firstlineno))
        if (
            code is not None
            and code != function.__code__
            and code.co_freevars == function.__code__.co_freevars
        ):
            function.__code__ = code
            count += 1
    return count


def main() -> None:
    """Do what the request on stdin asks for."""
    line = os.fdopen(os.dup(1), "w", encoding="utf-8")
    request = json.loads(sys.stdin.buffer.readline())
    with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()), mode="r:") as archive:
        archive.extractall(".", filter="data")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.insert(0, os.getcwd())
    before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    outcomes = run(request)
    cpu_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before
    print(json.dumps({"outcomes": outcomes, "cpu_s": cpu_s}), file=line, flush=True)
    texts = request["texts"] if cpu_s <= request["most_s"] else []
    for number, text in enumerate(texts):
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_PROF, 0.5 + request["each"] * cpu_s)
            changed = exchange(request["path"], text)
            outcomes = run(request) if changed else {}
            print(json.dumps({"number": number, "outcomes": outcomes}), file=line, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    os._exit(0)


main()
