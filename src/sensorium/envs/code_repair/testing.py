"""Running a project's tests in a sandbox, with some of its files changed."""

import asyncio
import collections
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sensorium.core.errors import EnvError
from sensorium.envs.code_repair.catalog import Bug
from sensorium.envs.code_repair.config import CodeRepairConfig
from sensorium.envs.code_repair.projects import Workspace
from sensorium.envs.sandbox import Completed, Sandbox

INSIDE = Path(__file__).with_name("inside")
PLACE = "/grader"
"""Where `INSIDE` is seen in a sandbox."""
ENV = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
_OPENINGS = 2_000
CANARY_TESTS = 4


class Detail(NamedTuple):
    """Why one test failed."""

    message: str
    """One or a few lines."""
    trace: str
    frames: tuple[tuple[str, int], ...]
    """File and line of each frame, the outermost first."""


@dataclass(frozen=True)
class TestReport:
    """How a run of tests ended."""

    __test__ = False

    outcomes: Mapping[str, str] = field(default_factory=dict)
    """Test, e.g. ``networkx/tests/test_x.py::test_y`` -> passed, failed, error, skipped."""
    details: Mapping[str, Detail] = field(default_factory=dict)
    """Failing test -> why; of the first ones."""
    problem: str = ""
    """Why there are no results: the tests took too long, ended the interpreter, ...; empty otherwise."""
    output: str = ""
    """End of what was printed."""
    wall_s: float = 0.0

    @property
    def passed(self) -> frozenset[str]:
        """Tests that succeeded."""
        return frozenset(name for name, outcome in self.outcomes.items() if outcome == "passed")

    @property
    def failing(self) -> tuple[str, ...]:
        """Tests that failed or could not run, in their order."""
        return tuple(name for name, outcome in self.outcomes.items() if outcome in ("failed", "error"))

    @property
    def first_detail(self) -> Detail | None:
        """Why the first failing test failed of which that is known."""
        return next((self.details[name] for name in self.failing if name in self.details), None)


class TestRunner:
    """Runs tests, a few at the same time, each run in a fresh sandbox.

    Args:
        config: Limits, and how many at the same time.
    """

    __test__ = False

    def __init__(self, config: CodeRepairConfig) -> None:
        self._config = config
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._openings: collections.OrderedDict[str, TestReport] = collections.OrderedDict()

    async def opening(self, workspace: Workspace, bug: Bug) -> TestReport:
        """The tests of a bug with nothing changed but the bug; remembered, as many episodes begin with it.

        Raises:
            EnvError: As in `run`.
        """
        if bug.id not in self._openings:
            changed = {bug.path: bug.mutation.apply(workspace.text(bug.path))}
            report = await self.run(workspace, bug.tests, changed)
            if report.problem:
                return report
            self._openings[bug.id] = report
            while len(self._openings) > _OPENINGS:
                self._openings.popitem(last=False)
        return self._openings[bug.id]

    async def run(
        self,
        workspace: Workspace,
        tests: Iterable[str],
        changed: Mapping[str, str],
        *,
        is_judged: bool = False,
    ) -> TestReport:
        """Run tests of a project.

        Args:
            workspace: Its pristine files.
            tests: Files, or single tests, relative to the workspace.
            changed: Path -> text of files that differ from the pristine ones.
            is_judged: The result is worth a reward: run canaries too, and tell when one of them sang.

        Raises:
            EnvError: The sandbox failed.
        """
        canary = f"test_{secrets.token_hex(8)}.py" if is_judged else ""
        token = secrets.token_hex(16)
        request: dict[str, Any] = {
            "token": token,
            "tests": list(tests),
            "files": dict(changed),
            "canary": canary,
        }
        async with self._slot(), self._sandbox(workspace) as sandbox:
            place = PLACE if sandbox.isolation.safe else str(INSIDE)
            request["config"] = f"{place}/pytest.ini"
            stdin = json.dumps(request).encode() + b"\n" + workspace.archive
            done = await sandbox.run([sandbox.python, "-s", f"{place}/run_tests.py"], stdin=stdin, env=ENV)
        return _without_canaries(_report(done, token), canary)

    def _sandbox(self, workspace: Workspace) -> Sandbox:
        return Sandbox.create(
            self._config.sandbox,
            read_only={PLACE: INSIDE},
            hidden_packages=(workspace.project.name,),
            allow_unsafe=self._config.unsafe_no_sandbox,
        )

    def _slot(self) -> asyncio.Semaphore:
        most = self._config.parallel_runs or os.cpu_count() or 1
        return self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(most))


def _report(done: Completed, token: str) -> TestReport:
    """Read the line of results; without one the run had a problem."""
    output = done.stderr.decode(errors="replace")[-4000:]
    lines = [line for line in done.stdout.split(b"\n") if line.startswith(token.encode())]
    if done.killed_by is None and len(lines) == 1:
        try:
            found = json.loads(lines[0][len(token) :])
            details = {name: _detail(one) for name, one in found["details"].items()}
            return TestReport(found["outcomes"], details, "", output, float(found["wall_s"]))
        except (ValueError, KeyError, TypeError) as error:
            raise EnvError(f"The runner of tests wrote nonsense: {error}.") from error
    if done.killed_by is not None:
        limits = {"wall": "time", "cpu": "processor time", "disk": "disk space"}
        problem = f"the tests used more {limits.get(done.killed_by, done.killed_by)} than they may"
    else:
        problem = f"the interpreter ended (status {done.returncode}) before the tests had finished"
    return TestReport(problem=problem, output=output, wall_s=done.wall_s)


def _detail(found: Mapping[str, Any]) -> Detail:
    frames = tuple((str(path), int(line)) for path, line in found["frames"])
    return Detail(str(found["message"]), str(found["trace"]), frames)


def _without_canaries(report: TestReport, canary: str) -> TestReport:
    """Take the canaries out; where one did not fail, nothing of the report can be believed."""
    if not canary or report.problem:
        return report
    sang = [name for name in report.outcomes if canary in name and report.outcomes[name] == "failed"]
    if len(sang) != CANARY_TESTS:
        return TestReport(problem="tests that must fail did not: the code interferes with the test runner")
    outcomes = {name: outcome for name, outcome in report.outcomes.items() if canary not in name}
    details = {name: detail for name, detail in report.details.items() if canary not in name}
    return TestReport(outcomes, details, "", report.output, report.wall_s)
