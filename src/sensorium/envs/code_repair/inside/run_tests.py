"""Runs tests inside a sandbox and writes one line of results: the only thing there that its host believes.

    run_tests.py < request

The request is one line of JSON, followed by a tar file with the workspace. The script unpacks it into the
current directory, lays the changed files of the request over it, runs pytest, and writes a line that begins
with the request's token. It uses the standard library and pytest only, and nothing of this package.

What it tests is not trusted. The line is written to a copy of stdout that no test knows, under a token that
is in no file and no environment; canaries, tests that must fail, tell when somebody made pytest call
everything a success; a process that ends early writes no line at all.
"""

import io
import json
import os
import sys
import tarfile
import time
from typing import Any, BinaryIO

CANARIES = """
import pytest

class TestCanary:
    def test_false(self):
        assert not "this must fail"

    def test_different(self):
        assert [1, 2, {"three": 3}] == [1, 2, {"three": 4}]

    def test_error(self):
        raise ValueError("this must fail")

    def test_nothing_raised(self):
        with pytest.raises(ValueError):
            pass
"""
MAX_DETAIL_CHARS = 6_000
MAX_DETAILS = 20


class Recorder:
    """A pytest plugin that notes how each test ended."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.details: dict[str, Any] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase (setup, call, teardown) of one test."""
        before = self.outcomes.get(report.nodeid)
        if report.outcome == "failed":
            self.outcomes[report.nodeid] = "failed" if report.when == "call" else "error"
            self._explain(report.nodeid, report)
        elif report.outcome == "skipped":
            self.outcomes[report.nodeid] = before or "skipped"
        elif report.when == "call":
            self.outcomes[report.nodeid] = before or "passed"

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be imported is an error of its own."""
        if report.failed:
            self.outcomes[report.nodeid] = "error"
            self._explain(report.nodeid, report)

    def _explain(self, name: str, report: Any) -> None:
        if len(self.details) >= MAX_DETAILS or name in self.details:
            return
        text = report.longreprtext
        crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
        message = getattr(crash, "message", "") or text.strip().rpartition("\n")[2]
        if len(text) > MAX_DETAIL_CHARS:
            text = text[: MAX_DETAIL_CHARS // 3] + "\n...\n" + text[-2 * MAX_DETAIL_CHARS // 3 :]
        self.details[name] = {"message": message[:600], "trace": text, "frames": frames_of(report)}


def frames_of(report: Any) -> list[tuple[str, int]]:
    """Path and line of each frame of a failure, the outermost first; paths relative to the workspace."""
    entries = getattr(getattr(getattr(report, "longrepr", None), "reprtraceback", None), "reprentries", ())
    places = [getattr(entry, "reprfileloc", None) for entry in entries]
    return [(os.path.relpath(place.path), int(place.lineno)) for place in places if place is not None][:50]


def unpack(request: dict[str, Any], stream: BinaryIO) -> None:
    """Put the workspace into the current directory."""
    with tarfile.open(fileobj=io.BytesIO(stream.read()), mode="r:") as archive:
        archive.extractall(".", filter="data")
    for path, text in request["files"].items():
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)


def main() -> None:
    """Run what the request on stdin asks for."""
    line = os.fdopen(os.dup(1), "w", encoding="utf-8")
    request = json.loads(sys.stdin.buffer.readline())
    unpack(request, sys.stdin.buffer)
    os.dup2(2, 1)  # whatever is printed goes with the complaints
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    import pytest

    sys.path.insert(0, os.getcwd())
    recorder = Recorder()
    options = ["-q", "-p", "no:cacheprovider", "-c", request["config"], "--rootdir", os.getcwd()]
    options += ["--tb=short", "--disable-warnings", "--continue-on-collection-errors"]
    targets = list(request["tests"])
    if request["canary"]:
        with open(request["canary"], "w", encoding="utf-8") as file:
            file.write(CANARIES)
        targets.append(request["canary"])
    began = time.monotonic()
    status = pytest.main([*options, *targets], plugins=[recorder])
    result = {"status": int(status), "outcomes": recorder.outcomes, "details": recorder.details}
    result["wall_s"] = time.monotonic() - began
    line.write("\n" + request["token"] + json.dumps(result) + "\n")
    line.flush()
    os._exit(0)  # threads and exit handlers of what was tested are of no interest


main()
