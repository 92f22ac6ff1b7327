"""One episode of code repair: a package with a bug, tools to find and mend it, hidden tests to judge it."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from sensorium.core.errors import EnvError
from sensorium.envs.base import Task
from sensorium.envs.code_repair.catalog import Bug, names_digest
from sensorium.envs.code_repair.config import CodeRepairConfig
from sensorium.envs.code_repair.editing import MAX_HITS, Files
from sensorium.envs.code_repair.integrity import violations
from sensorium.envs.code_repair.projects import Workspace, is_test, load_project
from sensorium.envs.code_repair.related import nearest_files
from sensorium.envs.code_repair.testing import Detail, TestReport, TestRunner
from sensorium.envs.tool_env import ToolEnv
from sensorium.envs.tools import ToolError, tool
from sensorium.observations.code import CodeState
from sensorium.observations.source import Source
from sensorium.observations.values import CaseResult, StackFrame, StackTrace

_RUN_TIMEOUT_S = 900.0
"""With the time that a run waits for others."""
_READ_LINES = 200
_SHOWN_FAILURES = 8
_TRACE_CHARS = 3_000
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_REPETITION = re.compile(r"[*+}]")


class CodeRepairEnv(ToolEnv):
    """See the folder's README.

    Args:
        config: Settings.
        runner: Runs tests; shared by the episodes of one server.
    """

    def __init__(self, config: CodeRepairConfig, runner: TestRunner) -> None:
        super().__init__()
        self._config, self._runner = config, runner

    async def _reset(self, task: Task, seed: int) -> None:
        self._bug = Bug.model_validate(task.hidden["bug"])
        self._workspace = await _loaded(self._bug)
        original = self._workspace.text(self._bug.path)
        self._given = self._bug.mutation.apply(original)
        self._files = Files(self._workspace, {self._bug.path: self._given})
        self._runs_left = self._config.max_test_runs
        self._report = await self._runner.opening(self._workspace, self._bug)
        if self._report.problem or not set(self._bug.failing) & set(self._report.failing):
            why = self._report.problem or "no test fails"
            raise EnvError(
                f"The bug of task {task.id} does not show on this machine ({why}). "
                "Collect bugs that do: set `catalog` and run: sensorium envs prepare code_repair"
            )
        self._focus = _place_of(self._report, self._workspace)

    # What the agent sees

    async def _observe(self) -> Any:
        """Failure first, on the file where it showed; then that file; then its neighbours."""
        path, line = self._focus
        failing = [other for other in self._failing_files() if other != path]
        near = await asyncio.to_thread(
            nearest_files, self._bug.project, (path, *failing), self._config.max_related
        )
        parts: dict[str, Any] = {"progress": self._progress()}
        parts[path] = Source(self._files.text(path), path=path, language="python", state=self._state(line))
        for other in near:
            if other != path:
                text = self._files.text(other)
                parts[other] = Source(text, path=other, language="python", importance=0.3)
        return parts

    def _progress(self) -> Source:
        report = self._report
        facts: dict[str, Any] = {"tests_failing": len(report.failing), "tests_passed": len(report.passed)}
        if report.problem:
            facts["problem"] = report.problem
        facts["test_runs_left"] = self._runs_left
        facts["changed_files"] = sorted(self._edited())
        return Source(facts, importance=1.5)

    def _state(self, line: int | None) -> CodeState:
        """The failing tests, and the stack of the first of them."""
        report = self._report
        cases = []
        for name in report.failing[:_SHOWN_FAILURES]:
            detail = report.details.get(name)
            message = detail.message if detail else ""
            cases.append(CaseResult(name=name, status="failed", message=message))
        first = report.first_detail
        stack = None if first is None else self._stack(first)
        return CodeState(cursor=line, stack=stack, tests=cases, tools=("run_tests",))

    def _stack(self, detail: Detail) -> StackTrace:
        kind, _, message = detail.message.partition(":")
        if not kind.isidentifier():
            kind, message = "AssertionError", detail.message
        frames = []
        for path, line in detail.frames[-12:]:
            code = None
            if path in self._workspace.files and path.endswith(".py"):
                lines = self._files.text(path).split("\n")
                code = lines[line - 1].strip() if 0 < line <= len(lines) else None
            frames.append(StackFrame(file=path, line=line, code=code))
        return StackTrace(type=kind, message=message.strip(), frames=tuple(frames))

    def _failing_files(self) -> Sequence[str]:
        """Files of the tests that fail, and of the frames of their failures."""
        tests = [name.partition("::")[0] for name in self._report.failing]
        frames = [path for detail in self._report.details.values() for path, _ in detail.frames]
        return [path for path in dict.fromkeys((*tests, *frames)) if path in self._workspace.files]

    def _edited(self) -> Mapping[str, str]:
        """Files that the agent changed."""
        given = {self._bug.path: self._given}
        return {
            path: text
            for path, text in self._files.changed.items()
            if text != given.get(path, self._workspace.text(path))
        }

    # Tools

    @tool()
    async def read_file(
        self,
        path: str,
        start_line: Annotated[int, Field(ge=1)] = 1,
        end_line: Annotated[int, Field(ge=0)] = 0,
    ) -> str:
        """Read lines of a Python file; the file is then shown in the state too.

        Args:
            path: e.g. networkx/algorithms/dag.py.
            start_line: First line, from 1.
            end_line: Last line; 0 for the 200 lines from the first.
        """
        found = self._files.find(path)
        end = end_line or start_line + _READ_LINES - 1
        text = self._files.lines(found, start_line, min(end, start_line + 4 * _READ_LINES - 1))
        self._focus = (found, start_line if start_line > 1 else None)
        return text

    @tool()
    def search(
        self,
        pattern: Annotated[str, Field(min_length=1, max_length=200)],
        below: str = "",
        regex: bool = False,
    ) -> str:
        """Search the text and the names of all Python files.

        Args:
            pattern: Text to find, upper and lower case as it is.
            below: Only in this folder or file, e.g. networkx/classes.
            regex: The pattern is a regular expression.
        """
        if regex and (_REPEATED_GROUP.search(pattern) or len(_REPETITION.findall(pattern)) > 3):
            raise ToolError("repeated groups and more than 3 repetitions are not searched for: too slow")
        hits = []
        for hit in self._files.search(pattern, below, is_regex=regex):
            hits.append(hit)
            if len(hits) > MAX_HITS:
                return "\n".join(hits[:MAX_HITS]) + "\n... and more; search for something rarer"
        return "\n".join(hits) or f"{pattern!r} does not occur"

    @tool()
    async def edit(self, path: str, old: str, new: str) -> str:
        """Replace a text that occurs exactly once in a file.

        Args:
            path: The file.
            old: Text as it is in the file, with its spaces and line breaks; long enough to be unique.
            new: Text to put in its place.
        """
        found = self._files.find(path)
        told = self._files.replace(found, old, new)
        text = self._files.text(found)
        place = text.find(new) if new else -1
        self._focus = (found, text.count("\n", 0, place) + 1 if place >= 0 else None)
        return told

    @tool(timeout_s=_RUN_TIMEOUT_S)
    async def run_tests(self, tests: tuple[str, ...] = ()) -> str:
        """Run tests on the present state of the files.

        Args:
            tests: Files or single tests, e.g. networkx/algorithms/tests/test_dag.py::test_x; empty: all that
                belong to the task.
        """
        if self._runs_left == 0:
            raise ToolError("there are no test runs left; submit")
        chosen = [self._target(one) for one in tests] or list(self._bug.tests)
        self._runs_left -= 1
        report = await self._runner.run(self._workspace, chosen, self._files.changed)
        self._report = report
        return _summary(report)

    def _target(self, name: str) -> str:
        path, separator, rest = name.partition("::")
        found = self._files.find(path)
        if not is_test(found):
            raise ToolError(f"{found} has no tests; those of the task are in {', '.join(self._bug.tests)}")
        return f"{found}{separator}{rest}"

    @tool(timeout_s=_RUN_TIMEOUT_S)
    async def submit(self) -> str:
        """Hand in the repair. Hidden tests judge it: the original ones, on your changes of source files."""
        sources = {path: text for path, text in self._files.changed.items() if not is_test(path)}
        for path, text in sources.items():
            original = self._workspace.text(path)
            given = self._given if path == self._bug.path else original
            problems = violations(original, given, text, project=self._bug.project)
            if problems:
                told = "; ".join(problems[:5])
                raise ToolError(f"{path} is not accepted: {told}. Mend the bug with as little as it needs")
        report = await self._runner.run(self._workspace, self._bug.tests, sources, is_judged=True)
        mended = len(set(self._bug.failing) & report.passed)
        is_right = not report.problem and not report.failing
        is_right = is_right and names_digest(report.passed) == self._bug.passed_digest
        broken = len(set(report.failing) - set(self._bug.failing))
        self.finish(
            float(is_right),
            tests_mended=mended / len(self._bug.failing),
            tests_broken=float(broken),
            files_changed=float(len(self._edited())),
        )
        return "submitted"


async def _loaded(bug: Bug) -> Workspace:
    """The project of a bug, with the files that it was verified with."""
    workspace = await asyncio.to_thread(load_project, bug.project)
    if not bug.fits(workspace):
        raise EnvError(
            f"The task was made for {bug.project} {bug.version}; the installed {workspace.version} has "
            f"another {bug.path}. Install that version, or make tasks again."
        )
    return workspace


def _place_of(report: TestReport, workspace: Workspace) -> tuple[str, int | None]:
    """Where the first failure showed: the innermost frame in the project's source, else in a test."""
    for wants_source in (True, False):
        for name in report.failing:
            detail = report.details.get(name)
            for path, line in reversed(detail.frames if detail else ()):
                if path in workspace.files and is_test(path) != wants_source:
                    return path, line
    return report.failing[0].partition("::")[0], None


def _summary(report: TestReport) -> str:
    """Results in words, the first failure with its trace."""
    if report.problem:
        return f"No results: {report.problem}.\n{report.output[-1500:]}".strip()
    if not report.outcomes:
        return f"No test was found.\n{report.output[-1500:]}"
    lines = [f"{len(report.failing)} failing, {len(report.passed)} passed"]
    for name in report.failing[:_SHOWN_FAILURES]:
        detail = report.details.get(name)
        lines.append(
            f"FAILED {name}"
            + (f" - {detail.message.splitlines()[0][:300]}" if detail and detail.message else "")
        )
    if len(report.failing) > _SHOWN_FAILURES:
        lines.append(f"... and {len(report.failing) - _SHOWN_FAILURES} more")
    first = report.first_detail
    if first is not None:
        lines.append(first.trace[-_TRACE_CHARS:])
    return "\n".join(lines)
